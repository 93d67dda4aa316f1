//! Amounts and limits per quota kind.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::QuotaKind;

/// An amount per quota kind. A kind that is not listed has the amount zero.
///
/// ```
/// use fleetwright_identity::{Amounts, QuotaKind};
///
/// let cost = Amounts::new().with(QuotaKind::servers(), 1).with(QuotaKind::gpus(), 8);
/// assert_eq!(cost.of(&QuotaKind::gpus()), 8);
/// assert_eq!(cost.of(&QuotaKind::public_ips()), 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amounts(BTreeMap<QuotaKind, u64>);

impl Amounts {
    /// Returns amounts of zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the amount of a kind, replacing an earlier one.
    #[must_use]
    pub fn with(mut self, kind: QuotaKind, amount: u64) -> Self {
        self.0.insert(kind, amount);
        self
    }

    /// Returns the amount of a kind, zero if it is not listed.
    pub fn of(&self, kind: &QuotaKind) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }

    /// Iterates over the listed kinds, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&QuotaKind, u64)> {
        self.0.iter().map(|(kind, amount)| (kind, *amount))
    }

    /// Returns the larger amount of each kind.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        let kinds = self.kinds_with(other).into_iter();
        let larger = |kind: &QuotaKind| (kind.clone(), self.of(kind).max(other.of(kind)));
        kinds.map(larger).collect()
    }

    /// Returns whether every amount is zero.
    pub fn is_zero(&self) -> bool {
        self.0.values().all(|amount| *amount == 0)
    }

    /// Removes kinds with the amount zero, so that equal amounts compare as equal.
    #[must_use]
    pub fn without_zeros(mut self) -> Self {
        self.0.retain(|_, amount| *amount > 0);
        self
    }

    pub(crate) fn kinds_with<'a>(&'a self, other: &'a Self) -> BTreeSet<&'a QuotaKind> {
        self.0.keys().chain(other.0.keys()).collect()
    }
}

impl FromIterator<(QuotaKind, u64)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (QuotaKind, u64)>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

/// Limits that were set explicitly.
///
/// For a kind that is not listed, the default of the [registry](crate::QuotaKinds) applies. A limit
/// of zero forbids the kind.
///
/// ```
/// use fleetwright_identity::{Limits, QuotaKind};
///
/// let limits = Limits::new().with(QuotaKind::servers(), 50).with(QuotaKind::gpus(), 0);
/// assert_eq!(limits.of(&QuotaKind::servers()), Some(50));
/// assert_eq!(limits.of(&QuotaKind::public_ips()), None); // the default applies
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limits(BTreeMap<QuotaKind, u64>);

impl Limits {
    /// Returns an empty set of limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limit of a kind.
    #[must_use]
    pub fn with(mut self, kind: QuotaKind, limit: u64) -> Self {
        self.0.insert(kind, limit);
        self
    }

    /// Returns the limit that was set for a kind.
    pub fn of(&self, kind: &QuotaKind) -> Option<u64> {
        self.0.get(kind).copied()
    }

    /// Iterates over the limits that were set.
    pub fn iter(&self) -> impl Iterator<Item = (&QuotaKind, u64)> {
        self.0.iter().map(|(kind, limit)| (kind, *limit))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
