//! Stopping, starting and terminating: what operations forbid, and what a refusal means.
//!
//! Compute Engine changes one instance by one call. Whether an instance may be changed is asked of its
//! operations, with one list for many: they are never behind, and a delete that is repeated on an
//! instance that is being deleted is refused as if the caller were too fast.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, InvalidValue, Operation, Problem,
    Result, RetryAdvice, Scope,
};
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use google_cloud_compute_v1::model::Operation as NativeOperation;

use crate::{
    GcpProvisioner,
    address::Address,
    error::{ErrorContext, Failure, GcpFailure as _},
    history::{self, Fate},
    read::fate_of,
    state::SUSPENDED,
};

/// A call that changes instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Terminate,
    Stop,
    Start,
}

impl Change {
    /// The state that it needs, in words.
    const fn needed(self) -> &'static str {
        match self {
            Self::Terminate => "there",
            Self::Stop => "running",
            Self::Start => "stopped",
        }
    }
}

impl GcpProvisioner {
    /// Changes many, one by one in what becomes of them.
    pub(crate) async fn changed(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let once = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.changed_once(operation, change, &ids).await })
        };
        // One that is named twice is changed once: the second call would be refused.
        let each: BTreeSet<_> = ids.iter().cloned().collect();
        let each: Vec<_> = each.into_iter().collect();
        let answers = self
            .fresh
            .retry_not_found(&each, &self.capabilities, once)
            .await;
        let answers: BTreeMap<_, _> = each.into_iter().zip(answers).collect();
        self.in_order(&self.call(operation), ids, &answers)
    }

    /// The answers for `ids`, each where it is asked for.
    fn in_order(
        &self,
        call: &Call,
        ids: &[InstanceId],
        answers: &BTreeMap<InstanceId, Result<()>>,
    ) -> Vec<Result<()>> {
        let answer = |id| answers.get(id).cloned();
        let each = ids
            .iter()
            .map(|id| answer(id).unwrap_or_else(|| Err(self.missing(call, id))));
        each.collect()
    }

    /// Changes many zone by zone, so that one that cannot be reached takes no other with it.
    async fn changed_apart(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let mut answers = BTreeMap::new();
        for some in self.by_zone(ids).into_values() {
            let changed = Box::pin(self.changed_once(operation, change, &some)).await;
            answers.extend(some.into_iter().zip(changed));
        }
        self.in_order(&self.call(operation), ids, &answers)
    }

    async fn changed_once(
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
            Err(failure) if failure.is_breakdown() && self.by_zone(ids).len() > 1 => {
                return self.changed_apart(operation, change, ids).await;
            }
            Err(failure) => {
                let error = failure.into_error(&call, ErrorContext::default());
                let error = error.with_effect(Effect::None);
                return ids.iter().map(|_| Err(error.clone())).collect();
            }
        };
        let each: Vec<_> = ids
            .iter()
            .zip(&at)
            .map(|(id, at)| {
                let fate = at.as_ref().map(|at| fate_of(&histories, at.number));
                self.changed_one(&call, change, id, at.as_ref(), fate)
            })
            .collect();
        let width = self.options.concurrency.get() as usize;
        stream::iter(each).buffered(width).collect().await
    }

    async fn changed_one(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: Option<&Address>,
        fate: Option<Fate>,
    ) -> Result<()> {
        let (Some(at), Some(fate)) = (at, fate) else {
            return Err(self.missing(call, id));
        };
        let ended = match fate {
            Fate::Going => Some(CloudInstanceState::Terminating),
            Fate::Gone(_) | Fate::Failed(_) => Some(CloudInstanceState::Terminated),
            Fate::Unknown | Fate::Coming | Fate::Made(_) => None,
        };
        match (change, ended) {
            (Change::Terminate, Some(_)) => return Ok(()),
            (Change::Stop | Change::Start, Some(state)) => {
                return Err(call.wrong_state(id, state, change.needed()));
            }
            (Change::Terminate | Change::Stop | Change::Start, None) => {}
        }
        let sent = match change {
            Change::Terminate => self.client.delete(at).await,
            Change::Stop => self.client.stop(at, self.options.discard_local_ssds).await,
            Change::Start => self.client.start(at).await,
        };
        match sent {
            Ok(operation) => self.accepted(call, change, id, at, operation).await,
            Err(failure) if failure.is_not_found() => self.absent(call, change, id).await,
            Err(failure) => self.refused(call, change, id, at, failure).await,
        }
    }

    /// A change that was accepted. A start is followed for a while: that there is no machine is only
    /// said later.
    async fn accepted(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: &Address,
        operation: NativeOperation,
    ) -> Result<()> {
        let operation = match change {
            Change::Start => {
                let patience = self.options.launch_wait;
                self.await_operation(&at.zone, operation, patience).await
            }
            Change::Terminate | Change::Stop => operation,
        };
        match history::failure(&operation) {
            Some(failure) => self.refused(call, change, id, at, failure).await,
            None => Ok(()),
        }
    }

    /// A change of something that is not there: it may have ended since.
    async fn absent(&self, call: &Call, change: Change, id: &InstanceId) -> Result<()> {
        // A read may show it alive for a while.
        let ended = |info: &InstanceInfo| info.state.is_ending();
        let read = self.read_until(call.operation(), id, ended).await;
        let info = read.map_err(|error| error.with_effect(Effect::None))?;
        match change {
            Change::Terminate if info.state.is_ending() => Ok(()),
            Change::Terminate => Err(self.missing(call, id)),
            Change::Stop | Change::Start if info.state.is_ending() => {
                Err(call.wrong_state(id, info.state, change.needed()))
            }
            Change::Stop | Change::Start => Err(self.missing(call, id)),
        }
    }

    /// What a refused change means, which may take a look at the instance.
    async fn refused(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: &Address,
        failure: Failure,
    ) -> Result<()> {
        if change == Change::Stop && failure.is_about_local_ssds() {
            let instead = "set GcpOptions::discard_local_ssds to lose what is on its local SSDs";
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
        // What would have let the change pass is of the past, and not taken for an answer.
        let explained = |info: &InstanceInfo| match (change, info.state) {
            (_, CloudInstanceState::Terminating | CloudInstanceState::Terminated)
            | (Change::Start, CloudInstanceState::Stopping)
            | (Change::Stop, CloudInstanceState::Pending) => true,
            (Change::Start, CloudInstanceState::Stopped) => is_suspended(info),
            (Change::Start | Change::Stop | Change::Terminate, _) => false,
        };
        let read = self.read_until(call.operation(), id, explained).await;
        let info = read.map_err(|error| error.with_effect(Effect::None))?;
        match (change, info.state) {
            (_, CloudInstanceState::Terminating | CloudInstanceState::Terminated) => {
                Err(call.wrong_state(id, info.state, change.needed()))
            }
            (Change::Start, CloudInstanceState::Stopped) if is_suspended(&info) => {
                self.resumed(call, id, at).await
            }
            (Change::Start, CloudInstanceState::Pending | CloudInstanceState::Running)
            | (Change::Stop, CloudInstanceState::Stopped | CloudInstanceState::Stopping) => Ok(()),
            (Change::Start, CloudInstanceState::Stopping)
            | (Change::Stop, CloudInstanceState::Pending) => {
                let message =
                    format!("instance {id} is between two states; try again when it is not");
                let retry = RetryAdvice::After(self.capabilities.poll_interval);
                let error = call.conflict(&message, retry);
                Err(error.with_scope(Scope::Instance(id.clone())))
            }
            // Its state does not explain it.
            (Change::Start, CloudInstanceState::Stopped)
            | (Change::Stop, CloudInstanceState::Running)
            | (Change::Terminate, _) => Err(error),
        }
    }

    /// Starts what was suspended, with its memory as it was.
    async fn resumed(&self, call: &Call, id: &InstanceId, at: &Address) -> Result<()> {
        let told = |failure: Failure| failure.into_error(call, self.about(id, at));
        let operation = self.client.resume(at).await.map_err(told)?;
        let patience = self.options.launch_wait;
        let operation = self.await_operation(&at.zone, operation, patience).await;
        history::failure(&operation).map_or(Ok(()), |failure| Err(told(failure)))
    }

    /// Reads instances that were just started, past what a lagging read shows of before.
    pub(crate) async fn started(
        &self,
        operation: Operation,
        id: &InstanceId,
    ) -> Result<InstanceInfo> {
        let fresh = |info: &InstanceInfo| {
            let before = [CloudInstanceState::Stopped, CloudInstanceState::Stopping];
            !before.contains(&info.state)
        };
        let read = self.read_until(operation, id, fresh).await;
        read.map_err(|error| error.with_effect(Effect::Done))
    }
}

fn is_suspended(info: &InstanceInfo) -> bool {
    info.native_state.as_deref() == Some(SUSPENDED)
}
