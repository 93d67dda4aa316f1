//! How much of which kinds: what is charged and used, and what the limits are.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::QuotaKind;

/// How much of which kinds. A kind that is not named is the same as none of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amounts(BTreeMap<QuotaKind, u64>);

impl Amounts {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// So much of a kind, whatever was said of it before.
    #[must_use]
    pub fn with(mut self, kind: QuotaKind, amount: u64) -> Self {
        self.0.insert(kind, amount);
        self
    }

    /// How much of a kind.
    pub fn of(&self, kind: &QuotaKind) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }

    /// Every kind that is named.
    pub fn iter(&self) -> impl Iterator<Item = (&QuotaKind, u64)> {
        self.0.iter().map(|(kind, amount)| (kind, *amount))
    }

    /// Whether there is none of any kind.
    pub fn is_nothing(&self) -> bool {
        self.0.values().all(|amount| *amount == 0)
    }

    /// Of each kind as much as the larger of the two has.
    #[must_use]
    pub fn larger(&self, other: &Self) -> Self {
        let each = self.kinds_of_both(other).into_iter();
        let each = each.map(|kind| (kind.clone(), self.of(kind).max(other.of(kind))));
        Self(each.collect())
    }

    /// The same without kinds of which there is none, so that equal amounts are equal.
    #[must_use]
    pub fn normal(mut self) -> Self {
        self.0.retain(|_, amount| *amount > 0);
        self
    }

    pub(crate) fn kinds_of_both<'a>(&'a self, other: &'a Self) -> BTreeSet<&'a QuotaKind> {
        self.0.keys().chain(other.0.keys()).collect()
    }
}

impl FromIterator<(QuotaKind, u64)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (QuotaKind, u64)>>(each: I) -> Self {
        Self(each.into_iter().collect())
    }
}

/// Limits that somebody has set. For a kind that is not named the registry's default holds; zero is none at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limits(BTreeMap<QuotaKind, u64>);

impl Limits {
    /// None set.
    pub fn new() -> Self {
        Self::default()
    }

    /// At most so much of a kind.
    #[must_use]
    pub fn with(mut self, kind: QuotaKind, limit: u64) -> Self {
        self.0.insert(kind, limit);
        self
    }

    /// What was set for a kind.
    pub fn of(&self, kind: &QuotaKind) -> Option<u64> {
        self.0.get(kind).copied()
    }

    /// Every limit that was set.
    pub fn iter(&self) -> impl Iterator<Item = (&QuotaKind, u64)> {
        self.0.iter().map(|(kind, limit)| (kind, *limit))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
