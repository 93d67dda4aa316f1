//! Launches that fail after they were accepted: what is left of them is removed, and why is remembered.
//!
//! Owns when a machine is removed that nobody has terminated: only one whose own creation is known to have
//! failed, by the operation that began it or by its state over a whole window, and that never had power. A read
//! removes nothing.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fleetwright::{Call, Result, read_past_lag};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

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

/// How many ends are remembered.
const REMEMBERED: usize = 1000;

/// For how long a creation is watched after its launch was answered. Azure gives up sooner.
const WATCHED: Duration = Duration::from_secs(2 * 60 * 60);

/// How many ticks there are between two looks at what goes on: nobody waits for it.
const TICKS: u32 = 5;

/// Why machines ended that this handle has deleted, by Azure's id. Azure itself forgets it with the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    noted: Arc<Mutex<Noted>>,
}

#[derive(Debug, Default)]
struct Noted {
    reasons: HashMap<String, (Option<String>, Instant)>,
    /// The same, the oldest first.
    in_order: VecDeque<String>,
}

impl Ends {
    /// Notes that a machine was deleted just now, and why if nobody asked for it.
    pub(crate) fn note(&self, vm_id: &str, reason: Option<String>) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let noting = (reason, Instant::now());
        if noted.reasons.insert(vm_id.to_owned(), noting).is_none() {
            noted.in_order.push_back(vm_id.to_owned());
        }
        if noted.in_order.len() > REMEMBERED
            && let Some(oldest) = noted.in_order.pop_front()
        {
            noted.reasons.remove(&oldest);
        }
    }

    pub(crate) fn reason(&self, vm_id: &str) -> Option<String> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let (reason, _) = noted.reasons.get(vm_id)?;
        reason.clone()
    }

    /// Whether a machine was deleted so lately that a read may show it as it was.
    pub(crate) fn is_fresh(&self, vm_id: &str, window: Duration) -> bool {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let noting = noted.reasons.get(vm_id);
        noting.is_some_and(|(_, since)| since.elapsed() < window)
    }
}

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

    /// Those that have failed by now. They are watched no longer, nor are those that have power or are gone.
    fn failed(&self, statuses: &Statuses, window: Duration) -> Vec<(Machine, Failure)> {
        let mut failed = Vec::new();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.since.retain(|vm_id, (machine, since)| {
            let told = statuses.get(&folded(&machine.path));
            let Some(told) = told.filter(|told| told.vm_id == *vm_id) else {
                return since.elapsed() <= window * 2;
            };
            match creation(told) {
                End::Unknown => true,
                End::Done => false,
                End::Failed(failure) => {
                    failed.push((machine.clone(), *failure));
                    false
                }
            }
        });
        failed
    }
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
    pub(crate) async fn remove_failed(&self, machine: &Machine, failure: &Failure) -> Left {
        let left = self.remover().remove(machine, Until::Going).await;
        if left == Left::Nothing {
            self.ends.note(&machine.vm_id, Some(reason(failure)));
        }
        left
    }

    /// Removes what is left of a machine that was never made, and waits until its name is free: for one call's
    /// patience at most.
    pub(crate) async fn clear(&self, machine: &Machine) {
        let (code, message) = state::failure(machine).unwrap_or_default();
        self.ends
            .note(&machine.vm_id, Some(convert::told(code, message)));
        self.remover().remove(machine, Until::Gone).await;
    }

    /// Watches a creation that goes on when its launch is answered, and removes what it leaves if it fails.
    pub(crate) fn watch(&self, machine: Machine) {
        if !self.watch.add(machine) {
            return;
        }
        let (watch, ends, remover) = (self.watch.clone(), self.ends.clone(), self.remover());
        tokio::spawn(async move {
            while watch.goes_on() {
                sleep(remover.tick * TICKS).await;
                let Ok(statuses) = remover.client.statuses().await else {
                    continue;
                };
                for (machine, failure) in watch.failed(&statuses, remover.window) {
                    if remover.remove(&machine, Until::Going).await == Left::Nothing {
                        ends.note(&machine.vm_id, Some(reason(&failure)));
                    }
                }
            }
        });
    }

    fn remover(&self) -> Remover {
        Remover {
            client: self.client.clone(),
            tick: self.options.poll_tick,
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
        read_past_lag(&self.capabilities, read, made).await
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

/// What is left of a creation that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing, or nothing for long.
    Nothing,
    /// A machine with power: only its guest has not said that it is ready.
    Machine,
    /// Nobody could be asked, or it cannot be deleted: whatever there was.
    Something,
}

impl Remover {
    /// Deletes a machine that was never made, past calls that fail.
    async fn remove(&self, machine: &Machine, until: Until) -> Left {
        let deadline = lro::deadline(self.patience);
        let since = Instant::now();
        for pause in lro::pauses(self.tick) {
            // Until then, a read may be of before it was made.
            let certain = since.elapsed() >= self.window;
            match self.client.get(&machine.name).await {
                Ok(now) if now.vm_id != machine.vm_id && certain => return Left::Nothing,
                Ok(now) if now.vm_id == machine.vm_id => {
                    if state::power(&now).is_some() && !is_deleting(&now) {
                        return Left::Machine;
                    }
                    let going = is_deleting(&now)
                        || state::never_made(&now)
                            && matches!(self.client.delete(&machine.name).await, Ok(Some(_)));
                    if going && until == Until::Going {
                        return Left::Nothing;
                    }
                }
                Err(failure) if failure.is_not_found() && certain => return Left::Nothing,
                // What is shown is of the past, or nothing is.
                Ok(_) | Err(_) => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            sleep(pause.min(left)).await;
        }
        Left::Something
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Status;

    #[test]
    fn ends_are_remembered_and_the_oldest_forgotten() {
        let ends = Ends::default();
        for number in 0..=REMEMBERED {
            ends.note(&number.to_string(), None);
            ends.note(&number.to_string(), Some(format!("r-{number}")));
        }
        assert_eq!(ends.reason("0"), None);
        assert_eq!(ends.reason("1").as_deref(), Some("r-1"));
        let noted = ends.noted.lock().unwrap();
        assert_eq!(
            (noted.reasons.len(), noted.in_order.len()),
            (REMEMBERED, REMEMBERED)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn one_looks_at_all_creations_until_none_goes_on() {
        let (watch, window) = (Watch::default(), Duration::from_secs(20));
        let machine = |vm_id: &str| Machine {
            path: format!("/Machines/{vm_id}"),
            vm_id: vm_id.to_owned(),
            ..Machine::default()
        };
        assert!(watch.add(machine("a")));
        for vm_id in ["b", "c", "d"] {
            assert!(!watch.add(machine(vm_id)), "somebody looks already");
        }
        let statuses: Statuses = [
            ("a", "ProvisioningState/failed/AllocationFailed"),
            ("b", "PowerState/running"),
            ("c", "ProvisioningState/creating"),
        ]
        .map(|(vm_id, code)| {
            let mut machine = machine(vm_id);
            machine.statuses = vec![Status {
                code: code.to_owned(),
                message: None,
            }];
            (format!("/machines/{vm_id}"), machine)
        })
        .into();
        let failed = watch.failed(&statuses, window);
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].0.vm_id, "a");
        assert_eq!(failed[0].1.code.as_deref(), Some("AllocationFailed"));
        assert_eq!(
            watch.open.lock().unwrap().since.len(),
            2,
            "c, and d which may not show"
        );
        tokio::time::sleep(window * 3).await;
        watch.failed(&statuses, window);
        assert!(watch.goes_on());
        assert_eq!(watch.open.lock().unwrap().since.len(), 1);
        tokio::time::sleep(WATCHED).await;
        assert!(!watch.goes_on());
        assert!(watch.add(machine("e")), "somebody must look again");
    }
}
