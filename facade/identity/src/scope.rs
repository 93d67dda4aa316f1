//! Where something is: everywhere, in an organization, in a project of one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{OrganizationId, ProjectId};

/// Where a permission is held, or where it is asked for.
///
/// Everything is within [`Global`](Self::Global); a project is within its organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All of the installation.
    Global,
    /// An organization with all its projects.
    Organization(OrganizationId),
    /// One project. The organization belongs to it: the same project id under another organization is elsewhere.
    Project(OrganizationId, ProjectId),
}

/// How wide a scope is, widest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// All of the installation.
    Global,
    /// An organization.
    Organization,
    /// A project.
    Project,
}

impl Level {
    /// Every level, widest first: the order in which permissions are evaluated.
    pub const ALL: [Self; 3] = [Self::Global, Self::Organization, Self::Project];
}

impl Scope {
    /// How wide it is.
    pub fn level(&self) -> Level {
        match self {
            Self::Global => Level::Global,
            Self::Organization(_) => Level::Organization,
            Self::Project(..) => Level::Project,
        }
    }

    /// The organization, unless it is global.
    pub fn organization(&self) -> Option<OrganizationId> {
        match self {
            Self::Global => None,
            Self::Organization(organization) | Self::Project(organization, _) => {
                Some(*organization)
            }
        }
    }

    /// The project, if it is one.
    pub fn project(&self) -> Option<ProjectId> {
        match self {
            Self::Global | Self::Organization(_) => None,
            Self::Project(_, project) => Some(*project),
        }
    }

    /// Whether `inner` is this scope or lies within it.
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
    fn a_scope_contains_itself_and_what_is_within() {
        let [one, two] = [1, 2].map(|n| OrganizationId::new(Uuid::from_u128(n)));
        let [blue, red] = [3, 4].map(|n| ProjectId::new(Uuid::from_u128(n)));
        // Each row: a scope, and which of the scopes lie within it.
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
            // The same project id elsewhere is another project.
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
