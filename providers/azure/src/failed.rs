//! Launches that fail after they were accepted: what is left of them is removed, and why is remembered.
//!
//! Owns when a machine is removed that nobody has terminated: only one whose own creation is known to have
//! failed, for want of a machine, an address or a quota, or else by its state over a whole window, and that never had
//! power. A read removes nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fleetwright::{Call, Result, read_until};
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    AzureProvisioner,
    address::folded,
    client::AzureClient,
    convert,
    error::{About, Cause, Failure},
    list::Statuses,
    lro::{self, End},
    machine::Machine,
    read::is_deleting,
    state,
};

/// For how long a creation is watched after its launch was answered. Azure gives up sooner.
const WATCHED: Duration = Duration::from_secs(2 * 60 * 60);

/// How many ticks there are between two looks at what goes on: nobody waits for it.
const TICKS: u32 = 5;

/// The creations that go on, all seen by one list at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    since: HashMap<String, (Machine, Instant)>,
    /// Whether somebody looks.
    watched: bool,
    /// Until when Azure wishes not to be asked.
    quiet: Option<Instant>,
}

impl Watch {
    /// Adds one; answers whether nobody looks yet.
    fn add(&self, machine: Machine) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let vm_id = machine.vm_id.clone();
        open.since.insert(vm_id, (machine, Instant::now()));
        !std::mem::replace(&mut open.watched, true)
    }

    /// Whether there is anything to look at; if not, nobody looks from now on.
    fn goes_on(&self) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.since.retain(|_, (_, since)| since.elapsed() < WATCHED);
        open.watched = !open.since.is_empty();
        open.watched
    }

    /// Looks at nothing for so long.
    fn hush(&self, wished: Duration) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.quiet = open.quiet.max(Instant::now().checked_add(wished));
    }

    fn quiet(&self) -> Instant {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.quiet.unwrap_or_else(Instant::now)
    }

    /// Watches one no longer.
    fn forget(&self, vm_id: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.since.remove(vm_id);
    }

    /// Those that have failed by now, which are watched until they are gone. Those that have power or are gone are
    /// watched no longer.
    fn failed(&self, statuses: &Statuses, window: Duration) -> Vec<(Machine, Failure)> {
        let mut failed = Vec::new();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.since.retain(|_, (machine, since)| {
            let Some(told) = status_of(machine, statuses) else {
                return since.elapsed() <= window.saturating_mul(2);
            };
            match creation(told) {
                End::Unknown => true,
                End::Done => false,
                End::Failed(failure) => {
                    failed.push((machine.clone(), *failure));
                    true
                }
            }
        });
        failed
    }
}

/// What a list of states tells of a machine; it may leave out whose name it is by now.
pub(crate) fn status_of<'s>(machine: &Machine, statuses: &'s Statuses) -> Option<&'s Machine> {
    let told = statuses.get(&folded(&machine.path));
    told.filter(|told| told.vm_id.is_empty() || told.vm_id == machine.vm_id)
}

/// How a creation has ended, by the states of its machine.
pub(crate) fn creation(now: &Machine) -> End {
    match (state::failure(now), state::power(now)) {
        (_, Some(_)) => End::Done,
        (Some((code, message)), None) => End::Failed(Box::new(Failure {
            code: Some(code.to_owned()).filter(|code| !code.is_empty()),
            ..Failure::new(Cause::FailedLater, message)
        })),
        (None, None) => End::Unknown,
    }
}

fn reason(failure: &Failure) -> String {
    let code = failure.code.as_deref().unwrap_or_default();
    convert::told(code, &failure.message)
}

impl AzureProvisioner {
    /// Begins to remove what is left of a machine whose creation has failed, unless it runs all the same.
    pub(crate) async fn remove_failed(
        &self,
        machine: &Machine,
        failure: &Failure,
        deadline: Instant,
    ) -> Left {
        let proof = if failure.is_before_power() {
            Proof::Enough
        } else {
            Proof::Wanted
        };
        let remover = self.remover();
        let left = remover.remove(machine, proof, Until::Going, deadline).await;
        match left {
            Left::Nothing => {
                self.note_end(&machine.vm_id, Some(reason(failure)));
                self.watched(machine);
            }
            Left::Machine => self.watched(machine),
            // Who watches goes on to remove it.
            Left::Something(wished) => self.watch.hush(wished),
        }
        left
    }

    /// Notes that a machine was deleted just now, and why if nobody asked for it.
    pub(crate) fn note_end(&self, vm_id: &str, reason: Option<String>) {
        let window = self.capabilities.consistency_window;
        self.ends.note(vm_id, reason, window);
    }

    /// Removes what is left of a machine that was never made, as a whole window has shown, and waits until its name
    /// is free: for one call's patience at most.
    pub(crate) async fn clear(&self, machine: &Machine) {
        let (code, message) = state::failure(machine).unwrap_or_default();
        // Before, so that who asks meanwhile, or after we were dropped, knows that it was never made.
        self.note_end(&machine.vm_id, Some(convert::told(code, message)));
        let (remover, deadline) = (self.remover(), lro::deadline(self.options.patience));
        let left = remover.remove(machine, Proof::Enough, Until::Gone, deadline);
        if left.await == Left::Machine {
            self.ends.forget(&machine.vm_id);
        }
    }

    /// Watches a creation from when it was accepted, and removes what it leaves if it fails and nobody else does.
    pub(crate) fn watch(&self, machine: Machine) {
        if !self.watch.add(machine) {
            return;
        }
        let (watch, ends, remover) = (self.watch.clone(), self.ends.clone(), self.remover());
        let (pause, width) = (remover.tick.saturating_mul(TICKS), self.width());
        tokio::spawn(async move {
            loop {
                sleep(pause).await;
                sleep_until(watch.quiet()).await;
                if !watch.goes_on() {
                    return;
                }
                let statuses = match remover.client.statuses().await {
                    Ok(statuses) => statuses,
                    // Asking again too soon makes it worse.
                    Err(failure) => {
                        watch.hush(failure.retry_after.unwrap_or_default());
                        continue;
                    }
                };
                let failed = watch.failed(&statuses, remover.window);
                let each = failed.into_iter().map(|(machine, failure)| {
                    let remover = &remover;
                    async move {
                        let deadline = lro::deadline(remover.patience);
                        let left = remover.remove(&machine, Proof::Wanted, Until::Going, deadline);
                        (left.await, machine.vm_id, reason(&failure))
                    }
                });
                let mut each = stream::iter(each).buffer_unordered(width);
                while let Some((left, vm_id, reason)) = each.next().await {
                    match left {
                        Left::Nothing => {
                            ends.note(&vm_id, Some(reason), remover.window);
                            watch.forget(&vm_id);
                        }
                        Left::Machine => watch.forget(&vm_id),
                        // It is tried again.
                        Left::Something(wished) => watch.hush(wished),
                    }
                }
            }
        });
    }

    /// Watches a creation no longer: how it ended is known.
    pub(crate) fn watched(&self, machine: &Machine) {
        self.watch.forget(&machine.vm_id);
    }

    fn remover(&self) -> Remover {
        Remover {
            client: self.client.clone(),
            tick: self.options.poll_interval,
            patience: self.options.patience,
            window: self.capabilities.consistency_window,
        }
    }

    /// A machine that seems never to have been made, read for as long as a read may be of the past or a view may
    /// be missing: it was never made if all reads say so.
    pub(crate) async fn reread(&self, call: &Call, machine: &Machine) -> Result<Option<Machine>> {
        let name = &machine.name;
        let read = || -> BoxFuture<'_, Result<Option<Machine>>> {
            Box::pin(async {
                match self.client.get(name).await {
                    Ok(now) => Ok(Some(now)),
                    Err(failure) if failure.is_not_found() => Ok(None),
                    Err(failure) => Err(failure.into_error(call, About::default())),
                }
            })
        };
        let made = |now: &Option<Machine>| !now.as_ref().is_some_and(state::never_made);
        read_until(&self.capabilities, read, made).await
    }
}

/// Removes what is left of creations.
#[derive(Clone)]
struct Remover {
    client: AzureClient,
    tick: Duration,
    patience: Duration,
    window: Duration,
}

/// How far a removal is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Going,
    Gone,
}

/// Whether it is known that a machine was never made, or wants to be seen for a whole window: of one that runs, the
/// power can be missing for a moment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    Enough,
    Wanted,
}

/// What is left of a creation that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing, or nothing for long.
    Nothing,
    /// A machine with power: only its guest has not said that it is ready.
    Machine,
    /// Nobody could be asked, or it cannot be deleted: whatever there was. Azure wishes not to be asked for so long.
    Something(Duration),
}

impl Remover {
    /// Deletes a machine that was never made, past calls that fail.
    async fn remove(
        &self,
        machine: &Machine,
        proof: Proof,
        until: Until,
        deadline: Instant,
    ) -> Left {
        let began = Instant::now();
        let (mut never_made_since, mut sent) = (None, None);
        for pause in lro::pauses(self.tick) {
            // Until then, a read may be of before it was made, or of before it was deleted.
            let certain = began.elapsed() >= self.window;
            let lasts = |since: Option<Instant>| {
                since.is_some_and(|since: Instant| since.elapsed() >= self.window)
            };
            let mut wished = Duration::ZERO;
            match self.client.get(&machine.name).await {
                Ok(now) if now.vm_id != machine.vm_id && certain => return Left::Nothing,
                Ok(now) if now.vm_id != machine.vm_id => {}
                Ok(now) if is_deleting(&now) => {
                    if until == Until::Going {
                        return Left::Nothing;
                    }
                }
                Ok(now) if state::power(&now).is_some() => return Left::Machine,
                Ok(now) if state::never_made(&now) => {
                    never_made_since = never_made_since.or_else(|| Some(Instant::now()));
                    let proven = proof == Proof::Enough || lasts(never_made_since);
                    // One that was accepted is not sent again because of a read of before it: somebody else's
                    // machine may have the name by now.
                    if proven && (sent.is_none() || lasts(sent)) {
                        match self.client.delete(&machine.name).await {
                            Ok(Some(_)) if until == Until::Going => return Left::Nothing,
                            Ok(Some(_)) => sent = Some(Instant::now()),
                            Ok(None) => {}
                            Err(failure) => wished = failure.retry_after.unwrap_or_default(),
                        }
                    }
                }
                // It is shown as it was, or without how it is, which proves nothing.
                Ok(_) => never_made_since = None,
                Err(failure) if failure.is_not_found() && certain => return Left::Nothing,
                // Asking again too soon makes it worse.
                Err(failure) => wished = failure.retry_after.unwrap_or_default(),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || wished > left {
                return Left::Something(wished);
            }
            sleep(pause.max(wished).min(left)).await;
        }
        Left::Something(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Status;

    #[tokio::test(start_paused = true)]
    async fn one_looks_at_all_creations_until_none_goes_on() {
        let (watch, window) = (Watch::default(), Duration::from_secs(20));
        let machine = |vm_id: &str| Machine {
            path: format!("/Machines/{vm_id}"),
            vm_id: vm_id.to_owned(),
            ..Machine::default()
        };
        assert!(watch.add(machine("a")));
        for vm_id in ["b", "c", "d", "f"] {
            assert!(!watch.add(machine(vm_id)), "somebody looks already");
        }
        let statuses: Statuses = [
            ("a", "ProvisioningState/failed/AllocationFailed"),
            ("b", "PowerState/running"),
            ("c", "ProvisioningState/creating"),
            ("f", "ProvisioningState/failed"),
        ]
        .map(|(vm_id, code)| {
            let mut machine = machine(vm_id);
            machine.statuses = vec![Status {
                code: code.to_owned(),
                message: None,
            }];
            if vm_id == "f" {
                // A list of states may leave it out.
                machine.vm_id.clear();
            }
            (format!("/machines/{vm_id}"), machine)
        })
        .into();
        let mut failed = watch.failed(&statuses, window);
        failed.sort_by_key(|(machine, _)| machine.vm_id.clone());
        let codes = failed.iter().map(|(machine, failure)| {
            let code = failure.code.as_deref();
            (machine.vm_id.as_str(), code)
        });
        let codes: Vec<_> = codes.collect();
        assert_eq!(codes, [("a", Some("AllocationFailed")), ("f", None)]);
        assert_eq!(
            watch.open.lock().unwrap().since.len(),
            4,
            "c, d which may not show, a and f until they are gone"
        );
        watch.forget("a");
        watch.forget("f");
        tokio::time::sleep(window * 3).await;
        watch.failed(&statuses, window);
        assert!(watch.goes_on());
        assert_eq!(watch.open.lock().unwrap().since.len(), 1);
        tokio::time::sleep(WATCHED).await;
        assert!(!watch.goes_on());
        assert!(watch.add(machine("e")), "somebody must look again");
    }
}
