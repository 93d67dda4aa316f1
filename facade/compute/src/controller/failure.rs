//! Why a pass failed, and when it is worth making again.

use fleetwright_identity::LedgerError;
use fleetwright_region::{
    network::RecordError,
    server::{DependencyError, ServerError},
};
use fleetwright_store::{Advice, StoreError};

use crate::ComputeError;

/// The store's error that an error comes from, if it does.
pub(crate) fn store_error(error: &ComputeError) -> Option<&StoreError> {
    if let ComputeError::Store(source)
    | ComputeError::Ledger(LedgerError::Store(source))
    | ComputeError::Server(ServerError::Store(source)) = error
    {
        return Some(source);
    }
    let (ComputeError::DependencyChecker(ground)
    | ComputeError::Server(ServerError::Dependency(ground))) = error
    else {
        return None;
    };
    if let DependencyError::Record(RecordError::Store(source)) = ground {
        Some(source)
    } else {
        None
    }
}

/// Whether a pass failed only because somebody else was faster.
pub(crate) fn is_conflict(error: &ComputeError) -> bool {
    store_error(error).is_some_and(|error| error.conflict().is_some())
}

/// When it is worth trying again.
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
