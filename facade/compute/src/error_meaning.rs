//! What each error means to whoever called: one total match, so that no new error becomes an internal one unnoticed.

use std::time::Duration;

use fleetwright_identity::LedgerError;
use fleetwright_region::{
    network::RecordError,
    server::{DependencyError, ServerError},
};
use fleetwright_store::StoreError;

use crate::{ComputeError, Meaning, service::RETRY_AFTER};

impl ComputeError {
    /// What it means to the caller, as HTTP numbers it.
    pub fn meaning(&self) -> Meaning {
        match self {
            Self::BadField { .. } => Meaning::InvalidRequest,
            Self::Unprocessable { .. } | Self::NameImmutable { .. } => Meaning::Unprocessable,
            Self::NotFound(_) | Self::NoKey(_) => Meaning::NotFound,
            Self::Refused(_) => Meaning::Forbidden,
            Self::DependencyChecker(error) => of_ground(error),
            Self::NameTaken { .. }
            | Self::NameDeleting { .. }
            | Self::Deleting(_)
            | Self::NeedsConsent { .. }
            | Self::Changed { .. }
            | Self::ImageTaken(_)
            | Self::NotReady { .. } => Meaning::Conflict,
            Self::Unsupported { .. } => Meaning::NotOffered,
            Self::Unavailable { .. } | Self::Busy(_) => Meaning::Unavailable,
            Self::Ledger(error) => of_ledger(error),
            Self::Server(error) => of_server(error),
            Self::Machine { .. } | Self::FlavorMissing(_) => Meaning::Internal,
            Self::Store(error) => of_store(error),
        }
    }

    /// When to ask again, if that may help.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NameDeleting { retry_after, .. }
            | Self::NotReady { retry_after, .. }
            | Self::Unavailable { retry_after, .. } => Some(*retry_after),
            Self::Deleting(_) => Some(RETRY_AFTER),
            Self::BadField { .. }
            | Self::Unprocessable { .. }
            | Self::NotFound(_)
            | Self::Refused(_)
            | Self::DependencyChecker(_)
            | Self::NameTaken { .. }
            | Self::NameImmutable { .. }
            | Self::NeedsConsent { .. }
            | Self::Changed { .. }
            | Self::Unsupported { .. }
            | Self::NoKey(_)
            | Self::ImageTaken(_)
            | Self::Machine { .. }
            | Self::Ledger(_)
            | Self::Server(_)
            | Self::Busy(_)
            | Self::FlavorMissing(_)
            | Self::Store(_) => match self.meaning() {
                Meaning::Unavailable => Some(RETRY_AFTER),
                Meaning::InvalidRequest
                | Meaning::Forbidden
                | Meaning::NotFound
                | Meaning::Conflict
                | Meaning::Unprocessable
                | Meaning::Internal
                | Meaning::NotOffered => None,
            },
        }
    }
}

fn of_ground(error: &DependencyError) -> Meaning {
    match error {
        DependencyError::Record(error) => of_record(error),
        DependencyError::NoFlavor(_)
        | DependencyError::NoImage(_)
        | DependencyError::NotOffered(_)
        | DependencyError::Incompatible { .. }
        | DependencyError::ImageInOtherRegion { .. } => Meaning::InvalidRequest,
        // Of a kind that came later. It is at least told in its own words.
        _ => Meaning::Unprocessable,
    }
}

fn of_record(error: &RecordError) -> Meaning {
    match error {
        RecordError::NotFound { .. } => Meaning::NotFound,
        RecordError::Refused(_) => Meaning::Forbidden,
        RecordError::NameTaken { .. }
        | RecordError::InUse { .. }
        | RecordError::Deleting { .. }
        | RecordError::NotDeleting(_)
        | RecordError::TooMany { .. } => Meaning::Conflict,
        RecordError::Duplicate { .. } | RecordError::NotIn { .. } | RecordError::NoRegion(_) => {
            Meaning::Unprocessable
        }
        RecordError::InvalidNetwork(_) | RecordError::InvalidRule(_) => Meaning::InvalidRequest,
        RecordError::Busy { .. } | RecordError::Entropy(_) => Meaning::Unavailable,
        RecordError::Store(error) => of_store(error),
        _ => Meaning::Internal,
    }
}

fn of_ledger(error: &LedgerError) -> Meaning {
    match error {
        LedgerError::Exceeded(_) | LedgerError::Refused(_) => Meaning::Forbidden,
        LedgerError::LimitBelowUse { .. } => Meaning::Conflict,
        LedgerError::UnknownKind(_)
        | LedgerError::AllocationMismatch { .. }
        | LedgerError::NotCharged { .. }
        | LedgerError::Inconsistent { .. } => Meaning::Internal,
        LedgerError::Contended { .. } | LedgerError::AllocationContended { .. } => {
            Meaning::Unavailable
        }
        LedgerError::Store(error) => of_store(error),
        _ => Meaning::Internal,
    }
}

fn of_server(error: &ServerError) -> Meaning {
    match error {
        ServerError::NotFound(_)
        | ServerError::NoServerOwnedBy(_)
        | ServerError::Taken { .. }
        | ServerError::Deleting(_)
        | ServerError::NeedsConsent { .. }
        | ServerError::NotReady { .. } => Meaning::Conflict,
        // The service's own principal: the tenant's was judged before.
        ServerError::Refused(_) => Meaning::Internal,
        ServerError::NoRegion(_) | ServerError::Key { .. } | ServerError::Busy(_) => {
            Meaning::Unavailable
        }
        ServerError::UserDataTooLarge { .. } | ServerError::TooManySecurityGroups { .. } => {
            Meaning::InvalidRequest
        }
        ServerError::UserData { .. } => Meaning::Unprocessable,
        ServerError::Dependency(error) => of_ground(error),
        ServerError::Store(error) => of_store(error),
        _ => Meaning::Internal,
    }
}

fn of_store(error: &StoreError) -> Meaning {
    match error {
        StoreError::Conflict(_)
        | StoreError::Unavailable { .. }
        | StoreError::Full { .. }
        | StoreError::Compacted { .. }
        | StoreError::Ahead { .. }
        | StoreError::UnknownOutcome { .. } => Meaning::Unavailable,
        StoreError::Invalid(_) | StoreError::Corrupt { .. } | StoreError::Incompatible { .. } => {
            Meaning::Internal
        }
        _ => Meaning::Internal,
    }
}
