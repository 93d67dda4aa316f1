//! Why a call failed, in words and in the meaning that an interface gives to its caller.

use std::time::Duration;

use fleetwright_identity::{LedgerError, Refused};
use fleetwright_region::{
    ids::{FlavorId, ImageId},
    machine::MachineError,
    name::Name,
    network::RecordError,
    server::{DependencyError, Plan, ServerError},
};
use fleetwright_store::{Invalid, Revision, StoreError};

use crate::instance::InstanceId;

/// Why a call of this crate failed. Nothing was changed, unless the store says that it does not know.
///
/// Each says what, which and what to do. What the caller may not know of is told as what does not exist.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComputeError {
    /// A field does not have a form that is taken.
    #[error("{field}: {problem}")]
    BadField {
        /// Which field, as the interface names it: `spec.networking.securityGroups`.
        field: String,
        /// What is wrong with it, and what would be taken. It never cites user data.
        problem: String,
    },
    /// A field has a good form, and what it says cannot be.
    #[error("{field}: {problem}")]
    Unprocessable {
        /// Which field.
        field: String,
        /// Why it cannot be, and what could.
        problem: String,
    },
    /// There is no such instance, or the caller may not know of it.
    #[error("there is no instance {0}")]
    NotFound(InstanceId),
    /// The caller may know of it and may not do this.
    #[error("not permitted")]
    Refused(#[source] Refused),
    /// What the instance is to stand on will not do.
    #[error(transparent)]
    DependencyChecker(#[from] DependencyError),
    /// The network has an instance of this name.
    #[error("there is an instance {name} in the network already, {id}: choose another name")]
    NameTaken {
        /// Which name.
        name: Name,
        /// The instance that has it. Who asks again because an answer was lost reads it and compares.
        id: InstanceId,
    },
    /// The network has an instance of this name, which is going.
    #[error(
        "instance {name} is being deleted: its name is free when it is gone; ask again then, or choose another name"
    )]
    NameGoing {
        /// Which name.
        name: Name,
        /// When to ask again.
        retry_after: Duration,
    },
    /// It is being deleted, and takes no other wish.
    #[error("instance {0} is being deleted: wait until it is gone, then create it anew")]
    Deleting(InstanceId),
    /// A name was to be changed.
    #[error(
        "instance names are immutable: {id} is {name} and stays so; create another one of the new name"
    )]
    NameImmutable {
        /// Which instance.
        id: InstanceId,
        /// Its name.
        name: Name,
    },
    /// The change would destroy something, and the caller did not consent.
    #[error("the change of instance {id} is destructive: {lost}; consent to it, or leave it")]
    NeedsConsent {
        /// Which instance.
        id: InstanceId,
        /// What would happen, field by field.
        plan: Plan,
        /// What would be lost.
        lost: String,
    },
    /// The instance is not as the caller has read it.
    #[error("instance {id} was changed since revision {expected}: it is at {found}; read it again")]
    Changed {
        /// Which instance.
        id: InstanceId,
        /// What the caller had.
        expected: Revision,
        /// What it is.
        found: Revision,
    },
    /// It is not in a state in which that can be done.
    #[error("instance {id} is not ready: {found}; it must be {wanted}")]
    NotReady {
        /// Which instance.
        id: InstanceId,
        /// What it is.
        found: String,
        /// What it would have to be.
        wanted: String,
        /// When to ask again.
        retry_after: Duration,
    },
    /// The region's cloud does not offer it.
    #[error("instance {id}: {what} is not offered in its region")]
    Unsupported {
        /// Which instance.
        id: InstanceId,
        /// What.
        what: &'static str,
    },
    /// The cloud cannot be asked now.
    #[error("instance {id}: the cloud cannot be asked now: {reason}")]
    Unavailable {
        /// Which instance.
        id: InstanceId,
        /// Why.
        reason: String,
        /// When to ask again.
        retry_after: Duration,
    },
    /// It has no key pair of its own.
    #[error(
        "instance {0} has no key pair: let people in by a certificate authority, or by its user data"
    )]
    NoKey(InstanceId),
    /// Another image has the id.
    #[error("there is an image {0} already, and it is another one: choose another id")]
    ImageTaken(ImageId),
    /// What is asked of its machine failed on this side of the cloud.
    #[error("instance {id}: its machine could not be asked; an operator has to look at it")]
    Machine {
        /// Which instance.
        id: InstanceId,
        /// Why. It holds no secret, and is not for tenants.
        source: MachineError,
    },
    /// Quota would be exceeded, or the ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The region refused, or failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Others wrote the record again and again.
    #[error("instance {0} is being changed by others: ask again")]
    Busy(InstanceId),
    /// The catalog lost a flavor that an instance has, which it never does.
    #[error("flavor {0} is not in the catalog any more: an operator has to bring it back")]
    FlavorVanished(FlavorId),
    /// The store did not do it.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for ComputeError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

impl From<RecordError> for ComputeError {
    fn from(error: RecordError) -> Self {
        Self::DependencyChecker(DependencyError::Record(error))
    }
}

/// What an error means to whoever called, as HTTP numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meaning {
    /// 400: the request does not have a form that is taken, or names what cannot be had.
    InvalidRequest,
    /// 403: the caller may not, or quota would be exceeded.
    Forbidden,
    /// 404: there is no such thing, or the caller may not know of it.
    NotFound,
    /// 409: not now, or not without a word more.
    Conflict,
    /// 422: what is asked for cannot be.
    Unprocessable,
    /// 500: something is broken here.
    Internal,
    /// 501: the region's cloud does not offer it.
    NotOffered,
    /// 503: not now; ask again.
    Unavailable,
}

impl Meaning {
    /// The number.
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

    /// The word that error bodies have for it.
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
