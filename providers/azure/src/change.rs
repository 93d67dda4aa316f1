//! Stopping, starting and terminating.
//!
//! Owns the meaning of a refused change. Azure's calls address a machine by name, whichever machine
//! has it, so each machine is read first: a change must never affect a machine with another VM id.
//! Whether the state allows a change is Azure's decision, because a read may be stale.
//!
//! 1. Look up all machines: up to three one by one, more with one list of states and a GET of each
//!    machine that the list does not show.
//! 2. A machine that has ended is not changed: a terminate succeeds, a stop or start fails with a wrong
//!    state. If only reads say that it has ended, a terminate sends `delete` all the same, because a read
//!    may miss a machine that exists.
//! 3. Send `delete`, `deallocate` or `start`. Starts wait `launch_wait` for missing capacity.
//! 4. A refusal that may be about the state is explained by another read.

use std::collections::BTreeMap;

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, Operation, Result, RetryAdvice,
    async_trait,
};
use fleetwright_provider_support::{
    Change, ChangeInstances, ReadInstances as _, batch::repeat_error, is_after_start, read_until,
};
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use tokio::time::sleep;

use crate::{
    AzureProvisioner,
    address::{self, Address},
    error::{AzureFailure as _, ErrorContext, Failure},
    lookup::{FEW, Lookup, Lookups, Young},
    lro::{self, Outcome},
    machine::{Machine, StartedOperation},
    read::{is_creating, is_deleting},
    state,
};

/// How often a delete is sent if Azure reports that the machine does not exist although reads show
/// it.
const DELETE_ATTEMPTS: u32 = 3;

#[async_trait]
impl ChangeInstances for AzureProvisioner {
    /// Looks up many machines and changes each.
    async fn change_once(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let call = self.call(operation);
        let at: Vec<_> = ids.iter().map(|id| self.address(id)).collect();
        let lookups = match self.look_up_for(change, &at).await {
            Ok(lookups) => lookups,
            Err(failure) => {
                let error = failure.into_error(&call, ErrorContext::default());
                let error = error.with_effect(Effect::None);
                return repeat_error(ids, &error);
            }
        };
        let each: Vec<_> = ids
            .iter()
            .zip(&at)
            .zip(lookups)
            .map(|((id, at), lookup)| {
                let call = &call;
                async move {
                    match (at, lookup) {
                        (Some(at), Some(Ok(lookup))) => {
                            self.send_change(call, change, id, at, lookup).await
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
        let sent: Vec<_> = stream::iter(each)
            .buffered(self.concurrency())
            .collect()
            .await;
        let targets: Vec<_> = ids.iter().zip(&at).collect();
        self.await_starts(&call, &targets, sent).await
    }

    /// Reads many instances that were just started, with a number of calls that does not depend on
    /// theirs.
    async fn describe_all_started(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let call = self.call(operation);
        let read = || -> BoxFuture<'_, Result<BTreeMap<InstanceId, InstanceInfo>>> {
            Box::pin(async {
                let all = self.list_machines().await;
                let mut all = all.map_err(|it| it.into_error(&call, ErrorContext::default()))?;
                let wanted = |machine: &Machine| {
                    let id = self.address_of(machine).id();
                    id.is_some_and(|id| ids.contains(&id))
                };
                all.retain(wanted);
                let machines: Vec<_> = all.iter().collect();
                let interfaces = self.interfaces(&call, &machines).await?;
                let infos = machines.into_iter().zip(interfaces);
                let infos = infos.map(|(machine, it)| self.info(&call, machine, it.as_ref()));
                infos
                    .map(|info| info.map(|info| (info.id.clone(), info)))
                    .collect()
            })
        };
        let mut found = BTreeMap::new();
        if ids.len() > FEW {
            let enough = |found: &BTreeMap<_, _>| found.values().all(is_after_start);
            match read_until(&self.capabilities, read, enough).await {
                Ok(all) => found = all,
                Err(error) => {
                    let error = error.with_effect(Effect::Done);
                    return repeat_error(ids, &error);
                }
            }
        }
        let each: Vec<_> = ids
            .iter()
            .map(|id| (id, found.get(id).cloned()))
            .map(|(id, found)| async move {
                match found {
                    Some(info) => Ok(info),
                    None => self.describe_started(operation, id).await,
                }
            })
            .collect();
        stream::iter(each)
            .buffered(self.concurrency())
            .collect()
            .await
    }
}

impl AzureProvisioner {
    /// Waits `launch_wait` for starts to fail, because Azure reports missing capacity only in the
    /// operation. Few operations are polled repeatedly, many once at the end.
    async fn await_starts(
        &self,
        call: &Call,
        targets: &[(&InstanceId, &Option<Address>)],
        sent: Vec<Result<Option<StartedOperation>>>,
    ) -> Vec<Result<()>> {
        let (interval, timeout) = (self.options.poll_interval, self.options.launch_wait);
        let open = sent.iter().filter(|sent| matches!(sent, Ok(Some(_))));
        let many = open.count() > FEW;
        if many {
            sleep(timeout).await;
        }
        let each: Vec<_> = targets
            .iter()
            .zip(sent)
            .map(|((id, at), sent)| async move {
                let (Some(operation), Some(at)) = (sent?, at) else {
                    return Ok(());
                };
                let end = if timeout.is_zero() {
                    Outcome::Unknown
                } else if many {
                    lro::poll_once(&self.client, &operation).await
                } else {
                    lro::await_operation(&self.client, &operation, interval, timeout).await
                };
                match end {
                    Outcome::Failed(failure) if !failure.is_overtaken() => {
                        self.explain_refusal(call, Change::Start, id, at, *failure)
                            .await
                    }
                    Outcome::Failed(_) | Outcome::Succeeded | Outcome::Unknown => Ok(()),
                }
            })
            .collect();
        stream::iter(each)
            .buffered(self.concurrency())
            .collect()
            .await
    }

    /// Looks up machines for a change. A terminate needs no proof that a machine is absent if no other
    /// machine can have its name: a `delete` then affects no other one.
    async fn look_up_for(
        &self,
        change: Change,
        at: &[Option<Address>],
    ) -> std::result::Result<Lookups, Failure> {
        let lookups = self.read_all_once(at, Young::NeedsGet).await?;
        let needs_proof = |at: &Address| match change {
            Change::Terminate => !address::is_random_name(&at.name),
            Change::Stop | Change::Start => true,
        };
        let unproven = at.iter();
        let unproven: Vec<_> = unproven.map(|at| at.clone().filter(needs_proof)).collect();
        Ok(self.confirm_absences(&unproven, lookups).await)
    }

    /// Changes one machine, unless it has ended. Returns the operation of a start.
    async fn send_change(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: &Address,
        lookup: Lookup,
    ) -> Result<Option<StartedOperation>> {
        let machine = match lookup {
            Lookup::Found(machine) => machine,
            Lookup::NotShown => return Err(self.not_found_yet(call, id)),
            Lookup::Absent => return self.delete_absent(call, id, at).await.map(|()| None),
            Lookup::Gone(gone) if change == Change::Terminate && !gone.certain => {
                return self.delete_absent(call, id, at).await.map(|()| None);
            }
            Lookup::Gone(_) => {
                let past = self.ended_result(call, change, id, CloudInstanceState::Terminated);
                return past.map(|()| None);
            }
        };
        match change {
            Change::Terminate => {
                let ended = self.terminate(call, id, at, *machine).await;
                ended.map(|()| None)
            }
            Change::Stop | Change::Start => self.switch_power(call, change, id, at, *machine).await,
        }
    }

    /// Returns the result of a change of a machine that has ended or is being deleted.
    fn ended_result(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        state: CloudInstanceState,
    ) -> Result<()> {
        match change {
            Change::Terminate => Ok(()),
            Change::Stop | Change::Start => Err(call.wrong_state(id, state, change.needed_state())),
        }
    }

    /// Sends the delete, and repeats it if Azure does not find a machine that reads show.
    ///
    /// Related traps in the README: 18 (deleting a missing machine succeeds) and 19 (repeated deletes).
    async fn terminate(
        &self,
        call: &Call,
        id: &InstanceId,
        at: &Address,
        mut machine: Machine,
    ) -> Result<()> {
        for _ in 0..DELETE_ATTEMPTS {
            // A repeated delete has no effect and costs a call.
            if is_deleting(&machine) {
                return Ok(());
            }
            match self.client.delete(&at.name).await {
                Ok(Some(_)) => {
                    self.note_deletion(&at.vm_id, None);
                    return Ok(());
                }
                // Azure reports this for machines that are gone, and for those that do not show
                // yet.
                Ok(None) => {}
                Err(failure) if failure.is_not_found() => {}
                Err(failure) if failure.may_be_about_state() => {
                    return self
                        .explain_refusal(call, Change::Terminate, id, at, failure)
                        .await;
                }
                Err(failure) => return Err(failure.into_error(call, self.about(id))),
            }
            match self.look_up_until_ended(call, at).await? {
                Lookup::Found(now) => machine = *now,
                Lookup::NotShown | Lookup::Absent | Lookup::Gone(_) => return Ok(()),
            }
        }
        let retry = RetryAdvice::After(self.capabilities.consistency_window);
        Err(call.conflict(
            "Azure lists the machine but does not find it for deletion; retry later",
            retry,
        ))
    }

    /// Sends the delete of a machine that reads do not show. Only a terminate leads here.
    async fn delete_absent(&self, call: &Call, id: &InstanceId, at: &Address) -> Result<()> {
        match self.client.delete(&at.name).await {
            Ok(_) => {}
            Err(failure) if failure.is_not_found() => {}
            Err(failure) if failure.may_be_about_state() => {
                return self
                    .explain_refusal(call, Change::Terminate, id, at, failure)
                    .await;
            }
            Err(failure) => return Err(failure.into_error(call, self.about(id))),
        }
        self.note_deletion(&at.vm_id, None);
        Ok(())
    }

    /// Looks up a machine until it has ended, or until the read cannot be stale any more.
    async fn look_up_until_ended(&self, call: &Call, at: &Address) -> Result<Lookup> {
        let read = || -> BoxFuture<'_, Result<Lookup>> {
            Box::pin(async {
                let lookup = self.look_up(at).await;
                lookup.map_err(|failure| failure.into_error(call, ErrorContext::default()))
            })
        };
        read_until(&self.capabilities, read, |lookup| match lookup {
            Lookup::Found(machine) => is_deleting(machine),
            Lookup::Gone(_) => true,
            Lookup::NotShown | Lookup::Absent => false,
        })
        .await
    }

    /// Stops or starts a machine. Returns the operation of a start.
    async fn switch_power(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        at: &Address,
        machine: Machine,
    ) -> Result<Option<StartedOperation>> {
        if self.is_ending(&machine) || state::never_created(&machine) {
            let past = self.ended_result(call, change, id, CloudInstanceState::Terminating);
            return past.map(|()| None);
        }
        let is_created =
            |lookup: &Lookup| !matches!(lookup, Lookup::Found(machine) if is_creating(machine));
        if is_creating(&machine) {
            let read = || -> BoxFuture<'_, Result<Lookup>> {
                Box::pin(async {
                    let lookup = self.look_up(at).await;
                    lookup.map_err(|failure| failure.into_error(call, ErrorContext::default()))
                })
            };
            let now = read_until(&self.capabilities, read, is_created).await;
            let now = now.map_err(|error| error.with_effect(Effect::None))?;
            if !is_created(&now) {
                return match change {
                    // It will run when it is created.
                    Change::Start => Ok(None),
                    Change::Stop | Change::Terminate => Err(self.between_states(call, id)),
                };
            }
        }
        let sent = match change {
            Change::Start => self.client.start(&at.name).await,
            Change::Stop | Change::Terminate => self.client.deallocate(&at.name).await,
        };
        match sent {
            Ok(operation) => Ok(Some(operation).filter(|_| change == Change::Start)),
            Err(failure) => {
                let refused = self.explain_refusal(call, change, id, at, failure).await;
                refused.map(|()| None)
            }
        }
    }

    /// Returns the result of a change that Azure refused. If the refusal may be about the state of
    /// the machine, a read decides: a change that has happened already succeeds.
    async fn explain_refusal(
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
        let lookup = self.look_up_until_ended(call, at).await;
        let lookup = lookup.map_err(|error| error.with_effect(Effect::None))?;
        match lookup {
            Lookup::Found(machine) if is_deleting(&machine) => {
                self.ended_result(call, change, id, CloudInstanceState::Terminating)
            }
            Lookup::Gone(_) => self.ended_result(call, change, id, CloudInstanceState::Terminated),
            Lookup::Found(machine) => match (change, state::normalize(&machine)) {
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
            Lookup::NotShown | Lookup::Absent => Err(error),
        }
    }
}
