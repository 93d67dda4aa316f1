//! Carries out a sequence on an account and compares every result with the model.
//!
//! Owns the handle and the record of the steps, which is part of the message of a violation. It
//! never judges a result itself: it translates what a call returned into the model's terms, and
//! [`Slot`] decides.
//!
//! A fault or an external actor that the harness does not offer is left out of a step; the call is
//! then made without it. A crash that the harness cannot inject is played by dropping the call
//! after two polls. Either way the process continues with a new handle.

use std::sync::Arc;

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceId, InstanceProvisioner,
    ProvisionError,
};
use tokio::time::timeout;

use super::{
    mode::{CallResult, Shape, Verb},
    slot::Slot,
    step::{Mishap, SLOTS, Step},
};
use crate::{Context, Failure, WireFault, WireOp, dropped::drop_after};

/// The tag that distinguishes the tokens in a list.
const SLOT_TAG: &str = "kit-slot";

pub(super) struct Play<'a> {
    cx: &'a Context,
    handle: Arc<dyn InstanceProvisioner>,
    slots: Vec<Slot>,
    reported: Vec<String>,
}

/// The result of a call: an instance, or done.
type Said = Result<Option<InstanceId>, ProvisionError>;

impl<'a> Play<'a> {
    pub(super) async fn new(cx: &'a Context) -> Result<Self, Failure> {
        let slots = (0..SLOTS).map(|slot| Ok(Slot::new(configs(cx, slot)?, cx.capabilities())));
        Ok(Self {
            cx,
            handle: cx.open_handle().await,
            slots: slots.collect::<Result<_, Failure>>()?,
            reported: Vec::new(),
        })
    }

    /// Takes a step.
    pub(super) async fn take(&mut self, step: &Step) -> Result<(), Failure> {
        self.reported.push(step.to_string());
        self.slots.iter_mut().for_each(Slot::begin);
        match step {
            Step::Call(slot, verb, mishap) => self.call(*slot, *verb, mishap).await,
            Step::Look => self.look().await,
            Step::Rest => self.rest().await,
            Step::Restart => {
                self.handle = self.cx.open_handle().await;
                Ok(())
            }
            Step::Outside(slot, verb) => {
                self.outside(*slot, *verb).await;
                Ok(())
            }
        }
    }

    /// In the end everything is as the model says.
    pub(super) async fn finish(&mut self) -> Result<(), Failure> {
        self.reported
            .push("look at everything in the end".to_owned());
        self.slots.iter_mut().for_each(Slot::begin);
        self.look().await
    }

    async fn call(&mut self, slot: usize, verb: Verb, mishap: &Mishap) -> Result<(), Failure> {
        if self.slots[slot].id.is_none() && !matches!(verb, Verb::Launch(_)) {
            self.add(" (nothing to do: no id is known)");
            return Ok(());
        }
        let said = self.make(slot, verb, mishap).await;
        let quiet = matches!(mishap, Mishap::None);
        let Some(said) = said else {
            self.add(" -> no response");
            self.slots[slot].not_hear(verb);
            return Ok(());
        };
        self.add(&match &said {
            Ok(Some(id)) => format!(" -> {id}"),
            Ok(None) => " -> ok".to_owned(),
            Err(error) => format!(" -> {} ({})", error.kind(), error.effect()),
        });
        let judged = match said {
            Ok(Some(id)) if matches!(verb, Verb::Launch(_)) => {
                self.slots[slot].hear_instance(verb, &id)
            }
            Ok(Some(id)) if self.slots[slot].id.as_ref() != Some(&id) => {
                Err(format!("a {verb} returned another instance, {id}"))
            }
            Ok(_) => self.slots[slot].hear(verb, CallResult::Done),
            Err(error) => self.refused(slot, verb, &error, quiet),
        };
        judged.map_err(|observed| self.broken(&observed))
    }

    fn refused(
        &mut self,
        slot: usize,
        verb: Verb,
        error: &ProvisionError,
        quiet: bool,
    ) -> Result<(), String> {
        let telling = [
            (ErrorKind::TokenConflict, CallResult::TokenConflict),
            (ErrorKind::TokenSpent, CallResult::TokenSpent),
            (ErrorKind::WrongState, CallResult::WrongState),
            (ErrorKind::NotFound, CallResult::NotFound),
            (ErrorKind::Conflict, CallResult::Busy),
        ];
        let reported = telling.into_iter().find(|(kind, _)| *kind == error.kind());
        if let Some((_, result)) = reported {
            return self.slots[slot].hear(verb, result);
        }
        if quiet && error.kind() != ErrorKind::Throttled {
            return Err(format!("nothing was wrong with the call, but: {error}"));
        }
        match error.effect() {
            Effect::None => {}
            Effect::Unknown | Effect::Done => self.slots[slot].not_hear(verb),
        }
        Ok(())
    }

    /// Makes a call with its fault. Returns `None` if it did not return.
    async fn make(&mut self, slot: usize, verb: Verb, mishap: &Mishap) -> Option<Said> {
        match mishap {
            Mishap::None => {
                let said = self.plainly(slot, verb).await;
                let window = self.cx.capabilities().consistency_window;
                match said {
                    // Within the window that proves nothing, so the call is repeated after it.
                    Err(error) if error.kind() == ErrorKind::NotFound && !window.is_zero() => {
                        self.cx.settle_reads().await;
                        Some(self.plainly(slot, verb).await)
                    }
                    said => Some(said),
                }
            }
            Mishap::Dropped(polls) => drop_after(*polls, self.plainly(slot, verb)).await,
            Mishap::Fault(fault) => {
                self.inject(verb, fault).await;
                let said = self.plainly(slot, verb).await;
                self.clear().await;
                Some(said)
            }
            Mishap::Crash(fault) => {
                let said = if self.inject(verb, fault).await {
                    timeout(self.cx.call_timeout(), self.plainly(slot, verb))
                        .await
                        .ok()
                } else {
                    drop_after(2, self.plainly(slot, verb)).await
                };
                self.clear().await;
                self.handle = self.cx.open_handle().await;
                said
            }
        }
    }

    async fn plainly(&self, slot: usize, verb: Verb) -> Said {
        let (handle, slot) = (&*self.handle, &self.slots[slot]);
        match (verb, &slot.id) {
            (Verb::Launch(shape), _) => {
                let launched = handle.launch_instance(slot.config(shape)).await;
                launched.map(|info| Some(info.id))
            }
            (Verb::Stop, Some(id)) => handle.stop_instance(id).await.map(|()| None),
            (Verb::Start, Some(id)) => handle.start_instance(id).await.map(|info| Some(info.id)),
            (Verb::Terminate, Some(id)) => handle.terminate_instance(id).await.map(|()| None),
            (Verb::Stop | Verb::Start | Verb::Terminate, None) => Ok(None),
        }
    }

    async fn inject(&self, verb: Verb, fault: &WireFault) -> bool {
        let operation = match verb {
            Verb::Launch(_) => WireOp::Launch,
            Verb::Stop => WireOp::Stop,
            Verb::Start => WireOp::Start,
            Verb::Terminate => WireOp::Terminate,
        };
        let faults = self.cx.harness().faults();
        let Some(faults) = faults.filter(|faults| faults.supports(fault)) else {
            return false;
        };
        faults.inject(operation, 1, fault.clone()).await;
        true
    }

    async fn clear(&self) {
        if let Some(faults) = self.cx.harness().faults() {
            faults.clear().await;
        }
    }

    async fn outside(&mut self, slot: usize, verb: Verb) {
        let (external_actor, id) = (
            self.cx.harness().external_actor(),
            self.slots[slot].id.clone(),
        );
        let (Some(external_actor), Some(id)) = (external_actor, id) else {
            self.add(" (nothing to do)");
            return;
        };
        match verb {
            Verb::Stop => external_actor.stop(&id).await,
            Verb::Terminate => external_actor.terminate(&id).await,
            Verb::Launch(_) | Verb::Start => return,
        }
        // The result is observed by the next read.
        self.slots[slot].not_hear(verb);
    }

    /// Compares everything that reads show with the model.
    async fn look(&mut self) -> Result<(), Failure> {
        self.cx.settle_reads().await;
        let list = self.handle.list_instances(&self.cx.filter()).await;
        let list = list.map_err(|error| self.failed(&error))?;
        for slot in 0..SLOTS {
            let number = slot.to_string();
            let ours = list
                .iter()
                .filter(|info| info.tags.get(SLOT_TAG) == Some(&*number));
            let ours: Vec<_> = ours.cloned().collect();
            let observed = self.slots[slot].see_list(&ours);
            observed.map_err(|observed| self.broken(&format!("#{slot}: {observed}")))?;
            if let Some(id) = self.slots[slot].id.clone() {
                let state = match self.handle.describe_instance(&id).await {
                    Ok(status) => Some(status.state),
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    Err(error) => return Err(self.failed(&error)),
                };
                let observed = self.slots[slot].see(state);
                observed.map_err(|observed| self.broken(&format!("#{slot}: {observed}")))?;
            }
            if let Some(token) = &self.slots[slot].config(Shape::Usual).launch_token {
                let record = self.handle.find_launch(token).await;
                let record = record.map_err(|error| self.failed(&error))?;
                let observed = self.slots[slot].see_record(&record);
                observed.map_err(|observed| self.broken(&format!("#{slot}: {observed}")))?;
            }
        }
        Ok(())
    }

    /// Lets every transition that is under way come to its end.
    async fn rest(&self) -> Result<(), Failure> {
        for id in self.slots.iter().filter_map(|slot| slot.id.as_ref()) {
            let what = format!("{id} is at rest");
            let rested = self.cx.eventually(&what, async || {
                match self.handle.describe_instance(id).await {
                    Ok(status) => Ok(matches!(
                        status.state,
                        CloudInstanceState::Running
                            | CloudInstanceState::Stopped
                            | CloudInstanceState::Terminated
                    )
                    .then_some(())),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some(())),
                    Err(error) => Err(self.failed(&error)),
                }
            });
            rested.await?;
        }
        Ok(())
    }

    fn add(&mut self, more: &str) {
        if let Some(last) = self.reported.last_mut() {
            last.push_str(more);
        }
    }

    fn failed(&self, error: &ProvisionError) -> Failure {
        self.broken(&format!("a read failed: {error}"))
    }

    /// The violation, with the whole sequence that led to it.
    fn broken(&self, observed: &str) -> Failure {
        let lines = self.reported.iter().enumerate();
        let lines: Vec<_> = lines
            .map(|(at, reported)| format!("\n    {}. {reported}", at + 1))
            .collect();
        Failure::Violated(format!("{observed}; the sequence was:{}", lines.concat()))
    }
}

/// Two configs for one token. A tag distinguishes them from those of other tokens.
fn configs(cx: &Context, slot: usize) -> Result<[InstanceConfig; 2], Failure> {
    let mut usual = cx.config_with_token();
    let tagged = usual.tags.insert(SLOT_TAG, slot.to_string());
    tagged.map_err(|error| Failure::KitError(error.to_string()))?;
    let mut other = usual.clone();
    let tagged = other.tags.insert("kit-other", "yes");
    tagged.map_err(|error| Failure::KitError(error.to_string()))?;
    Ok([usual, other])
}
