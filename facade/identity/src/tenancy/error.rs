//! Errors of organizations, projects and role bindings.

use fleetwright_runtime::entropy::EntropyError;
use fleetwright_store::{Invalid, StoreError};

use super::Remaining;
use crate::{Actor, InvalidRole, Permission, Refused, RoleName, Scope, TenantName};

/// Why a call for an organization, a project or a role binding failed. Nothing was changed, unless the [store error](StoreError) says that
/// the outcome is unknown.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TenancyError {
    /// It does not exist, or is not visible to the caller (HTTP 404).
    #[error("there is no {what} {id}")]
    NotFound {
        /// The kind of record.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// The caller lacks the permission (HTTP 403).
    #[error("not permitted")]
    Refused(#[from] Refused),
    /// The name is taken in its scope (HTTP 409). A caller whose first response was lost reads the record and compares.
    #[error("the name {name} is taken by {what} {id}: choose another name")]
    NameTaken {
        /// The kind of record.
        what: &'static str,
        /// The name.
        name: TenantName,
        /// The record that has it.
        id: String,
    },
    /// The requested id belongs to a record with another name (HTTP 409).
    #[error("{what} {id} exists with another name: choose another id")]
    IdTaken {
        /// The kind of record.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// It is being deleted and accepts nothing new (HTTP 409).
    #[error("{what} {id} is being deleted: choose another {what}")]
    Deleting {
        /// The kind of record.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// It still contains records (HTTP 409).
    #[error("{what} {id} is not empty: it has {remaining}; delete that first")]
    NotEmpty {
        /// The kind of record.
        what: &'static str,
        /// The id.
        id: String,
        /// What it contains, as far as the caller may list it.
        remaining: Remaining,
    },
    /// The role does not exist, or cannot be bound at a scope of this level (HTTP 422).
    #[error(transparent)]
    InvalidRole(#[from] InvalidRole),
    /// The role has a permission that the caller does not have in the scope (HTTP 403).
    #[error(
        "role {role} grants permission to {permission}, which the caller does not have in {scope}: bind a smaller role"
    )]
    Escalation {
        /// The role.
        role: RoleName,
        /// A permission that the caller lacks.
        permission: Permission,
        /// The scope.
        scope: Scope,
    },
    /// Only users have role bindings; services have the permissions that their code lists (HTTP 422).
    #[error("{0} is not a user: roles are bound to users only")]
    NotAUser(Actor),
    /// The actor has the largest number of bindings in the organization (HTTP 409).
    #[error(
        "{actor} has {limit} bindings in this organization, which is the maximum: remove one first"
    )]
    TooManyBindings {
        /// The actor.
        actor: Actor,
        /// The maximum.
        limit: usize,
    },
    /// Without this binding nobody could administer the scope (HTTP 409).
    #[error("this is the last binding that administers {0}: bind another administrator first")]
    LastAdministrator(Scope),
    /// The installation has an administrator already (HTTP 409).
    #[error("the installation has a platform administrator already: ask one of them for a role")]
    AlreadyBootstrapped,
    /// Others changed the same records at every attempt (HTTP 503).
    #[error("{what} {id} is being changed by others: retry")]
    Busy {
        /// The kind of record.
        what: &'static str,
        /// The id or name.
        id: String,
    },
    /// No id could be created, because the system's entropy failed (HTTP 503).
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for TenancyError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

impl From<ScopeClosed> for TenancyError {
    fn from(closed: ScopeClosed) -> Self {
        match closed {
            ScopeClosed::Missing { what, id } => Self::NotFound { what, id },
            ScopeClosed::Deleting { what, id } => Self::Deleting { what, id },
            ScopeClosed::Store(error) => Self::Store(error),
        }
    }
}

/// Why nothing can be created in a project or organization.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScopeClosed {
    /// It does not exist.
    #[error("there is no {what} {id}")]
    Missing {
        /// `project` or `organization`.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// It is being deleted.
    #[error("{what} {id} is being deleted: choose another {what}")]
    Deleting {
        /// `project` or `organization`.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for ScopeClosed {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}
