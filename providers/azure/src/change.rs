//! Stopping, starting and terminating: what a look forbids, and what a refusal means.
//!
//! Azure changes what has a name, whoever it is by now, so that each is looked at before: a change is of the
//! machine that was meant or of none. Whether its state allows it is for Azure to say, because a look may be
//! of the past.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, Operation, Result, RetryAdvice,
    Scope, read_past_lag,
};
use futures_util::{StreamExt as _, future::BoxFuture, stream};

use crate::{
    AzureProvisioner,
    address::Address,
    error::{About, Failure},
    lro::{self, End},
    machine::Machine,
    read::{Look, is_creating, is_deleting},
    state,
};

/// How often a delete is sent that Azure says is of nothing, though it was seen.
const TRIES: u32 = 3;

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

impl AzureProvisioner {
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
        // One that is named twice is changed once.
        let each: BTreeSet<_> = ids.iter().cloned().collect();
        let each: Vec<_> = each.into_iter().collect();
        let answers = self.fresh.patiently(&each, &self.capabilities, once).await;
        let answers: BTreeMap<_, _> = each.into_iter().zip(answers).collect();
        let call = self.call(operation);
        let answer = |id| answers.get(id).cloned();
        ids.iter()
            .map(|id| answer(id).unwrap_or_else(|| Err(self.missing(&call, id))))
            .collect()
    }

    async fn changed_once(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let call = self.call(operation);
        let at: Vec<_> = ids.iter().map(|id| self.address(id)).collect();
        let looks = match self.looks(&at).await {
            Ok(looks) => looks,
            Err(failure) => {
                let error = failure.into_error(&call, About::default());
                let error = error.with_effect(Effect::None);
                return ids.iter().map(|_| Err(error.clone())).collect();
            }
        };
        let each: Vec<_> = ids
            .iter()
            .zip(at)
            .zip(looks)
            .map(|((id, at), look)| {
                let call = &call;
                async move {
                    match (at, look) {
                        (Some(at), Some(Ok(look))) => {
                            self.changed_one(call, change, id, &at, look).await
                        }
                        (Some(_), Some(Err(failure))) => {
                            let error = failure.into_error(call, About::default());
                            Err(error.with_effect(Effect::None))
                        }
                        (None, _) | (_, None) => Err(call.not_found(id)),
                    }
                }
            })
            .collect();
        stream::iter(each).buffered(self.width()).collect().await
    }

    async fn changed_one(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: &Address,
        look: Look,
    ) -> Result<()> {
        let machine = match look {
            Look::There(machine) => machine,
            Look::NotShown => return Err(self.missing(call, id)),
            Look::Gone(_) => return self.past(call, change, id, CloudInstanceState::Terminated),
        };
        match change {
            Change::Terminate => self.terminated(call, id, at, *machine).await,
            Change::Stop | Change::Start => self.switched(call, change, id, at, *machine).await,
        }
    }

    /// A change of what has ended, or is about to.
    fn past(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        state: CloudInstanceState,
    ) -> Result<()> {
        match change {
            Change::Terminate => Ok(()),
            Change::Stop | Change::Start => Err(call.wrong_state(id, state, change.needed())),
        }
    }

    async fn terminated(
        &self,
        call: &Call,
        id: &InstanceId,
        at: &Address,
        mut machine: Machine,
    ) -> Result<()> {
        for _ in 0..TRIES {
            // Asking again would only cost.
            if is_deleting(&machine) {
                return Ok(());
            }
            match self.client.delete(&at.name).await {
                Ok(Some(_)) => {
                    self.note_end(&at.vm_id, None);
                    return Ok(());
                }
                // Azure says that of what is gone, and of what it cannot see yet.
                Ok(None) => {}
                Err(failure) if failure.is_not_found() => {}
                Err(failure) if failure.may_be_about_state() => {
                    return self.refused(call, Change::Terminate, id, at, failure).await;
                }
                Err(failure) => return Err(failure.into_error(call, self.about(id))),
            }
            match self.look_past_lag(call, at).await? {
                Look::There(now) => machine = *now,
                Look::NotShown | Look::Gone(_) => return Ok(()),
            }
        }
        let retry = RetryAdvice::After(self.capabilities.consistency_window);
        Err(call.conflict(
            "Azure shows the machine, and finds nothing to delete",
            retry,
        ))
    }

    /// Looks until nothing is there, or until what is there cannot be of the past any more.
    async fn look_past_lag(&self, call: &Call, at: &Address) -> Result<Look> {
        let read = || -> BoxFuture<'_, Result<Look>> {
            Box::pin(async {
                let look = self.look(at).await;
                look.map_err(|failure| failure.into_error(call, About::default()))
            })
        };
        read_past_lag(&self.capabilities, read, |look| match look {
            Look::There(machine) => is_deleting(machine),
            Look::Gone(_) => true,
            Look::NotShown => false,
        })
        .await
    }

    async fn switched(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: &Address,
        machine: Machine,
    ) -> Result<()> {
        if self.is_ending(&machine) || state::never_made(&machine) {
            return self.past(call, change, id, CloudInstanceState::Terminating);
        }
        let made = |look: &Look| !matches!(look, Look::There(machine) if is_creating(machine));
        if is_creating(&machine) {
            let read = || -> BoxFuture<'_, Result<Look>> {
                Box::pin(async {
                    let look = self.look(at).await;
                    look.map_err(|failure| failure.into_error(call, About::default()))
                })
            };
            let now = read_past_lag(&self.capabilities, read, made).await;
            let now = now.map_err(|error| error.with_effect(Effect::None))?;
            if !made(&now) {
                return match change {
                    // It is going to run anyway.
                    Change::Start => Ok(()),
                    Change::Stop | Change::Terminate => Err(self.between(call, id)),
                };
            }
        }
        let sent = match change {
            Change::Start => self.client.start(&at.name).await,
            Change::Stop | Change::Terminate => self.client.deallocate(&at.name).await,
        };
        let begun = match sent {
            Ok(begun) => begun,
            Err(failure) => return self.refused(call, change, id, at, failure).await,
        };
        if change != Change::Start {
            return Ok(());
        }
        // That there is no machine is said only there.
        let patience = self.options.launch_patience;
        let tick = self.options.poll_tick;
        match lro::followed(&self.client, &begun, tick, patience).await {
            End::Failed(failure) if !failure.is_overtaken() => {
                self.refused(call, change, id, at, *failure).await
            }
            End::Failed(_) | End::Done | End::Unknown => Ok(()),
        }
    }

    fn between(&self, call: &Call, id: &InstanceId) -> fleetwright::ProvisionError {
        let message = format!("instance {id} is between two states; try again when it is not");
        let retry = RetryAdvice::After(self.capabilities.poll_tick);
        let error = call.conflict(&message, retry);
        error.with_scope(Scope::Instance(id.clone()))
    }

    /// What a refused change means, which may take a look at the machine.
    async fn refused(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: &Address,
        failure: Failure,
    ) -> Result<()> {
        let by_state = failure.may_be_about_state();
        let error = failure.into_error(call, self.about(id));
        if !by_state {
            return Err(error);
        }
        let look = self.look_past_lag(call, at).await;
        let look = look.map_err(|error| error.with_effect(Effect::None))?;
        match look {
            Look::There(machine) if is_deleting(&machine) => {
                self.past(call, change, id, CloudInstanceState::Terminating)
            }
            Look::Gone(_) => self.past(call, change, id, CloudInstanceState::Terminated),
            Look::There(machine) => match (change, state::normalize(&machine)) {
                (Change::Start, CloudInstanceState::Pending | CloudInstanceState::Running)
                | (Change::Stop, CloudInstanceState::Stopping) => Ok(()),
                (
                    Change::Start | Change::Stop | Change::Terminate,
                    CloudInstanceState::Pending
                    | CloudInstanceState::Running
                    | CloudInstanceState::Stopping
                    | CloudInstanceState::Stopped
                    | CloudInstanceState::Terminating
                    | CloudInstanceState::Terminated,
                ) => Err(error),
            },
            Look::NotShown => Err(error),
        }
    }

    /// Reads what was just started, past what a lagging read shows of before.
    pub(crate) async fn started(
        &self,
        operation: Operation,
        id: &InstanceId,
    ) -> Result<InstanceInfo> {
        let fresh = |info: &InstanceInfo| {
            let before = [CloudInstanceState::Stopped, CloudInstanceState::Stopping];
            !before.contains(&info.state)
        };
        let read = self.read_past_lag(operation, id, fresh).await;
        read.map_err(|error| error.with_effect(Effect::Done))
    }
}
