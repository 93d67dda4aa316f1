//! The one registry of what quota is counted in. Who charges and who sets limits ask the same one, so that nothing is
//! charged that has no limit.

use std::collections::BTreeMap;

use crate::{Amounts, Limits, QuotaKind};

impl QuotaKind {
    /// Instances, and what they stand on.
    pub fn servers() -> Self {
        Self::known("servers")
    }

    /// Graphics processors, as the flavor counts them.
    pub fn gpus() -> Self {
        Self::known("gpus")
    }

    /// Addresses that are reached from outside.
    pub fn public_ips() -> Self {
        Self::known("public-ips")
    }
}

/// How much there is of a kind where nobody has set a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// For an organization with all its projects.
    pub organization: u64,
    /// For one project; nothing if the limit of its organization is enough.
    pub project: Option<u64>,
}

impl Defaults {
    /// A limit for organizations, none of their own for projects.
    pub fn organization(limit: u64) -> Self {
        Self {
            organization: limit,
            project: None,
        }
    }

    /// With a limit for each project too.
    #[must_use]
    pub fn project(mut self, limit: u64) -> Self {
        self.project = Some(limit);
        self
    }
}

/// The quota kinds of an installation. A kind that is not in here is refused wherever it is named: in charges, in limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaKinds {
    kinds: BTreeMap<QuotaKind, Defaults>,
}

impl QuotaKinds {
    /// `servers` (10 for an organization), `gpus` (40) and `public-ips` (5).
    pub fn standard() -> Self {
        let kinds = [
            (QuotaKind::servers(), Defaults::organization(10)),
            (QuotaKind::gpus(), Defaults::organization(40)),
            (QuotaKind::public_ips(), Defaults::organization(5)),
        ];
        Self {
            kinds: kinds.into(),
        }
    }

    /// The same with a kind more, or with other defaults for one that is there.
    #[must_use]
    pub fn with(mut self, kind: QuotaKind, defaults: Defaults) -> Self {
        self.kinds.insert(kind, defaults);
        self
    }

    /// Every kind with its defaults.
    pub fn iter(&self) -> impl Iterator<Item = (&QuotaKind, &Defaults)> {
        self.kinds.iter()
    }

    /// The defaults of a kind, or that there is no such kind.
    pub fn defaults(&self, kind: &QuotaKind) -> Result<&Defaults, UnknownKind> {
        self.kinds.get(kind).ok_or_else(|| self.unknown(kind))
    }

    /// Whether all these kinds are there, also those of which there are none.
    pub fn check_amounts(&self, amounts: &Amounts) -> Result<(), UnknownKind> {
        amounts.iter().try_for_each(|(kind, _)| self.check(kind))
    }

    /// Whether all these kinds are there.
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

/// A kind that is not in the registry. It is never taken for unlimited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("quota kind {kind} is not registered: there are {known}")]
pub struct UnknownKind {
    /// The kind.
    pub kind: QuotaKind,
    /// Those there are.
    known: String,
}
