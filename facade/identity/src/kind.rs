//! The one registry of what quota is counted in. Who charges and who sets limits ask the same one, so that nothing is
//! charged that has no limit.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Amounts, InvalidName, Limits, id::is_lower_case_name};

/// Something that quota is counted in: `servers`. Named like a role.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QuotaKind(Arc<str>);

impl QuotaKind {
    /// Checks the text. Whether there is such a kind only a registry knows.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        if is_lower_case_name(text) {
            return Ok(Self(text.into()));
        }
        let wanted = "1 to 64 of a-z, 0-9 and '-', beginning with a letter";
        Err(InvalidName::new("a quota kind", text, wanted))
    }

    /// Instances, and what they stand on.
    pub fn servers() -> Self {
        Self("servers".into())
    }

    /// Graphics processors, as the flavor counts them.
    pub fn gpus() -> Self {
        Self("gpus".into())
    }

    /// Addresses that are reached from outside.
    pub fn public_ips() -> Self {
        Self("public-ips".into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for QuotaKind {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::new(text)
    }
}

impl From<QuotaKind> for String {
    fn from(kind: QuotaKind) -> Self {
        kind.0.as_ref().to_owned()
    }
}

impl fmt::Display for QuotaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for QuotaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
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
