//! The items of a batch that may be retried, and which of them to send again.
//!
//! Owns which errors allow another attempt of a call. It never sleeps and never sends a call.

use std::time::Duration;

use super::{
    Request,
    retry_state::{FailureHistory, RetryState},
};
use crate::{Effect, Operation, ProvisionError, Result};

/// One item of a batch: its last result, and the errors of its earlier attempts.
pub(super) struct BatchItem<T> {
    pub(super) result: Option<Result<T>>,
    history: FailureHistory,
}

impl<T> Default for BatchItem<T> {
    fn default() -> Self {
        Self {
            result: None,
            history: FailureHistory::default(),
        }
    }
}

impl<T> BatchItem<T> {
    /// Stores the result of an attempt, and returns its error, merged with earlier ones.
    pub(super) fn set(&mut self, result: Result<T>) -> Option<ProvisionError> {
        let result = result.map_err(|error| self.history.merge(error));
        let error = result.as_ref().err().cloned();
        self.result = Some(result);
        error
    }
}

/// The summary of one attempt of a batch.
#[derive(Default)]
pub(super) struct Round {
    /// The indexes of the items to retry.
    pub(super) retry: Vec<usize>,
    /// The longest delay that one of them needs.
    pub(super) min_delay: Option<Duration>,
    /// The error of the last of them.
    pub(super) last_error: Option<ProvisionError>,
    pub(super) any_success: bool,
}

impl Round {
    /// Adds the result of the item `at`: its error, or `None` if it succeeded.
    pub(super) fn add(
        &mut self,
        at: usize,
        error: Option<ProvisionError>,
        request: &Request<'_>,
        state: &RetryState<'_>,
    ) {
        let Some(error) = error else {
            self.any_success = true;
            return;
        };
        // An item whose delay ends after the deadline must not delay the others.
        let delay = min_delay(request, &error).filter(|delay| state.is_before_deadline(*delay));
        if let Some(delay) = delay {
            self.retry.push(at);
            self.min_delay = self.min_delay.max(Some(delay));
            self.last_error = Some(error);
        }
    }
}

/// Returns the least delay before this call may be sent again, or `None` if it must not be.
pub(super) fn min_delay(request: &Request<'_>, error: &ProvisionError) -> Option<Duration> {
    let without_effect = error.effect() == Effect::None;
    let allowed = match request.operation() {
        Operation::LaunchInstance | Operation::LaunchInstances => {
            request.token.is_some() || without_effect
        }
        Operation::RebootInstance => without_effect,
        Operation::TerminateInstance
        | Operation::TerminateInstances
        | Operation::StopInstance
        | Operation::StopInstances
        | Operation::StartInstance
        | Operation::StartInstances
        | Operation::DescribeInstance
        | Operation::DescribeInstances
        | Operation::ListInstances
        | Operation::StreamInstances
        | Operation::FindLaunch
        | Operation::AccountId
        | Operation::UpdateTags
        | Operation::ResizeInstance
        | Operation::ReimageInstance
        | Operation::ConsoleOutput
        | Operation::ConsoleSession
        | Operation::SnapshotImage
        | Operation::DeleteImage => true,
    };
    error.retry().delay().filter(|_| allowed)
}
