//! Stopping, starting and terminating.
//!
//! Owns the meaning of a refused change. Compute Engine changes one instance per call. Before that,
//! one list of operations for many instances shows which of them may be changed: operations never
//! lag, and a repeated delete is refused as if the caller were too fast. An instance must never be
//! changed through its name, only through its number.
//!
//! 1. List the operations of all instances, 100 per call.
//! 2. An instance that is being deleted, was deleted, or was never created is not changed: a terminate
//!    succeeds, a stop or start fails with a wrong state.
//! 3. Send the change. A start waits `launch_wait` for its operation to fail.
//! 4. A refusal is explained by a read: not found may mean that the instance has just ended, and a
//!    conflict may mean that it is already in the requested state.

use std::collections::BTreeMap;

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, InvalidValue, Operation, Problem,
    Result, RetryAdvice, Scope, async_trait,
};
use fleetwright_provider_support::{
    Change, ChangeInstances, ReadInstances as _,
    batch::{repeat_error, results_in_order},
};
use futures_util::{StreamExt as _, stream};
use google_cloud_compute_v1::model::Operation as NativeOperation;

use crate::{
    GcpProvisioner,
    address::Address,
    error::{ErrorContext, Failure, GcpFailure as _},
    history::{self, History},
    read::summary_of,
    state::SUSPENDED,
};

#[async_trait]
impl ChangeInstances for GcpProvisioner {
    /// Changes many instances, after one list of their operations.
    async fn change_once(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let call = self.call(operation);
        let at: Vec<_> = ids.iter().map(|id| self.address(id)).collect();
        let known = || at.iter().flatten();
        let zones = known().map(|at| at.zone.as_str());
        let mut numbers: Vec<_> = known().map(|at| at.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let histories = match self.histories(zones, &numbers).await {
            Ok(histories) => histories,
            Err(failure) if failure.is_unavailable() && self.group_by_zone(ids).len() > 1 => {
                return self.change_by_zone(operation, change, ids).await;
            }
            Err(failure) => {
                let error = failure.into_error(&call, ErrorContext::default());
                let error = error.with_effect(Effect::None);
                return repeat_error(ids, &error);
            }
        };
        let each: Vec<_> = ids
            .iter()
            .zip(&at)
            .map(|(id, at)| {
                let history = at.as_ref().map(|at| summary_of(&histories, at.number));
                self.send_change(&call, change, id, at.as_ref(), history)
            })
            .collect();
        let width = self.options.concurrency.get() as usize;
        stream::iter(each).buffered(width).collect().await
    }
}

impl GcpProvisioner {
    /// Changes many instances zone by zone, so that a zone that does not respond affects no other.
    async fn change_by_zone(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let mut results = BTreeMap::new();
        for some in self.group_by_zone(ids).into_values() {
            let changed = Box::pin(self.change_once(operation, change, &some)).await;
            results.extend(some.into_iter().zip(changed));
        }
        let call = self.call(operation);
        results_in_order(ids, &results, |id| self.not_found_yet(&call, id))
    }

    /// Changes one instance, unless its operations show that it has ended.
    async fn send_change(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: Option<&Address>,
        history: Option<History>,
    ) -> Result<()> {
        let (Some(at), Some(history)) = (at, history) else {
            return Err(self.not_found_yet(call, id));
        };
        let ended = match history {
            History::Deleting => Some(CloudInstanceState::Terminating),
            History::Deleted(_) | History::CreateFailed(_) => Some(CloudInstanceState::Terminated),
            History::Empty | History::Creating | History::Created(_) => None,
        };
        match (change, ended) {
            (Change::Terminate, Some(_)) => return Ok(()),
            (Change::Stop | Change::Start, Some(state)) => {
                return Err(call.wrong_state(id, state, change.needed_state()));
            }
            (Change::Terminate | Change::Stop | Change::Start, None) => {}
        }
        let sent = match change {
            Change::Terminate => self.client.delete(at).await,
            Change::Stop => self.client.stop(at, self.options.discard_local_ssds).await,
            Change::Start => self.client.start(at).await,
        };
        match sent {
            Ok(operation) => self.await_accepted(call, change, id, at, operation).await,
            Err(failure) if failure.is_not_found() => self.handle_not_found(call, change, id).await,
            Err(failure) => self.explain_refusal(call, change, id, at, failure).await,
        }
    }

    /// Waits for the operation of a start, because Compute Engine reports missing capacity only
    /// there. Other changes are done when they are accepted.
    async fn await_accepted(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: &Address,
        operation: NativeOperation,
    ) -> Result<()> {
        let operation = match change {
            Change::Start => {
                let timeout = self.options.launch_wait;
                self.await_operation(&at.zone, operation, timeout).await
            }
            Change::Terminate | Change::Stop => operation,
        };
        match history::failure(&operation) {
            Some(failure) => self.explain_refusal(call, change, id, at, failure).await,
            None => Ok(()),
        }
    }

    /// Returns the result of a change that Compute Engine refused as not found: the instance may
    /// have ended in the meantime.
    async fn handle_not_found(&self, call: &Call, change: Change, id: &InstanceId) -> Result<()> {
        // A stale read may show it alive.
        let ended = |info: &InstanceInfo| info.state.is_ending();
        let read = self.describe_until(call.operation(), id, ended).await;
        let info = read.map_err(|error| error.with_effect(Effect::None))?;
        match change {
            Change::Terminate if info.state.is_ending() => Ok(()),
            Change::Terminate => Err(self.not_found_yet(call, id)),
            Change::Stop | Change::Start if info.state.is_ending() => {
                Err(call.wrong_state(id, info.state, change.needed_state()))
            }
            Change::Stop | Change::Start => Err(self.not_found_yet(call, id)),
        }
    }

    /// Returns the result of a change that Compute Engine refused. If the refusal may be about the
    /// state of the instance, a read decides: a change that has happened already succeeds, one that
    /// the state forbids is a conflict or a wrong state.
    async fn explain_refusal(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: &Address,
        failure: Failure,
    ) -> Result<()> {
        if change == Change::Stop && failure.is_about_local_ssds() {
            let instead =
                "set GcpOptions::discard_local_ssds to discard the content of its local SSDs";
            let problem = Problem::NotOffered {
                instead: instead.to_owned(),
            };
            return Err(call.invalid(InvalidValue::new("stop", problem)));
        }
        let by_state = failure.may_be_about_state();
        let error = failure.into_error(call, self.about(id, at));
        if change == Change::Terminate || !by_state {
            return Err(error);
        }
        // A state that would have allowed the change is a stale read, and is read again.
        let explained = |info: &InstanceInfo| match (change, info.state) {
            (_, CloudInstanceState::Terminating | CloudInstanceState::Terminated)
            | (Change::Start, CloudInstanceState::Stopping)
            | (Change::Stop, CloudInstanceState::Pending) => true,
            (Change::Start, CloudInstanceState::Stopped) => is_suspended(info),
            (Change::Start | Change::Stop | Change::Terminate, _) => false,
        };
        let read = self.describe_until(call.operation(), id, explained).await;
        let info = read.map_err(|error| error.with_effect(Effect::None))?;
        match (change, info.state) {
            (_, CloudInstanceState::Terminating | CloudInstanceState::Terminated) => {
                Err(call.wrong_state(id, info.state, change.needed_state()))
            }
            (Change::Start, CloudInstanceState::Stopped) if is_suspended(&info) => {
                self.resume(call, id, at).await
            }
            (Change::Start, CloudInstanceState::Pending | CloudInstanceState::Running)
            | (Change::Stop, CloudInstanceState::Stopped | CloudInstanceState::Stopping) => Ok(()),
            (Change::Start, CloudInstanceState::Stopping)
            | (Change::Stop, CloudInstanceState::Pending) => {
                let message =
                    format!("instance {id} is changing its state; retry when that is done");
                let retry = RetryAdvice::After(self.capabilities.poll_interval);
                let error = call.conflict(&message, retry);
                Err(error.with_scope(Scope::Instance(id.clone())))
            }
            // The state does not explain the refusal.
            (Change::Start, CloudInstanceState::Stopped)
            | (Change::Stop, CloudInstanceState::Running)
            | (Change::Terminate, _) => Err(error),
        }
    }

    /// Starts a suspended instance, with its memory as it was.
    async fn resume(&self, call: &Call, id: &InstanceId, at: &Address) -> Result<()> {
        let to_error = |failure: Failure| failure.into_error(call, self.about(id, at));
        let operation = self.client.resume(at).await.map_err(to_error)?;
        let timeout = self.options.launch_wait;
        let operation = self.await_operation(&at.zone, operation, timeout).await;
        history::failure(&operation).map_or(Ok(()), |failure| Err(to_error(failure)))
    }
}

/// Whether the instance is suspended, which only its native state shows.
fn is_suspended(info: &InstanceInfo) -> bool {
    info.native_state.as_deref() == Some(SUSPENDED)
}
