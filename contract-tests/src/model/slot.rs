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

use super::mode::{CallResult, Forgotten, Instance, Mode, Phase, Shape, Verb, outcomes, unheard};

/// A token with its two configs, and everything that may be the case with it.
pub(super) struct Slot {
    configs: [InstanceConfig; 2],
    modes: BTreeSet<Mode>,
    /// The instance that the token was last known for.
    pub(super) id: Option<InstanceId>,
    former: BTreeSet<InstanceId>,
    /// Since when that instance may be going.
    ending_since: Option<Instant>,
    /// When the step began that is being taken: what comes of it may have come of it then.
    began: Instant,
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
            began: Instant::now(),
            remembered: (declared.token_after_terminate, declared.terminated_visible),
        }
    }

    /// Begins a step. Its result may come late, or be lost.
    pub(super) fn begin(&mut self) {
        self.began = Instant::now();
    }

    pub(super) const fn config(&self, shape: Shape) -> &InstanceConfig {
        match shape {
            Shape::Usual => &self.configs[0],
            Shape::Other => &self.configs[1],
        }
    }

    /// Applies the result of a call.
    pub(super) fn hear(&mut self, verb: Verb, result: CallResult) -> Result<(), String> {
        let gone = self.gone();
        let next = self
            .modes
            .iter()
            .flat_map(|mode| outcomes(*mode, verb, gone));
        let next = next.filter(|(one, _)| *one == result);
        self.become_one_of(next.map(|(_, mode)| mode).collect(), &result.to_string())
    }

    /// Applies the instance that a launch returned.
    pub(super) fn hear_instance(&mut self, verb: Verb, id: &InstanceId) -> Result<(), String> {
        if self.id.as_ref() == Some(id) {
            return self.hear(verb, CallResult::Known);
        }
        if self.former.contains(id) {
            return Err(format!("the result is {id}, which was terminated before"));
        }
        self.hear(verb, CallResult::New)?;
        self.learn(id);
        Ok(())
    }

    /// Applies a call that did not return, or whose outcome is unknown.
    pub(super) fn not_hear(&mut self, verb: Verb) {
        let gone = self.gone();
        let next = self
            .modes
            .iter()
            .flat_map(|mode| unheard(*mode, verb, gone));
        self.modes = next.collect();
        self.note_ending();
    }

    /// Takes what a list shows of this token.
    pub(super) fn see_list(&mut self, list: &[InstanceInfo]) -> Result<(), String> {
        let live: Vec<_> = list.iter().filter(|info| !info.state.is_ending()).collect();
        if live.len() > 1 {
            return Err(format!("one token has {}", crate::context::names(list)));
        }
        let live = live.first().copied();
        let known = self.id.clone();
        let fits = |mode: &Mode| match (mode, live) {
            (Mode::Free, live) => live.is_none(),
            (Mode::Is(it), None) => it.phase == Phase::Ending,
            (Mode::Is(it), Some(info)) => {
                let reported = known.as_ref() == Some(&info.id);
                reported == it.known && phase_of(info.state) == it.phase
            }
        };
        let next = self.modes.iter().copied().filter(fits).collect();
        let shown = live.map_or_else(
            || "a list without it".to_owned(),
            |info| format!("a list with {} {}", info.id, info.state),
        );
        self.become_one_of(next, &shown)?;
        match live {
            Some(info) if known.as_ref() != Some(&info.id) => self.learn(&info.id),
            _ => {}
        }
        Ok(())
    }

    /// Takes a description of the instance that the token was last known for; nothing where there is
    /// no record.
    pub(super) fn see(&mut self, state: Option<CloudInstanceState>) -> Result<(), String> {
        let gone = self.gone();
        let fits = |mode: &Mode| match (mode, state) {
            (Mode::Free, _) => false,
            (Mode::Is(it), state) if !it.known || it.phase == Phase::Ending => {
                state.map_or(gone.record, CloudInstanceState::is_ending)
            }
            (Mode::Is(it), state) => state.is_some_and(|state| phase_of(state) == it.phase),
        };
        let next = self.modes.iter().copied().filter(fits).collect();
        let shown = state.map_or_else(|| "not found".to_owned(), |state| state.to_string());
        self.become_one_of(next, &format!("a description as {shown}"))
    }

    /// Takes what a look-up of the token shows.
    pub(super) fn see_record(&mut self, record: &LaunchRecord) -> Result<(), String> {
        let gone = self.gone();
        let id = self.id.clone();
        let fits = |mode: &Mode| match (mode, record) {
            (Mode::Free, record) => *record == LaunchRecord::NotFound,
            (Mode::Is(it), LaunchRecord::Found(infos)) => {
                let one = infos.len() == 1 && id.as_ref() == Some(&infos[0].id);
                it.phase != Phase::Ending && (one || !it.known)
            }
            (Mode::Is(it), LaunchRecord::Terminated(_)) => it.phase == Phase::Ending,
            (Mode::Is(it), LaunchRecord::NotFound) => it.phase == Phase::Ending && gone.token,
        };
        let next = self.modes.iter().copied().filter(fits).collect();
        self.become_one_of(next, &format!("a look-up as {record:?}"))
    }

    fn learn(&mut self, id: &InstanceId) {
        self.former.extend(self.id.replace(id.clone()));
        let heard = self.modes.iter().map(|mode| match mode {
            Mode::Free => Mode::Free,
            Mode::Is(it) => Mode::Is(Instance { known: true, ..*it }),
        });
        self.modes = heard.collect();
        self.ending_since = None;
        self.note_ending();
    }

    fn become_one_of(&mut self, next: BTreeSet<Mode>, shown: &str) -> Result<(), String> {
        if next.is_empty() {
            let id = self.id.as_ref().map_or("nothing yet", InstanceId::as_str);
            let modes: Vec<_> = self.modes.iter().map(in_words).collect();
            return Err(format!(
                "{shown} is not allowed; the token belongs to {id}, which can only be: {}",
                modes.join("; or ")
            ));
        }
        self.modes = next;
        self.note_ending();
        Ok(())
    }

    fn note_ending(&mut self) {
        let ending =
            |mode: &Mode| matches!(mode, Mode::Is(it) if it.phase == Phase::Ending || !it.known);
        if self.modes.iter().any(ending) {
            self.ending_since.get_or_insert(self.began);
        } else {
            self.ending_since = None;
        }
    }

    fn gone(&self) -> Forgotten {
        let since = self.ending_since.map(|since| since.elapsed());
        let (token, record) = self.remembered;
        Forgotten {
            token: since.is_some_and(|since| since >= token),
            record: since.is_some_and(|since| since >= record),
        }
    }
}

const fn phase_of(state: CloudInstanceState) -> Phase {
    match state {
        CloudInstanceState::Pending | CloudInstanceState::Running => Phase::Up,
        CloudInstanceState::Stopping | CloudInstanceState::Stopped => Phase::Down,
        CloudInstanceState::Terminating | CloudInstanceState::Terminated => Phase::Ending,
    }
}

fn in_words(mode: &Mode) -> String {
    let Mode::Is(it) = mode else {
        return "never launched".to_owned();
    };
    let phase = match it.phase {
        Phase::Up => "pending or running",
        Phase::Down => "stopping or stopped",
        Phase::Ending => "terminating or terminated",
    };
    let config = match it.config {
        Shape::Usual => "its usual config",
        Shape::Other => "the other config",
    };
    let heard = if it.known {
        ""
    } else {
        ", with an id that nobody has heard of"
    };
    format!("{phase}, of {config}{heard}")
}
