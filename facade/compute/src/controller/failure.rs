//! Why a reconcile failed, and when to repeat it.

use fleetwright_identity::LedgerError;
use fleetwright_region::{
    network::RecordError,
    server::{DependencyError, ServerError},
};
use fleetwright_store::{Advice, StoreError};

use crate::ComputeError;

/// The store's error that caused an error, if any.
pub(crate) fn store_error(error: &ComputeError) -> Option<&StoreError> {
    if let ComputeError::Store(source)
    | ComputeError::Ledger(LedgerError::Store(source))
    | ComputeError::Server(ServerError::Store(source)) = error
    {
        return Some(source);
    }
    let (ComputeError::Dependency(dependency)
    | ComputeError::Server(ServerError::Dependency(dependency))) = error
    else {
        return None;
    };
    if let DependencyError::Record(RecordError::Store(source)) = dependency {
        Some(source)
    } else {
        None
    }
}

/// Whether a reconcile failed because another writer changed a record first.
pub(crate) fn is_conflict(error: &ComputeError) -> bool {
    store_error(error).is_some_and(|error| error.conflict().is_some())
}

/// Whether a reconcile stopped because a newer version wrote a record.
pub(super) fn is_left_alone(error: &ComputeError) -> bool {
    matches!(store_error(error), Some(StoreError::Incompatible { .. }))
}

/// When to retry.
pub(crate) fn advice(error: &ComputeError) -> Advice {
    match (store_error(error), error) {
        (Some(source), _) => source.advice(),
        (None, ComputeError::Server(_) | ComputeError::Busy(_)) => Advice::Later,
        (
            None,
            ComputeError::Ledger(
                LedgerError::Contended { .. } | LedgerError::AllocationContended { .. },
            ),
        ) => Advice::Later,
        (None, _) => Advice::GiveUp,
    }
}
