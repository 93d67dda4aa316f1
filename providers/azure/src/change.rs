//! Stopping, starting and terminating: what a look forbids, and what a refusal means.
//!
//! Azure changes what has a name, whoever it is by now, so that each is looked at before: a change is of the
//! machine that was meant or of none. Whether its state allows it is for Azure to say, because a look may be
//! of the past.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, Operation, Result, RetryAdvice,
    Scope,
};
use fleetwright_provider_support::read_until;
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use tokio::time::sleep;

use crate::{
    AzureProvisioner,
    address::Address,
    error::{AzureFailure as _, ErrorContext, Failure},
    lro::{self, Outcome},
    machine::{Begun, Machine},
    read::{FEW, Look, is_creating, is_deleting},
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
        let answers = self
            .fresh
            .retry_not_found(&each, &self.capabilities, once)
            .await;
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
                let error = failure.into_error(&call, ErrorContext::default());
                let error = error.with_effect(Effect::None);
                return ids.iter().map(|_| Err(error.clone())).collect();
            }
        };
        let each: Vec<_> = ids
            .iter()
            .zip(&at)
            .zip(looks)
            .map(|((id, at), look)| {
                let call = &call;
                async move {
                    match (at, look) {
                        (Some(at), Some(Ok(look))) => {
                            self.changed_one(call, change, id, at, look).await
                        }
                        (Some(_), Some(Err(failure))) => {
                            let error = failure.into_error(call, ErrorContext::default());
                            Err(error.with_effect(Effect::None))
                        }
                        (None, _) | (_, None) => Err(call.not_found(id)),
                    }
                }
            })
            .collect();
        let sent: Vec<_> = stream::iter(each).buffered(self.width()).collect().await;
        let targets: Vec<_> = ids.iter().zip(&at).collect();
        self.ended_starts(&call, &targets, sent).await
    }

    /// How starts end within our patience, for that there is no machine is said only there. Few are asked after
    /// often, many once, when patience is over for all of them.
    async fn ended_starts(
        &self,
        call: &Call,
        targets: &[(&InstanceId, &Option<Address>)],
        sent: Vec<Result<Option<Begun>>>,
    ) -> Vec<Result<()>> {
        let (tick, patience) = (self.options.poll_interval, self.options.launch_wait);
        let open = sent.iter().filter(|sent| matches!(sent, Ok(Some(_))));
        let many = open.count() > FEW;
        if many {
            sleep(patience).await;
        }
        let each: Vec<_> = targets
            .iter()
            .zip(sent)
            .map(|((id, at), sent)| async move {
                let (Some(begun), Some(at)) = (sent?, at) else {
                    return Ok(());
                };
                let end = if patience.is_zero() {
                    Outcome::Unknown
                } else if many {
                    lro::asked(&self.client, &begun).await
                } else {
                    lro::followed(&self.client, &begun, tick, patience).await
                };
                match end {
                    Outcome::Failed(failure) if !failure.is_overtaken() => {
                        self.refused(call, Change::Start, id, at, *failure).await
                    }
                    Outcome::Failed(_) | Outcome::Succeeded | Outcome::Unknown => Ok(()),
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
    ) -> Result<Option<Begun>> {
        let machine = match look {
            Look::There(machine) => machine,
            Look::NotShown => return Err(self.missing(call, id)),
            Look::Gone(_) => {
                let past = self.past(call, change, id, CloudInstanceState::Terminated);
                return past.map(|()| None);
            }
        };
        match change {
            Change::Terminate => {
                let ended = self.terminated(call, id, at, *machine).await;
                ended.map(|()| None)
            }
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
                    self.note_deletion(&at.vm_id, None);
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
                look.map_err(|failure| failure.into_error(call, ErrorContext::default()))
            })
        };
        read_until(&self.capabilities, read, |look| match look {
            Look::There(machine) => is_deleting(machine),
            Look::Gone(_) => true,
            Look::NotShown => false,
        })
        .await
    }

    /// Stops or starts; answers what a start has begun.
    async fn switched(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: &Address,
        machine: Machine,
    ) -> Result<Option<Begun>> {
        if self.is_ending(&machine) || state::never_made(&machine) {
            let past = self.past(call, change, id, CloudInstanceState::Terminating);
            return past.map(|()| None);
        }
        let made = |look: &Look| !matches!(look, Look::There(machine) if is_creating(machine));
        if is_creating(&machine) {
            let read = || -> BoxFuture<'_, Result<Look>> {
                Box::pin(async {
                    let look = self.look(at).await;
                    look.map_err(|failure| failure.into_error(call, ErrorContext::default()))
                })
            };
            let now = read_until(&self.capabilities, read, made).await;
            let now = now.map_err(|error| error.with_effect(Effect::None))?;
            if !made(&now) {
                return match change {
                    // It is going to run anyway.
                    Change::Start => Ok(None),
                    Change::Stop | Change::Terminate => Err(self.between(call, id)),
                };
            }
        }
        let sent = match change {
            Change::Start => self.client.start(&at.name).await,
            Change::Stop | Change::Terminate => self.client.deallocate(&at.name).await,
        };
        match sent {
            Ok(begun) => Ok(Some(begun).filter(|_| change == Change::Start)),
            Err(failure) => {
                let refused = self.refused(call, change, id, at, failure).await;
                refused.map(|()| None)
            }
        }
    }

    fn between(&self, call: &Call, id: &InstanceId) -> fleetwright::ProvisionError {
        let message = format!("instance {id} is between two states; try again when it is not");
        let retry = RetryAdvice::After(self.capabilities.poll_interval);
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
        let read = self.read_until(operation, id, is_fresh).await;
        read.map_err(|error| error.with_effect(Effect::Done))
    }

    /// Reads many that were just started, with calls that do not grow with them.
    pub(crate) async fn all_started(
        &self,
        operation: Operation,
        ids: &[&InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let call = self.call(operation);
        let read = || -> BoxFuture<'_, Result<BTreeMap<InstanceId, InstanceInfo>>> {
            Box::pin(async {
                let all = self.everything().await;
                let mut all = all.map_err(|it| it.into_error(&call, ErrorContext::default()))?;
                let wanted = |machine: &Machine| {
                    let id = self.address_of(machine).id();
                    id.is_some_and(|id| ids.contains(&&id))
                };
                all.retain(wanted);
                let there: Vec<_> = all.iter().collect();
                let interfaces = self.interfaces(&call, &there).await?;
                let infos = there.into_iter().zip(interfaces);
                let infos = infos.map(|(machine, it)| self.info(&call, machine, it.as_ref()));
                infos
                    .map(|info| info.map(|info| (info.id.clone(), info)))
                    .collect()
            })
        };
        let mut found = BTreeMap::new();
        if ids.len() > FEW {
            let enough = |found: &BTreeMap<_, _>| found.values().all(is_fresh);
            match read_until(&self.capabilities, read, enough).await {
                Ok(all) => found = all,
                Err(error) => {
                    let error = error.with_effect(Effect::Done);
                    return ids.iter().map(|_| Err(error.clone())).collect();
                }
            }
        }
        let each: Vec<_> = ids
            .iter()
            .map(|id| (*id, found.get(*id).cloned()))
            .map(|(id, found)| async move {
                match found {
                    Some(info) => Ok(info),
                    None => self.started(operation, id).await,
                }
            })
            .collect();
        stream::iter(each).buffered(self.width()).collect().await
    }
}

/// Whether a read is of after a start.
fn is_fresh(info: &InstanceInfo) -> bool {
    let before = [CloudInstanceState::Stopped, CloudInstanceState::Stopping];
    !before.contains(&info.state)
}
