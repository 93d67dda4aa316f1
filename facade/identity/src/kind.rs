//! The registry of quota kinds.
//!
//! Charges and limits use the same registry, so nothing can be charged that has no limit.

use std::collections::BTreeMap;

use crate::{Amounts, Limits, QuotaKind};

impl QuotaKind {
    /// Servers: one per instance.
    pub fn servers() -> Self {
        Self::from_static("servers")
    }

    /// GPUs, as the flavor counts them.
    pub fn gpus() -> Self {
        Self::from_static("gpus")
    }

    /// Public IP addresses.
    pub fn public_ips() -> Self {
        Self::from_static("public-ips")
    }

    /// Networks.
    pub fn networks() -> Self {
        Self::from_static("networks")
    }

    /// Images that tenants create.
    pub fn images() -> Self {
        Self::from_static("images")
    }

    /// SSH certificate authorities.
    pub fn ssh_authorities() -> Self {
        Self::from_static("ssh-authorities")
    }
}

/// The default limits of a kind.
///
/// ```
/// use fleetwright_identity::{Defaults, QuotaKind, QuotaKinds};
///
/// let volumes = QuotaKind::new("volumes")?;
/// let kinds = QuotaKinds::standard().with(volumes, Defaults::organization(100).project(20));
/// # Ok::<(), fleetwright_identity::InvalidName>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// The limit of an organization with all its projects.
    pub organization: u64,
    /// The limit of one project, or `None` if only the limit of its organization applies.
    pub project: Option<u64>,
}

impl Defaults {
    /// Sets a default limit for organizations, and none for projects.
    pub fn organization(limit: u64) -> Self {
        Self {
            organization: limit,
            project: None,
        }
    }

    /// Adds a default limit for each project.
    #[must_use]
    pub fn project(mut self, limit: u64) -> Self {
        self.project = Some(limit);
        self
    }
}

/// The quota kinds of an installation. A kind that is not in the registry is refused in charges and
/// in limits.
///
/// ```
/// use fleetwright_identity::{Defaults, QuotaKind, QuotaKinds};
///
/// let volumes = QuotaKind::new("volumes")?;
/// let kinds = QuotaKinds::standard().with(volumes.clone(), Defaults::organization(20).project(5));
/// assert_eq!(kinds.defaults(&volumes)?.project, Some(5));
/// assert!(kinds.defaults(&QuotaKind::new("tapes")?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaKinds {
    kinds: BTreeMap<QuotaKind, Defaults>,
}

impl QuotaKinds {
    /// Returns the standard kinds with their limits per organization: `servers` (10), `gpus` (40),
    /// `public-ips` (5), `networks` (20), `ssh-authorities` (20) and `images` (20). Projects have no
    /// limit of their own.
    pub fn standard() -> Self {
        let kinds = [
            (QuotaKind::servers(), Defaults::organization(10)),
            (QuotaKind::gpus(), Defaults::organization(40)),
            (QuotaKind::public_ips(), Defaults::organization(5)),
            (QuotaKind::networks(), Defaults::organization(20)),
            (QuotaKind::ssh_authorities(), Defaults::organization(20)),
            (QuotaKind::images(), Defaults::organization(20)),
        ];
        Self {
            kinds: kinds.into(),
        }
    }

    /// Adds a kind, or replaces the defaults of an existing one.
    #[must_use]
    pub fn with(mut self, kind: QuotaKind, defaults: Defaults) -> Self {
        self.kinds.insert(kind, defaults);
        self
    }

    /// Iterates over the kinds with their defaults.
    pub fn iter(&self) -> impl Iterator<Item = (&QuotaKind, &Defaults)> {
        self.kinds.iter()
    }

    /// Returns the defaults of a kind.
    ///
    /// # Errors
    ///
    /// The kind is not in the registry.
    pub fn defaults(&self, kind: &QuotaKind) -> Result<&Defaults, UnknownKind> {
        self.kinds.get(kind).ok_or_else(|| self.unknown(kind))
    }

    /// Checks that every listed kind is registered, also those with the amount zero.
    pub fn check_amounts(&self, amounts: &Amounts) -> Result<(), UnknownKind> {
        amounts.iter().try_for_each(|(kind, _)| self.check(kind))
    }

    /// Checks that every listed kind is registered.
    pub fn check_limits(&self, limits: &Limits) -> Result<(), UnknownKind> {
        limits.iter().try_for_each(|(kind, _)| self.check(kind))
    }

    fn check(&self, kind: &QuotaKind) -> Result<(), UnknownKind> {
        self.defaults(kind).map(|_| ())
    }

    fn unknown(&self, kind: &QuotaKind) -> UnknownKind {
        let known: Vec<_> = self.kinds.keys().map(QuotaKind::as_str).collect();
        UnknownKind {
            kind: kind.clone(),
            known: known.join(", "),
        }
    }
}

/// A kind that is not in the registry. It never counts as unlimited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("quota kind {kind} is not registered; use one of {known}, or register it")]
pub struct UnknownKind {
    /// The kind.
    pub kind: QuotaKind,
    /// The registered kinds.
    known: String,
}
