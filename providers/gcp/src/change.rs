//! Stopping, starting and terminating.
//!
//! Owns the meaning of a refused change. Compute Engine changes one instance per call, and the call is
//! sent without a read before it: a stale read could report a stopping instance as running. An instance
//! must never be changed through its name, only through its number.
//!
//! 1. An instance that this handle has deleted is not changed: a terminate succeeds, a stop or start fails
//!    with a wrong state.
//! 2. Send the change. A start waits `launch_wait` for its operation to fail.
//! 3. A refusal is explained by a read: not found may mean that the instance has just ended, a conflict that
//!    it is already in the requested state, and a refused deletion that one is running.

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, InvalidValue, Operation, Problem,
    ProvisionError, Result, RetryAdvice, Scope, async_trait,
};
use fleetwright_provider_support::{Change, ChangeInstances, ReadInstances as _};
use futures_util::{StreamExt as _, stream};
use google_cloud_compute_v1::model::Operation as NativeOperation;

use crate::{
    GcpProvisioner,
    address::Address,
    client::OperationScope,
    error::{Failure, GcpFailure as _},
    history,
    operations::Outcome,
    resolve::Unclear,
    state::SUSPENDED,
};

#[async_trait]
impl ChangeInstances for GcpProvisioner {
    /// Changes many instances, each with its own call.
    async fn change_once(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let call = self.call(operation);
        let each: Vec<_> = ids
            .iter()
            .map(|id| self.send_change(&call, change, id))
            .collect();
        let width = self.options.concurrency.get() as usize;
        stream::iter(each).buffered(width).collect().await
    }
}

impl GcpProvisioner {
    /// Changes one instance, unless this handle knows that it has ended.
    async fn send_change(&self, call: &Call, change: Change, id: &InstanceId) -> Result<()> {
        let Some(at) = &self.address(id) else {
            return Err(self.not_found_yet(call, id));
        };
        let ended = self.remembered_end(at).await;
        let ended = ended.map_err(|failure| {
            let error = failure.into_error(call, self.about(id, at));
            error.with_effect(Effect::None)
        })?;
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
            Change::Start => {
                self.memory.forget_stop(at.number);
                self.client.start(at).await
            }
        };
        match sent {
            Ok(operation) => self.await_accepted(call, change, id, at, operation).await,
            Err(failure) if failure.is_not_found() => self.handle_not_found(call, change, id).await,
            Err(failure) => self.explain_refusal(call, change, id, at, failure).await,
        }
    }

    /// Returns the state of an instance that this handle has deleted or seen terminated. A deletion
    /// that failed is forgotten, so that the next one is sent.
    async fn remembered_end(
        &self,
        at: &Address,
    ) -> std::result::Result<Option<CloudInstanceState>, Failure> {
        if self.memory.end(at.number).is_some() {
            return Ok(Some(CloudInstanceState::Terminated));
        }
        let window = self.capabilities.consistency_window;
        let Some((operation, _)) = self.memory.delete(at.number, window) else {
            return Ok(None);
        };
        Ok(match self.read_outcome(&at.zone, &operation).await? {
            Outcome::Running => Some(CloudInstanceState::Terminating),
            Outcome::Succeeded => Some(CloudInstanceState::Terminated),
            Outcome::Failed(_) | Outcome::Expired => {
                self.memory.forget_delete(at.number);
                None
            }
        })
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
                self.await_operation(OperationScope::Zone(&at.zone), operation, timeout)
                    .await
            }
            Change::Terminate | Change::Stop => operation,
        };
        if let Some(failure) = history::failure(&operation) {
            return self.explain_refusal(call, change, id, at, failure).await;
        }
        match change {
            Change::Terminate => self.memory.record_delete(&operation),
            Change::Stop => self.memory.record_stop(at.number),
            Change::Start => {}
        }
        Ok(())
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
        // A quota that demands a delay is not about this instance.
        let throttled = failure.is_throttled() && failure.retry_after.is_none();
        let error = failure.into_error(call, self.about(id, at));
        if change == Change::Terminate && throttled {
            return self.explain_refused_delete(call, id, error).await;
        }
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
            | (Change::Stop, CloudInstanceState::Stopped) => Ok(()),
            (Change::Stop, CloudInstanceState::Stopping) => {
                // It may be stopping because somebody deletes it.
                let info = self.resolve_shown(vec![info], Unclear::Fail).await;
                let to_error = |failure: Failure| failure.into_error(call, self.about(id, at));
                let info = info.map_err(|failure| to_error(failure).with_effect(Effect::None))?;
                let ending = info.into_iter().find(|info| info.state.is_ending());
                ending.map_or(Ok(()), |info| {
                    Err(call.wrong_state(id, info.state, change.needed_state()))
                })
            }
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

    /// Returns the result of a deletion that was refused as too frequent. Compute Engine refuses a
    /// repeated deletion in this way, so one that is running is a success.
    async fn explain_refused_delete(
        &self,
        call: &Call,
        id: &InstanceId,
        refusal: ProvisionError,
    ) -> Result<()> {
        let ended = |info: &InstanceInfo| info.state.is_ending();
        match self.describe_one(call.operation(), id).await {
            Ok(info) if ended(&info) => Ok(()),
            Ok(_) | Err(_) => Err(refusal),
        }
    }

    /// Starts a suspended instance, with its memory as it was.
    async fn resume(&self, call: &Call, id: &InstanceId, at: &Address) -> Result<()> {
        let to_error = |failure: Failure| failure.into_error(call, self.about(id, at));
        let operation = self.client.resume(at).await.map_err(to_error)?;
        let timeout = self.options.launch_wait;
        let operation = self
            .await_operation(OperationScope::Zone(&at.zone), operation, timeout)
            .await;
        history::failure(&operation).map_or(Ok(()), |failure| Err(to_error(failure)))
    }
}

/// Whether the instance is suspended, which only its native state shows.
fn is_suspended(info: &InstanceInfo) -> bool {
    info.native_state.as_deref() == Some(SUSPENDED)
}
