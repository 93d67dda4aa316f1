//! Scopes: the installation, an organization, or a project.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{OrganizationId, ProjectId};

/// The scope of a permission, a binding or a record.
///
/// [`Global`](Self::Global) contains everything, and an organization contains its projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The whole installation.
    Global,
    /// An organization with all its projects.
    Organization(OrganizationId),
    /// One project of an organization. The same project id in another organization is another scope.
    Project(OrganizationId, ProjectId),
}

/// The level of a scope, widest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The whole installation.
    Global,
    /// An organization.
    Organization,
    /// A project.
    Project,
}

impl Level {
    /// All levels, widest first. Permissions are evaluated in this order.
    pub const ALL: [Self; 3] = [Self::Global, Self::Organization, Self::Project];
}

impl Scope {
    /// Returns the project that a stored record names in its fields `organization` and `project`, also if the rest of
    /// the record cannot be read.
    ///
    /// ```
    /// use fleetwright_identity::{Level, Scope};
    /// use serde_json::json;
    ///
    /// let project = "5ba1e150-0000-4000-8000-000000000002";
    /// let record = json!({ "organization": "5ba1e150-0000-4000-8000-000000000001", "project": project, "broken": 7 });
    /// assert_eq!(Scope::of_record(&record).map(|scope| scope.level()), Some(Level::Project));
    /// assert_eq!(Scope::of_record(&json!({ "project": project })), None);
    /// ```
    pub fn of_record(record: &serde_json::Value) -> Option<Self> {
        let organization = record.get("organization")?.as_str()?.parse().ok()?;
        let project = record.get("project")?.as_str()?.parse().ok()?;
        Some(Self::Project(organization, project))
    }

    /// Returns the level.
    pub fn level(&self) -> Level {
        match self {
            Self::Global => Level::Global,
            Self::Organization(_) => Level::Organization,
            Self::Project(..) => Level::Project,
        }
    }

    /// Returns the organization, or `None` for the global scope.
    pub fn organization(&self) -> Option<OrganizationId> {
        match self {
            Self::Global => None,
            Self::Organization(organization) | Self::Project(organization, _) => {
                Some(*organization)
            }
        }
    }

    /// Returns the project, if the scope is one.
    pub fn project(&self) -> Option<ProjectId> {
        match self {
            Self::Global | Self::Organization(_) => None,
            Self::Project(_, project) => Some(*project),
        }
    }

    /// Returns whether `inner` is this scope or within it.
    pub fn contains(&self, inner: &Self) -> bool {
        match self {
            Self::Global => true,
            Self::Organization(organization) => inner.organization() == Some(*organization),
            Self::Project(..) => self == inner,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("the whole installation"),
            Self::Organization(organization) => write!(f, "organization {organization}"),
            Self::Project(organization, project) => {
                write!(f, "project {project} of organization {organization}")
            }
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Organization => "organization",
            Self::Project => "project",
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn scope_contains_itself_and_inner_scopes() {
        let [one, two] = [1, 2].map(|n| OrganizationId::new(Uuid::from_u128(n)));
        let [blue, red] = [3, 4].map(|n| ProjectId::new(Uuid::from_u128(n)));
        // Each row: a scope, and which of the six scopes it contains.
        let scopes = [
            (Scope::Global, [true; 6]),
            (
                Scope::Organization(one),
                [false, true, false, true, true, false],
            ),
            (
                Scope::Organization(two),
                [false, false, true, false, false, true],
            ),
            (
                Scope::Project(one, blue),
                [false, false, false, true, false, false],
            ),
            (
                Scope::Project(one, red),
                [false, false, false, false, true, false],
            ),
            // The same project id in another organization.
            (
                Scope::Project(two, blue),
                [false, false, false, false, false, true],
            ),
        ];
        for (outer, within) in scopes {
            assert_eq!(
                scopes.map(|(inner, _)| outer.contains(&inner)),
                within,
                "{outer}"
            );
        }
    }
}
