//! What can be in a project, as data: the kinds and indexes by which a project is found to be empty.

use std::fmt;

use fleetwright_store::{
    Check, Claim, Conflict, Document as _, IndexName, IndexValue, Invalid, Kind, Query, Schema,
    StoreError,
};

use super::{Project, Tenancy};
use crate::{Allocation, Principal, Resource, Scope, Verb};

/// Up to which number the records of one kind are counted.
const MAX_COUNTED: usize = 100;

/// A kind of record that belongs to projects, and the index whose first parts are organization and project.
///
/// ```
/// use fleetwright_identity::{Content, Resource};
///
/// const NETWORKS: Content = Content {
///     kind: "network",
///     index: "project",
///     resource: Resource::Networks,
/// };
/// # let _ = NETWORKS;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The kind.
    pub kind: &'static str,
    /// The index. Its first two parts are organization and project.
    pub index: &'static str,
    /// The resource, by which a caller may list the records.
    pub resource: Resource,
}

impl Content {
    /// Quota in use: whatever is charged to a project is in it.
    pub(super) const ALLOCATIONS: Self = Self {
        kind: Allocation::KIND,
        index: "organization",
        resource: Resource::Allocations,
    };
    /// The projects of an organization.
    const PROJECTS: Self = Self {
        kind: Project::KIND,
        index: "organization",
        resource: Resource::Projects,
    };

    pub(super) fn check_schema(self, schema: &Schema) -> Result<(), Invalid> {
        let index = schema.index(&Kind::new(self.kind)?, &IndexName::new(self.index)?)?;
        if index.paths.len() >= 2 {
            return Ok(());
        }
        Err(Invalid::new(format!(
            "index {} of {} has one part; its first parts must be organization and project",
            self.index, self.kind
        )))
    }

    fn claim(self, scope: &Scope) -> Result<Option<Claim>, Invalid> {
        let value: IndexValue = match scope {
            Scope::Global => return Ok(None),
            Scope::Organization(organization) => organization.to_string().into(),
            Scope::Project(organization, project) => {
                [organization.to_string(), project.to_string()].into()
            }
        };
        let (kind, index) = (Kind::new(self.kind)?, IndexName::new(self.index)?);
        Ok(Some(Claim::new(kind, index, value)))
    }
}

/// What a project or an organization still contains, as far as the caller may list it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remaining {
    /// The kinds with their numbers. A number above 100 is not exact.
    pub counts: Vec<(Resource, usize)>,
}

impl fmt::Display for Remaining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.counts.is_empty() {
            return f.write_str("records that the caller may not list");
        }
        for (number, (resource, count)) in self.counts.iter().enumerate() {
            if number > 0 {
                f.write_str(", ")?;
            }
            if *count > MAX_COUNTED {
                write!(f, "more than {MAX_COUNTED} {}", resource.as_str())?;
            } else {
                write!(f, "{count} {}", resource.as_str())?;
            }
        }
        Ok(())
    }
}

impl Tenancy {
    /// Returns the kinds that must be absent from a scope before it is deleted.
    fn kinds_in(&self, scope: &Scope) -> Vec<Content> {
        let mut kinds = match scope {
            Scope::Global | Scope::Project(..) => Vec::new(),
            Scope::Organization(_) => vec![Content::PROJECTS],
        };
        kinds.extend(self.contents.iter().copied());
        kinds
    }

    /// Returns the checks that a scope is empty, for the transaction that closes it.
    pub(super) fn checks_empty(&self, scope: &Scope) -> Result<Vec<Check>, Invalid> {
        let mut checks = Vec::new();
        for content in self.kinds_in(scope) {
            checks.extend(content.claim(scope)?.map(Check::Unclaimed));
        }
        Ok(checks)
    }

    /// Counts what is in a scope, as far as the caller may list it. Reads at most 101 records of each kind.
    pub(super) async fn remaining(
        &self,
        principal: &Principal,
        scope: &Scope,
    ) -> Result<Remaining, StoreError> {
        let mut remaining = Remaining::default();
        for content in self.kinds_in(scope) {
            // Allocations are of records that are counted themselves, or that the caller does not know.
            let visible = principal.authorize(Verb::List, content.resource, scope);
            let claim = content.claim(scope)?;
            let (Ok(()), Some(claim), true) = (visible, claim, content != Content::ALLOCATIONS)
            else {
                continue;
            };
            let query = Query::by(claim.kind, claim.index, claim.value.0);
            let page = self
                .store
                .list(&query.limit(MAX_COUNTED as u32 + 1))
                .await?;
            let count = page.records.len() + page.damaged.len();
            if count > 0 {
                remaining.counts.push((content.resource, count));
            }
        }
        Ok(remaining)
    }
}

/// Returns whether a commit failed because the scope is not empty.
pub(super) fn is_not_empty(error: &StoreError) -> bool {
    matches!(
        error.conflict(),
        Some(Conflict {
            check: Check::Unclaimed(_),
            ..
        })
    )
}
