//! The meaning of each error to the caller: one total match, so that a new error does not become an internal one unnoticed.

use std::time::Duration;

use fleetwright_identity::{LedgerError, ScopeClosed};
use fleetwright_region::{
    network::RecordError,
    server::{DependencyError, ServerError},
};
use fleetwright_store::{Effect, StoreError};

use crate::{ComputeError, Meaning, service::RETRY_AFTER};

impl ComputeError {
    /// Its meaning to the caller, with the HTTP status.
    ///
    /// ```
    /// use fleetwright_compute::{ComputeError, Meaning};
    ///
    /// let error = ComputeError::BadField { field: "limit".to_owned(), problem: "use 1 to 500".to_owned() };
    /// assert_eq!(error.meaning(), Meaning::InvalidRequest);
    /// assert_eq!((error.meaning().status(), error.meaning().code()), (400, "invalid_request"));
    /// assert_eq!((error.to_string().as_str(), error.retry_after()), ("limit: use 1 to 500", None));
    /// ```
    pub fn meaning(&self) -> Meaning {
        match self {
            Self::BadField { .. } => Meaning::InvalidRequest,
            Self::Unprocessable { .. } | Self::NameImmutable { .. } => Meaning::Unprocessable,
            Self::NotFound(_) | Self::NoKey(_) => Meaning::NotFound,
            Self::Refused(_) | Self::OrganizationQuota(_) => Meaning::Forbidden,
            Self::Dependency(error) => dependency_meaning(error),
            Self::NameTaken { .. }
            | Self::NameDeleting { .. }
            | Self::Deleting(_)
            | Self::NeedsConsent { .. }
            | Self::Changed { .. }
            | Self::ImageNameTaken(_)
            | Self::NotReady { .. } => Meaning::Conflict,
            Self::Unsupported { .. } => Meaning::NotOffered,
            Self::Unavailable { .. } | Self::Busy(_) | Self::Sealed { .. } => Meaning::Unavailable,
            Self::Ledger(error) => ledger_meaning(error),
            Self::Server(error) => server_meaning(error),
            Self::Internal(_) | Self::FlavorMissing(_) => Meaning::Internal,
            Self::Store(error) => store_meaning(error),
        }
    }

    /// The text for the tenant, in one line: the error with its sources. The sources of an error that the tenant did not cause are for
    /// the log only, because they name records of this system.
    ///
    /// ```
    /// use fleetwright_compute::ComputeError;
    ///
    /// let error = ComputeError::BadField { field: "limit".to_owned(), problem: "use 1 to 500".to_owned() };
    /// assert_eq!(error.tenant_message(), "limit: use 1 to 500");
    /// ```
    pub fn tenant_message(&self) -> String {
        if matches!(self, Self::Server(_)) {
            return "the call failed inside this system; ask an operator".to_owned();
        }
        let mut message = self.to_string();
        match self.meaning() {
            Meaning::Internal | Meaning::Unavailable => {}
            Meaning::InvalidRequest
            | Meaning::Forbidden
            | Meaning::NotFound
            | Meaning::Conflict
            | Meaning::Unprocessable
            | Meaning::NotOffered => {
                let mut source = std::error::Error::source(self);
                while let Some(cause) = source {
                    message = format!("{message}: {cause}");
                    source = cause.source();
                }
            }
        }
        message
    }

    /// Whether the call may have been carried out although it failed: the store does not know whether it committed. Read what the call
    /// changes before it is repeated.
    ///
    /// ```
    /// use fleetwright_compute::ComputeError;
    /// use fleetwright_store::StoreError;
    ///
    /// let lost = StoreError::UnknownOutcome { reason: "connection lost".to_owned(), source: None };
    /// let error = ComputeError::from(lost);
    /// assert!(error.may_be_done());
    /// assert_eq!(error.retry_after(), None);
    /// ```
    pub fn may_be_done(&self) -> bool {
        let error = if let Self::Store(error) | Self::Server(ServerError::Store(error)) = self {
            Some(error)
        } else if let Self::Dependency(error) | Self::Server(ServerError::Dependency(error)) = self
        {
            store_error_of_dependency(error)
        } else if let Self::Ledger(error) = self {
            store_error_of_ledger(error)
        } else {
            None
        };
        error.is_some_and(|error| error.effect() == Effect::Unknown)
    }

    /// The delay before a retry, or `None` if a retry of the same request cannot succeed, or the call may have been carried out.
    pub fn retry_after(&self) -> Option<Duration> {
        if self.may_be_done() {
            return None;
        }
        match self {
            Self::NameDeleting { retry_after, .. } | Self::Unavailable { retry_after, .. } => {
                Some(*retry_after)
            }
            Self::NotReady { retry_after, .. } => *retry_after,
            Self::BadField { .. }
            | Self::Unprocessable { .. }
            | Self::NotFound(_)
            | Self::Refused(_)
            | Self::Dependency(_)
            | Self::NameTaken { .. }
            // It accepts no request any more.
            | Self::Deleting(_)
            | Self::NameImmutable { .. }
            | Self::NeedsConsent { .. }
            | Self::Changed { .. }
            | Self::Unsupported { .. }
            | Self::NoKey(_)
            | Self::ImageNameTaken(_)
            | Self::OrganizationQuota(_)
            | Self::Internal(_)
            | Self::Ledger(_)
            | Self::Server(_)
            | Self::Busy(_)
            | Self::Sealed { .. }
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

fn store_error_of_dependency(error: &DependencyError) -> Option<&StoreError> {
    let DependencyError::Record(error) = error else {
        return None;
    };
    if let RecordError::Store(error) = error {
        Some(error)
    } else if let RecordError::Ledger(error) = error {
        store_error_of_ledger(error)
    } else {
        None
    }
}

fn store_error_of_ledger(error: &LedgerError) -> Option<&StoreError> {
    if let LedgerError::Store(error) | LedgerError::Closed(ScopeClosed::Store(error)) = error {
        Some(error)
    } else {
        None
    }
}

fn dependency_meaning(error: &DependencyError) -> Meaning {
    match error {
        DependencyError::Record(error) => record_meaning(error),
        DependencyError::NoFlavor(_)
        | DependencyError::NoImage(_)
        | DependencyError::NotOffered(_)
        | DependencyError::Incompatible { .. }
        | DependencyError::ImageInOtherRegion { .. } => Meaning::InvalidRequest,
        // A kind that was added later. Its message is shown in any case.
        _ => Meaning::Unprocessable,
    }
}

fn record_meaning(error: &RecordError) -> Meaning {
    match error {
        RecordError::NotFound { .. } => Meaning::NotFound,
        RecordError::Refused(_) => Meaning::Forbidden,
        RecordError::NameTaken { .. }
        | RecordError::InUse { .. }
        | RecordError::Deleting { .. }
        | RecordError::NotDeleting(_)
        | RecordError::TooMany { .. } => Meaning::Conflict,
        RecordError::Duplicate { .. }
        | RecordError::NotIn { .. }
        | RecordError::NoRegion(_)
        | RecordError::InvalidNetwork(_)
        | RecordError::InvalidRule(_) => Meaning::Unprocessable,
        RecordError::Busy { .. } | RecordError::Entropy(_) => Meaning::Unavailable,
        RecordError::Ledger(error) => ledger_meaning(error),
        RecordError::OrganizationQuota(_) => Meaning::Forbidden,
        RecordError::Store(error) => store_meaning(error),
        _ => Meaning::Internal,
    }
}

fn ledger_meaning(error: &LedgerError) -> Meaning {
    match error {
        LedgerError::Exceeded(_) | LedgerError::Refused(_) => Meaning::Forbidden,
        LedgerError::LimitBelowUse { .. } => Meaning::Conflict,
        LedgerError::Closed(closed) => match closed {
            ScopeClosed::Deleting { .. } => Meaning::Conflict,
            ScopeClosed::Missing { .. } => Meaning::NotFound,
            ScopeClosed::Store(error) => store_meaning(error),
        },
        LedgerError::UnknownKind(_)
        | LedgerError::AllocationMismatch { .. }
        | LedgerError::NotCharged { .. }
        | LedgerError::Inconsistent { .. } => Meaning::Internal,
        LedgerError::Contended { .. } | LedgerError::AllocationContended { .. } => {
            Meaning::Unavailable
        }
        LedgerError::Store(error) => store_meaning(error),
        _ => Meaning::Internal,
    }
}

fn server_meaning(error: &ServerError) -> Meaning {
    match error {
        ServerError::NotFound(_)
        | ServerError::NoServerOwnedBy(_)
        | ServerError::Taken { .. }
        | ServerError::Deleting(_)
        | ServerError::NeedsConsent { .. }
        | ServerError::NotReady { .. } => Meaning::Conflict,
        // The service's own principal lacks a permission: the tenant's was checked before.
        ServerError::Refused(_) => Meaning::Internal,
        ServerError::NoRegion(_)
        | ServerError::Key { .. }
        | ServerError::Sealed { .. }
        | ServerError::Busy(_) => Meaning::Unavailable,
        ServerError::UserDataTooLarge { .. } | ServerError::TooManySecurityGroups { .. } => {
            Meaning::InvalidRequest
        }
        ServerError::UserData { .. } => Meaning::Unprocessable,
        ServerError::Dependency(error) => dependency_meaning(error),
        ServerError::Store(error) => store_meaning(error),
        _ => Meaning::Internal,
    }
}

fn store_meaning(error: &StoreError) -> Meaning {
    match error {
        StoreError::Conflict(_)
        | StoreError::Unavailable { .. }
        | StoreError::Full { .. }
        | StoreError::Compacted { .. }
        | StoreError::Ahead { .. }
        | StoreError::UnknownOutcome { .. }
        // A record of a newer version: another replica can, and this one after its upgrade.
        | StoreError::Incompatible { .. } => Meaning::Unavailable,
        StoreError::Invalid(_) | StoreError::Corrupt { .. } => Meaning::Internal,
        _ => Meaning::Internal,
    }
}
