//! Carries out a sequence on an account and compares every result with the model.
//!
//! Owns the handle and the record of the steps, which is part of the message of a violation. It
//! never judges a result itself: it translates what a call returned into the model's terms, and
//! [`Slot`] decides.
//!
//! A fault or an external actor that the harness does not offer is left out of a step; the call is
//! then made without it. A crash that the harness cannot inject is simulated by dropping the call
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
    step::{Disruption, SLOTS, Step},
};
use crate::{Context, Failure, WireFault, WireOp, dropped::drop_after};

/// The tag that distinguishes the tokens in a list.
const SLOT_TAG: &str = "kit-slot";

/// A sequence in progress: the current handle, the tokens with their possible states, and the steps so
/// far with their results.
pub(super) struct Execution<'a> {
    cx: &'a Context,
    handle: Arc<dyn InstanceProvisioner>,
    slots: Vec<Slot>,
    log: Vec<String>,
}

/// What a call returned: an instance, or nothing but success.
type Returned = Result<Option<InstanceId>, ProvisionError>;

impl<'a> Execution<'a> {
    pub(super) async fn new(cx: &'a Context) -> Result<Self, Failure> {
        let slots = (0..SLOTS).map(|slot| Ok(Slot::new(configs(cx, slot)?, cx.capabilities())));
        Ok(Self {
            cx,
            handle: cx.open_handle().await,
            slots: slots.collect::<Result<_, Failure>>()?,
            log: Vec::new(),
        })
    }

    /// Carries out a step. It fails if the result is not possible in the model.
    pub(super) async fn run_step(&mut self, step: &Step) -> Result<(), Failure> {
        self.log.push(step.to_string());
        self.slots.iter_mut().for_each(Slot::begin);
        match step {
            Step::Call(slot, verb, disruption) => self.call(*slot, *verb, disruption).await,
            Step::Read => self.compare_reads().await,
            Step::FinishTransitions => self.finish_transitions().await,
            Step::Restart => {
                self.handle = self.cx.open_handle().await;
                Ok(())
            }
            Step::External(slot, verb) => {
                self.act_externally(*slot, *verb).await;
                Ok(())
            }
        }
    }

    /// Compares all reads with the model after the last step.
    pub(super) async fn finish(&mut self) -> Result<(), Failure> {
        self.log.push("read everything at the end".to_owned());
        self.slots.iter_mut().for_each(Slot::begin);
        self.compare_reads().await
    }

    /// Makes a call and applies its result, or the lack of one, to the token.
    async fn call(
        &mut self,
        slot: usize,
        verb: Verb,
        disruption: &Disruption,
    ) -> Result<(), Failure> {
        if self.slots[slot].id.is_none() && !matches!(verb, Verb::Launch(_)) {
            self.append_to_log(" (nothing to do: no id is known)");
            return Ok(());
        }
        let returned = self.call_with_disruption(slot, verb, disruption).await;
        let without_disruption = matches!(disruption, Disruption::None);
        let Some(returned) = returned else {
            self.append_to_log(" -> no response");
            self.slots[slot].apply_lost_result(verb);
            return Ok(());
        };
        self.append_to_log(&match &returned {
            Ok(Some(id)) => format!(" -> {id}"),
            Ok(None) => " -> ok".to_owned(),
            Err(error) => format!(" -> {} ({})", error.kind(), error.effect()),
        });
        let checked = match returned {
            Ok(Some(id)) if matches!(verb, Verb::Launch(_)) => {
                self.slots[slot].apply_instance(verb, &id)
            }
            Ok(Some(id)) if self.slots[slot].id.as_ref() != Some(&id) => {
                Err(format!("a {verb} returned another instance, {id}"))
            }
            Ok(_) => self.slots[slot].apply_result(verb, CallResult::Done),
            Err(error) => self.apply_error(slot, verb, &error, without_disruption),
        };
        checked.map_err(|observed| self.violation(&observed))
    }

    /// Applies an error. Kinds that the contract assigns to a state of the token are results like any
    /// other. Another error is a violation if nothing disturbed the call; otherwise its effect decides.
    fn apply_error(
        &mut self,
        slot: usize,
        verb: Verb,
        error: &ProvisionError,
        without_disruption: bool,
    ) -> Result<(), String> {
        let kinds = [
            (ErrorKind::TokenConflict, CallResult::TokenConflict),
            (ErrorKind::TokenSpent, CallResult::TokenSpent),
            (ErrorKind::WrongState, CallResult::WrongState),
            (ErrorKind::NotFound, CallResult::NotFound),
            (ErrorKind::Conflict, CallResult::Busy),
        ];
        let reported = kinds.into_iter().find(|(kind, _)| *kind == error.kind());
        if let Some((_, result)) = reported {
            return self.slots[slot].apply_result(verb, result);
        }
        if without_disruption && error.kind() != ErrorKind::Throttled {
            return Err(format!("nothing was wrong with the call, but: {error}"));
        }
        match error.effect() {
            Effect::None => {}
            Effect::Unknown | Effect::Done => self.slots[slot].apply_lost_result(verb),
        }
        Ok(())
    }

    /// Makes a call with its disruption. Returns `None` if the call did not return.
    async fn call_with_disruption(
        &mut self,
        slot: usize,
        verb: Verb,
        disruption: &Disruption,
    ) -> Option<Returned> {
        let returned = match disruption {
            Disruption::None => Some(self.send(slot, verb).await),
            Disruption::Dropped(polls) => drop_after(*polls, self.send(slot, verb)).await,
            Disruption::Fault(fault) => {
                self.inject(verb, fault).await;
                let returned = self.send(slot, verb).await;
                self.clear().await;
                Some(returned)
            }
            Disruption::Crash(fault) => {
                let returned = if self.inject(verb, fault).await {
                    timeout(self.cx.call_timeout(), self.send(slot, verb))
                        .await
                        .ok()
                } else {
                    drop_after(2, self.send(slot, verb)).await
                };
                self.clear().await;
                self.handle = self.cx.open_handle().await;
                returned
            }
        };
        match returned {
            // Soon after a launch, not found proves nothing and changed nothing: the call is repeated when reads are consistent.
            Some(Err(error))
                if error.kind() == ErrorKind::NotFound && self.slots[slot].may_be_hidden() =>
            {
                self.cx.wait_for_consistent_reads().await;
                Some(self.send(slot, verb).await)
            }
            returned => returned,
        }
    }

    /// Makes a call through the current handle.
    async fn send(&self, slot: usize, verb: Verb) -> Returned {
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

    /// Injects a fault into the next call of this kind. Returns `false` if the harness cannot.
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

    /// Lets the external actor act on the instance. Its effect is not known until the next read.
    async fn act_externally(&mut self, slot: usize, verb: Verb) {
        let (external_actor, id) = (
            self.cx.harness().external_actor(),
            self.slots[slot].id.clone(),
        );
        let (Some(external_actor), Some(id)) = (external_actor, id) else {
            self.append_to_log(" (nothing to do)");
            return;
        };
        match verb {
            Verb::Stop => external_actor.stop(&id).await,
            Verb::Terminate => external_actor.terminate(&id).await,
            Verb::Launch(_) | Verb::Start => return,
        }
        // Only the next read shows whether the instance could be changed.
        self.slots[slot].apply_lost_result(verb);
    }

    /// Compares the list, the description and the lookup of every token with the model.
    async fn compare_reads(&mut self) -> Result<(), Failure> {
        self.cx.wait_for_consistent_reads().await;
        let list = self.handle.list_instances(&self.cx.filter()).await;
        let list = list.map_err(|error| self.read_failed(&error))?;
        for slot in 0..SLOTS {
            let number = slot.to_string();
            let ours = list
                .iter()
                .filter(|info| info.tags.get(SLOT_TAG) == Some(&*number));
            let ours: Vec<_> = ours.cloned().collect();
            let observed = self.slots[slot].apply_list(&ours);
            observed.map_err(|observed| self.violation(&format!("#{slot}: {observed}")))?;
            if let Some(id) = self.slots[slot].id.clone() {
                let state = match self.handle.describe_instance(&id).await {
                    Ok(status) => Some(status.state),
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    Err(error) => return Err(self.read_failed(&error)),
                };
                let observed = self.slots[slot].apply_description(state);
                observed.map_err(|observed| self.violation(&format!("#{slot}: {observed}")))?;
            }
            if let Some(token) = &self.slots[slot].config(Shape::Usual).launch_token {
                let record = self.handle.find_launch(token).await;
                let record = record.map_err(|error| self.read_failed(&error))?;
                let observed = self.slots[slot].apply_lookup(&record);
                observed.map_err(|observed| self.violation(&format!("#{slot}: {observed}")))?;
            }
        }
        Ok(())
    }

    /// Waits until no instance is in a transition.
    async fn finish_transitions(&self) -> Result<(), Failure> {
        for id in self.slots.iter().filter_map(|slot| slot.id.as_ref()) {
            let what = format!("{id} is in no transition");
            let finished = self.cx.eventually(&what, async || {
                match self.handle.describe_instance(id).await {
                    Ok(status) => Ok(matches!(
                        status.state,
                        CloudInstanceState::Running
                            | CloudInstanceState::Stopped
                            | CloudInstanceState::Terminated
                    )
                    .then_some(())),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some(())),
                    Err(error) => Err(self.read_failed(&error)),
                }
            });
            finished.await?;
        }
        Ok(())
    }

    /// Adds text to the line of the current step.
    fn append_to_log(&mut self, more: &str) {
        if let Some(last) = self.log.last_mut() {
            last.push_str(more);
        }
    }

    fn read_failed(&self, error: &ProvisionError) -> Failure {
        self.violation(&format!("a read failed: {error}"))
    }

    /// Returns a violation with the sequence that led to it.
    fn violation(&self, observed: &str) -> Failure {
        let lines = self.log.iter().enumerate();
        let lines: Vec<_> = lines
            .map(|(at, step)| format!("\n    {}. {step}", at + 1))
            .collect();
        Failure::Violated(format!("{observed}; the sequence was:{}", lines.concat()))
    }
}

/// Returns two configs for one token. A tag distinguishes them from those of other tokens.
fn configs(cx: &Context, slot: usize) -> Result<[InstanceConfig; 2], Failure> {
    let mut usual = cx.config_with_token();
    let tagged = usual.tags.insert(SLOT_TAG, slot.to_string());
    tagged.map_err(|error| Failure::KitError(error.to_string()))?;
    let mut other = usual.clone();
    let tagged = other.tags.insert("kit-other", "yes");
    tagged.map_err(|error| Failure::KitError(error.to_string()))?;
    Ok([usual, other])
}
