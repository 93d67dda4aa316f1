//! Why a call failed, and what that means to an HTTP interface.

use std::time::Duration;

use fleetwright_identity::{LedgerError, QuotaKind, Refused};
use fleetwright_region::{
    ids::FlavorId,
    name::Name,
    network::RecordError,
    server::{DependencyError, Plan, ServerError},
};
use fleetwright_store::{Invalid, Revision, StoreError};

use crate::instance::InstanceId;

/// Why a call of this crate failed. Nothing was changed, unless the store reports an unknown outcome.
///
/// An error and its sources say what failed, for which record, and what to do if the caller can do anything.
/// [`tenant_message`](Self::tenant_message) is the part of that which tenants may read. A record that is not visible gives the same
/// error as one that does not exist. [`meaning`](Self::meaning) is the HTTP status;
/// [`retry_after`](Self::retry_after) says whether to retry.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComputeError {
    /// A field is malformed.
    #[error("{field}: {problem}")]
    BadField {
        /// Which field, as the interface names it: `spec.networking.securityGroups`.
        field: String,
        /// What is wrong, and what would be accepted. It never contains user data.
        problem: String,
    },
    /// A field is well-formed, but its value is not possible.
    #[error("{field}: {problem}")]
    Unprocessable {
        /// The field.
        field: String,
        /// Why it is not possible, and what is.
        problem: String,
    },
    /// The instance does not exist or is not visible to the caller.
    #[error("there is no instance {0}")]
    NotFound(InstanceId),
    /// The caller lacks the permission.
    #[error("not permitted")]
    Refused(#[source] Refused),
    /// A dependency does not exist or cannot be used.
    #[error(transparent)]
    Dependency(#[from] DependencyError),
    /// The network has an instance with this name.
    #[error("the network has an instance {name} already, {id}: choose another name")]
    NameTaken {
        /// The name.
        name: Name,
        /// The instance that has it. A caller that lost the response of its first call reads it and compares.
        id: InstanceId,
    },
    /// The network has an instance with this name that is being deleted.
    #[error("instance {name} is being deleted: retry when it is deleted, or choose another name")]
    NameDeleting {
        /// The name.
        name: Name,
        /// The delay before a retry.
        retry_after: Duration,
    },
    /// It is being deleted, and accepts no other request.
    #[error("instance {0} is being deleted: wait until it is deleted, then create it again")]
    Deleting(InstanceId),
    /// An update has another name.
    #[error(
        "instance names are immutable: {id} is named {name}; create another instance with the new name"
    )]
    NameImmutable {
        /// The instance.
        id: InstanceId,
        /// Its name.
        name: Name,
    },
    /// The change destroys data, and the caller did not consent.
    #[error(
        "the change of instance {id} is destructive: {lost}; repeat it with consent, or do not make it"
    )]
    NeedsConsent {
        /// The instance.
        id: InstanceId,
        /// What would happen, field by field.
        plan: Plan,
        /// What would be lost.
        lost: String,
    },
    /// The instance has changed since the caller read it.
    #[error(
        "instance {id} was changed since revision {expected}: it is at revision {found}; read it again"
    )]
    Changed {
        /// The instance.
        id: InstanceId,
        /// The caller's revision.
        expected: Revision,
        /// The current revision.
        found: Revision,
    },
    /// Its state does not permit the call.
    #[error("instance {id} is not ready: {found}; it must be {wanted}")]
    NotReady {
        /// The instance.
        id: InstanceId,
        /// The state that it is in.
        found: String,
        /// The state that the call needs.
        wanted: String,
        /// The delay before a retry, or `None` if it gets there only by another request.
        retry_after: Option<Duration>,
    },
    /// The region's cloud does not support the call.
    #[error("instance {id}: {what} is not offered in its region")]
    Unsupported {
        /// The instance.
        id: InstanceId,
        /// The call.
        what: &'static str,
    },
    /// The cloud cannot be reached now.
    #[error("instance {id}: the cloud cannot be reached now: {reason}; retry later")]
    Unavailable {
        /// The instance.
        id: InstanceId,
        /// The reason.
        reason: String,
        /// The delay before a retry.
        retry_after: Duration,
    },
    /// Its user data is sealed with a key that this process does not have, or that does not fit, and the call needs it. Nothing was changed.
    /// The instance can be read, started, stopped, rebooted and deleted meanwhile.
    #[error(
        "instance {id}: its user data is sealed with key {key}, which does not open it: ask an operator to restore that key in the keyring"
    )]
    Sealed {
        /// The instance.
        id: InstanceId,
        /// The id of the key.
        key: String,
    },
    /// It has no SSH key pair.
    #[error(
        "instance {0} has no SSH key pair: give access through a certificate authority or its user data"
    )]
    NoKey(InstanceId),
    /// The organization's quota would be exceeded. The caller may not read that quota, so the error has no amounts.
    #[error(
        "the organization's quota of {0} is used up: release some, or ask an administrator of the organization"
    )]
    OrganizationQuota(QuotaKind),
    /// Another image of the project has the name.
    #[error("the project has another image {0}: choose another name, or delete that image first")]
    ImageNameTaken(Name),
    /// The call failed inside this system. The log has the cause, which is not for tenants.
    #[error(
        "instance {0}: the call failed inside this system; ask an operator, whose log has the cause"
    )]
    Internal(InstanceId),
    /// Quota would be exceeded, or the ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The region refused, or failed. Controllers and [`inspect`](crate::service::Instances::inspect) return it; calls of tenants never do.
    #[error(transparent)]
    Server(ServerError),
    /// Other callers changed the record at every attempt.
    #[error("instance {0} is being changed by other callers: retry")]
    Busy(InstanceId),
    /// The catalog has lost a flavor that is in use. The catalog never does that by itself.
    #[error("flavor {0} is no longer in the catalog: ask an operator to restore it")]
    FlavorMissing(FlavorId),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for ComputeError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

impl From<ServerError> for ComputeError {
    fn from(error: ServerError) -> Self {
        if let ServerError::Store(error) = error {
            return Self::Store(error);
        }
        if let ServerError::Dependency(error) = error {
            return Self::Dependency(error);
        }
        Self::Server(error)
    }
}

impl From<RecordError> for ComputeError {
    fn from(error: RecordError) -> Self {
        Self::Dependency(DependencyError::Record(error))
    }
}

/// The meaning of an error to the caller: an HTTP status.
///
/// ```
/// use fleetwright_compute::Meaning;
///
/// assert_eq!(Meaning::Conflict.status(), 409);
/// assert_eq!(Meaning::Unavailable.code(), "unavailable");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meaning {
    /// 400: the request is malformed, or names a flavor or image that is not offered.
    InvalidRequest,
    /// 403: the caller lacks a permission, or a quota would be exceeded.
    Forbidden,
    /// 404: the record does not exist or is not visible.
    NotFound,
    /// 409: the present state does not permit it, or consent is missing.
    Conflict,
    /// 422: the request is well-formed but not possible.
    Unprocessable,
    /// 500: a fault of this system.
    Internal,
    /// 501: the region's cloud does not support it.
    NotOffered,
    /// 503: not possible now; retry.
    Unavailable,
}

impl Meaning {
    /// The HTTP status code.
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Unprocessable => 422,
            Self::Internal => 500,
            Self::NotOffered => 501,
            Self::Unavailable => 503,
        }
    }

    /// The code in error bodies.
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Unprocessable => "unprocessable_content",
            Self::Internal => "server_error",
            Self::NotOffered => "not_implemented",
            Self::Unavailable => "unavailable",
        }
    }
}
