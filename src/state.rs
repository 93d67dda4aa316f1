//! The state of a cloud instance, the same for every backend.
//!
//! Owns the six states, their frozen names, their order and the allowed transitions. It never maps a
//! native state: each provider does that in its own `state.rs`.
//!
//! | state | allowed next states |
//! | --- | --- |
//! | pending | running, stopping, terminating; stopped (a start failed); terminated (a launch failed late) |
//! | running | stopping, terminating; pending (repaired or reimaged in place) |
//! | stopping | stopped, terminating |
//! | stopped | pending, terminating |
//! | terminating | terminated |
//! | terminated | nothing |

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{InvalidValue, Problem};

/// The state of an instance as its cloud reports it.
///
/// A native state that a backend does not know is reported as [`Pending`](Self::Pending), with its
/// native name in [`InstanceInfo::native_state`](crate::InstanceInfo::native_state). It is never
/// reported as running or terminated, and the allowed transitions do not apply to it.
///
/// Pollers may miss states: use [`can_be_observed_after`](Self::can_be_observed_after) to check what
/// a poll returned, and [`can_become`](Self::can_become) for single transitions.
///
/// ```
/// use fleetwright::CloudInstanceState::{self, *};
///
/// assert_eq!(CloudInstanceState::ALL.map(|s| s.as_str()).join(" "),
///     "pending running stopping stopped terminating terminated");
/// assert!(Running.can_become(Stopping));
/// assert!(!Terminated.can_become(Pending));
/// assert!(Stopped.can_be_observed_after(Running)); // the poller missed `stopping`
/// assert!(Pending.leads_to(Running) && !Stopped.leads_to(Running));
/// assert_eq!("stopped".parse(), Ok(Stopped));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CloudInstanceState {
    /// The instance is launching or booting.
    Pending,
    /// The instance runs. The cloud does not know whether its software is ready.
    Running,
    /// The instance is shutting down. Its storage is kept.
    Stopping,
    /// The instance is stopped, and its compute is released. It can be started again.
    Stopped,
    /// The instance is being destroyed. Nothing brings it back.
    Terminating,
    /// The instance is destroyed. The final state.
    Terminated,
}

use CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated, Terminating};

impl CloudInstanceState {
    /// All six states, from launch to termination. The order and the names are frozen.
    pub const ALL: [Self; 6] = [Pending, Running, Stopping, Stopped, Terminating, Terminated];

    /// Returns the frozen lower-case name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Pending => "pending",
            Running => "running",
            Stopping => "stopping",
            Stopped => "stopped",
            Terminating => "terminating",
            Terminated => "terminated",
        }
    }

    /// Returns the states that may directly follow this one, without itself.
    pub const fn successors(self) -> &'static [Self] {
        match self {
            Pending => &[Running, Stopping, Stopped, Terminating, Terminated],
            Running => &[Pending, Stopping, Terminating],
            Stopping => &[Stopped, Terminating],
            Stopped => &[Pending, Terminating],
            Terminating => &[Terminated],
            Terminated => &[],
        }
    }

    /// Returns whether `next` may directly follow this state. No state follows itself.
    pub fn can_become(self, next: Self) -> bool {
        self.successors().contains(&next)
    }

    /// Returns whether a poller may observe this state after `previous`: it is the same state, or a
    /// chain of [successors](Self::successors) leads to it.
    pub fn can_be_observed_after(self, previous: Self) -> bool {
        match previous {
            Pending | Running | Stopping | Stopped => true,
            Terminating => matches!(self, Terminating | Terminated),
            Terminated => self == Terminated,
        }
    }

    /// Returns whether an instance in this state reaches `goal` without another call, or is in it.
    pub const fn leads_to(self, goal: Self) -> bool {
        match self {
            Pending => matches!(goal, Pending | Running),
            Running => matches!(goal, Running),
            Stopping => matches!(goal, Stopping | Stopped),
            Stopped => matches!(goal, Stopped),
            Terminating => matches!(goal, Terminating | Terminated),
            Terminated => matches!(goal, Terminated),
        }
    }

    /// Returns whether the instance is terminating or terminated.
    pub const fn is_ending(self) -> bool {
        matches!(self, Terminating | Terminated)
    }

    /// Returns whether no other state can follow. True only for [`Terminated`].
    pub const fn is_final(self) -> bool {
        self.successors().is_empty()
    }
}

impl fmt::Display for CloudInstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for CloudInstanceState {
    type Err = InvalidValue;

    /// Parses a frozen name. Case and spaces matter.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected =
            "one of pending, running, stopping, stopped, terminating, terminated (lower case)";
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| InvalidValue::new("state", Problem::Malformed { expected }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_order_are_frozen() {
        let names = [
            "pending",
            "running",
            "stopping",
            "stopped",
            "terminating",
            "terminated",
        ];
        assert_eq!(
            CloudInstanceState::ALL.map(CloudInstanceState::as_str),
            names
        );
        for (state, name) in CloudInstanceState::ALL.into_iter().zip(names) {
            assert_eq!(name.parse(), Ok(state));
            assert_eq!(format!("{state:>12}"), format!("{name:>12}"));
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("{name:?}"));
        }
        assert!(CloudInstanceState::ALL.is_sorted());
    }

    #[test]
    fn only_exact_names_are_parsed() {
        for wrong in ["", "Running", "running ", "shutting-down", "gone"] {
            let error = wrong.parse::<CloudInstanceState>().unwrap_err();
            assert!(
                error.to_string().contains("one of pending, running"),
                "{error}"
            );
        }
    }

    #[test]
    fn observable_states_are_the_closure_of_the_successors() {
        for from in CloudInstanceState::ALL {
            let mut reached = vec![from];
            let mut next = 0;
            while next < reached.len() {
                for state in reached[next].successors() {
                    if !reached.contains(state) {
                        reached.push(*state);
                    }
                }
                next += 1;
            }
            for to in CloudInstanceState::ALL {
                assert_eq!(
                    to.can_be_observed_after(from),
                    reached.contains(&to),
                    "{from} to {to}"
                );
            }
        }
    }

    #[test]
    fn allowed_transitions_are_fixed() {
        let edges: Vec<_> = CloudInstanceState::ALL
            .into_iter()
            .flat_map(|from| CloudInstanceState::ALL.map(|to| (from, to)))
            .filter(|(from, to)| from.can_become(*to))
            .collect();
        let expected = [
            (Pending, Running),
            (Pending, Stopping),
            (Pending, Stopped),
            (Pending, Terminating),
            (Pending, Terminated),
            (Running, Pending),
            (Running, Stopping),
            (Running, Terminating),
            (Stopping, Stopped),
            (Stopping, Terminating),
            (Stopped, Pending),
            (Stopped, Terminating),
            (Terminating, Terminated),
        ];
        assert_eq!(edges, expected);
    }

    #[test]
    fn only_transient_states_lead_on_by_themselves() {
        let reachable: Vec<_> = CloudInstanceState::ALL
            .into_iter()
            .flat_map(|from| CloudInstanceState::ALL.map(|to| (from, to)))
            .filter(|(from, to)| from != to && from.leads_to(*to))
            .collect();
        assert_eq!(
            reachable,
            [
                (Pending, Running),
                (Stopping, Stopped),
                (Terminating, Terminated)
            ]
        );
        assert!(
            CloudInstanceState::ALL
                .into_iter()
                .all(|state| state.leads_to(state))
        );
    }

    #[test]
    fn only_terminated_is_final_and_terminating_is_ending_too() {
        let last: Vec<_> = CloudInstanceState::ALL
            .into_iter()
            .filter(|s| s.is_final())
            .collect();
        assert_eq!(last, [Terminated]);
        let ending: Vec<_> = CloudInstanceState::ALL
            .into_iter()
            .filter(|s| s.is_ending())
            .collect();
        assert_eq!(ending, [Terminating, Terminated]);
    }
}
