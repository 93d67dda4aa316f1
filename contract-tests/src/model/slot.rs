//! The possible states of one token, narrowed by every result and every read.
//!
//! Owns the set of possible states, the ids that the token is or was known for, and the time since
//! which its instance may be ending. An empty set is a violation; the message lists the states that
//! were possible before.

use std::{collections::BTreeSet, time::Duration};

use fleetwright::{
    Capabilities, CloudInstanceState, InstanceConfig, InstanceId, InstanceInfo, LaunchRecord,
};
use tokio::time::Instant;

use super::mode::{
    CallResult, Forgotten, Instance, Mode, Phase, Shape, Verb, after_lost_result, outcomes,
};

/// A token with its two configs and its possible states.
pub(super) struct Slot {
    configs: [InstanceConfig; 2],
    modes: BTreeSet<Mode>,
    /// The instance that the token was last known for.
    pub(super) id: Option<InstanceId>,
    /// The ids that the token was known for earlier. No launch may return them again.
    former: BTreeSet<InstanceId>,
    /// Since when that instance may be terminating, or may not be the instance of the token any more.
    ending_since: Option<Instant>,
    /// When the current step began. Its effect may have happened at any time since.
    step_start: Instant,
    /// Since when the id is known.
    known_since: Option<Instant>,
    /// How long reads may not show an instance after its launch.
    consistency_window: Duration,
    /// How long the cloud remembers the token and the record of a terminated instance.
    remembered: (Duration, Duration),
}

impl Slot {
    pub(super) fn new(configs: [InstanceConfig; 2], declared: &Capabilities) -> Self {
        Self {
            configs,
            modes: BTreeSet::from([Mode::Free]),
            id: None,
            former: BTreeSet::new(),
            ending_since: None,
            step_start: Instant::now(),
            known_since: None,
            consistency_window: declared.consistency_window,
            remembered: (declared.token_after_terminate, declared.terminated_visible),
        }
    }

    /// Begins a step.
    pub(super) fn begin(&mut self) {
        self.step_start = Instant::now();
    }

    /// Whether the current step began so soon after the launch that reads may not show the instance yet.
    pub(super) fn may_be_hidden(&self) -> bool {
        self.known_since.is_some_and(|known| {
            self.step_start.saturating_duration_since(known) < self.consistency_window
        })
    }

    pub(super) const fn config(&self, shape: Shape) -> &InstanceConfig {
        match shape {
            Shape::Usual => &self.configs[0],
            Shape::Other => &self.configs[1],
        }
    }

    /// Applies the result of a call: only states in which the call can have this result remain possible.
    pub(super) fn apply_result(&mut self, verb: Verb, result: CallResult) -> Result<(), String> {
        let forgotten = self.forgotten();
        let next = self
            .modes
            .iter()
            .flat_map(|mode| outcomes(*mode, verb, forgotten));
        let next = next.filter(|(one, _)| *one == result);
        self.narrow_to(next.map(|(_, mode)| mode).collect(), &result.to_string())
    }

    /// Applies the instance that a launch returned.
    pub(super) fn apply_instance(&mut self, verb: Verb, id: &InstanceId) -> Result<(), String> {
        if self.id.as_ref() == Some(id) {
            return self.apply_result(verb, CallResult::Known);
        }
        if self.former.contains(id) {
            return Err(format!("the result is {id}, which was terminated before"));
        }
        self.apply_result(verb, CallResult::New)?;
        self.set_id(id);
        Ok(())
    }

    /// Applies a call that did not return, or whose outcome is unknown.
    pub(super) fn apply_lost_result(&mut self, verb: Verb) {
        let forgotten = self.forgotten();
        let next = self
            .modes
            .iter()
            .flat_map(|mode| after_lost_result(*mode, verb, forgotten));
        self.modes = next.collect();
        self.update_ending_since();
    }

    /// Applies the entries of this token in a list. At most one of them may be live.
    pub(super) fn apply_list(&mut self, list: &[InstanceInfo]) -> Result<(), String> {
        let live: Vec<_> = list.iter().filter(|info| !info.state.is_ending()).collect();
        if live.len() > 1 {
            return Err(format!("one token has {}", crate::context::names(list)));
        }
        let live = live.first().copied();
        let known = self.id.clone();
        let fits = |mode: &Mode| match (mode, live) {
            (Mode::Free, live) => live.is_none(),
            (Mode::Bound(instance), None) => instance.phase == Phase::Ending,
            (Mode::Bound(instance), Some(info)) => {
                let reported = known.as_ref() == Some(&info.id);
                reported == instance.known && phase_of(info.state) == instance.phase
            }
        };
        let next = self.modes.iter().copied().filter(fits).collect();
        let shown = live.map_or_else(
            || "a list without it".to_owned(),
            |info| format!("a list with {} {}", info.id, info.state),
        );
        self.narrow_to(next, &shown)?;
        match live {
            Some(info) if known.as_ref() != Some(&info.id) => self.set_id(&info.id),
            _ => {}
        }
        Ok(())
    }

    /// Applies a description of the instance that the token was last known for: its state, or `None` for
    /// not found.
    pub(super) fn apply_description(
        &mut self,
        state: Option<CloudInstanceState>,
    ) -> Result<(), String> {
        let forgotten = self.forgotten();
        let fits = |mode: &Mode| match (mode, state) {
            (Mode::Free, _) => false,
            (Mode::Bound(instance), state)
                if !instance.known || instance.phase == Phase::Ending =>
            {
                state.map_or(forgotten.record, CloudInstanceState::is_ending)
            }
            (Mode::Bound(instance), state) => {
                state.is_some_and(|state| phase_of(state) == instance.phase)
            }
        };
        let next = self.modes.iter().copied().filter(fits).collect();
        let shown = state.map_or_else(|| "not found".to_owned(), |state| state.to_string());
        self.narrow_to(next, &format!("a description as {shown}"))
    }

    /// Applies a lookup of the token.
    pub(super) fn apply_lookup(&mut self, record: &LaunchRecord) -> Result<(), String> {
        let forgotten = self.forgotten();
        let id = self.id.clone();
        let fits = |mode: &Mode| match (mode, record) {
            (Mode::Free, record) => *record == LaunchRecord::NotFound,
            (Mode::Bound(instance), LaunchRecord::Found(infos)) => {
                let one = infos.len() == 1 && id.as_ref() == Some(&infos[0].id);
                instance.phase != Phase::Ending && (one || !instance.known)
            }
            (Mode::Bound(instance), LaunchRecord::Terminated(_)) => instance.phase == Phase::Ending,
            (Mode::Bound(instance), LaunchRecord::NotFound) => {
                instance.phase == Phase::Ending && forgotten.token
            }
        };
        let next = self.modes.iter().copied().filter(fits).collect();
        self.narrow_to(next, &format!("a lookup as {}", crate::shown(record)))
    }

    /// Makes `id` the instance of the token, and the previous one a former one.
    fn set_id(&mut self, id: &InstanceId) {
        self.former.extend(self.id.replace(id.clone()));
        let known = self.modes.iter().map(|mode| match mode {
            Mode::Free => Mode::Free,
            Mode::Bound(instance) => Mode::Bound(Instance {
                known: true,
                ..*instance
            }),
        });
        self.modes = known.collect();
        self.known_since = Some(Instant::now());
        self.ending_since = None;
        self.update_ending_since();
    }

    /// Replaces the possible states with `next`. If there is none, what was observed is not allowed.
    fn narrow_to(&mut self, next: BTreeSet<Mode>, shown: &str) -> Result<(), String> {
        if next.is_empty() {
            let id = self.id.as_ref().map_or("nothing yet", InstanceId::as_str);
            let modes: Vec<_> = self.modes.iter().map(describe).collect();
            return Err(format!(
                "{shown} is not allowed; the token belongs to {id}, which can only be: {}",
                modes.join("; or ")
            ));
        }
        self.modes = next;
        self.update_ending_since();
        Ok(())
    }

    /// Remembers when the instance may have begun to end, as long as that is possible.
    fn update_ending_since(&mut self) {
        let ending = |mode: &Mode| matches!(mode, Mode::Bound(instance) if instance.phase == Phase::Ending || !instance.known);
        if self.modes.iter().any(ending) {
            self.ending_since.get_or_insert(self.step_start);
        } else {
            self.ending_since = None;
        }
    }

    /// Returns what the cloud may have forgotten by now.
    fn forgotten(&self) -> Forgotten {
        let since = self.ending_since.map(|since| since.elapsed());
        let (token, record) = self.remembered;
        Forgotten {
            token: since.is_some_and(|since| since >= token),
            record: since.is_some_and(|since| since >= record),
        }
    }
}

/// Returns the phase of a state.
const fn phase_of(state: CloudInstanceState) -> Phase {
    match state {
        CloudInstanceState::Pending | CloudInstanceState::Running => Phase::Up,
        CloudInstanceState::Stopping | CloudInstanceState::Stopped => Phase::Down,
        CloudInstanceState::Terminating | CloudInstanceState::Terminated => Phase::Ending,
    }
}

/// Describes a possible state for a message.
fn describe(mode: &Mode) -> String {
    let Mode::Bound(instance) = mode else {
        return "never launched".to_owned();
    };
    let phase = match instance.phase {
        Phase::Up => "pending or running",
        Phase::Down => "stopping or stopped",
        Phase::Ending => "terminating or terminated",
    };
    let config = match instance.config {
        Shape::Usual => "its usual config",
        Shape::Other => "the other config",
    };
    let id = if instance.known {
        ""
    } else {
        ", with an id that the caller does not know"
    };
    format!("{phase}, of {config}{id}")
}

#[cfg(test)]
mod tests {
    use fleetwright::TagLimits;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_recent_launch_may_be_hidden() {
        let config = InstanceConfig::builder("image", "type").build().unwrap();
        let mut declared = Capabilities::new("backend", TagLimits::new(50, 128, 256), 1024);
        declared.consistency_window = Duration::from_secs(2);
        let mut slot = Slot::new([config.clone(), config], &declared);
        assert!(!slot.may_be_hidden(), "no id is known");
        let id = InstanceId::new("backend://1").unwrap();
        slot.apply_instance(Verb::Launch(Shape::Usual), &id)
            .unwrap();
        slot.begin();
        assert!(slot.may_be_hidden());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(slot.may_be_hidden(), "the step began within the window");
        slot.begin();
        assert!(!slot.may_be_hidden());
    }
}
