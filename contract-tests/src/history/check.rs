//! The check of a history: a search for an order of the calls that explains their results.
//!
//! The search tries every call that can be next: each one that was made before the first of the
//! remaining calls returned. It keeps the state of the token after the calls so far, and remembers
//! which combinations of remaining calls and state lead nowhere, so that none is searched twice. A
//! history of a case has at most 21 calls.
//!
//! Owns the rules of a sequential cloud. It never makes a call and knows nothing about time beyond
//! the ticks of the events.

use std::{collections::HashSet, fmt};

use fleetwright::InstanceId;

/// A call with its result. `start` and `end` are the times on the logical clock of the history at which
/// the call was made and at which it returned.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) requested: Request,
    pub(super) result: CallResult,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// What a call requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// With config 0 or 1 of the token.
    Launch(u8),
    Stop(InstanceId),
    Start(InstanceId),
    Terminate(InstanceId),
    /// The list of the token after all calls.
    List,
}

/// What a call returned, as far as it says something about the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallResult {
    Instance(InstanceId),
    Done,
    TokenConflict,
    TokenSpent,
    WrongState,
    NotFound,
    /// It failed without effect, for a reason that has nothing to do with the token.
    Refused,
    /// It failed, and its effect is unknown.
    Unknown,
    /// The listed instance that is neither terminating nor terminated, if there is one.
    Live(Option<InstanceId>),
}

/// What the backend may have forgotten during the case, according to its declaration and the time that
/// has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) tokens_may_be_forgotten: bool,
    pub(super) records_may_be_forgotten: bool,
}

/// The state of a token in a cloud that carries out one call at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Token {
    bound: Option<Bound>,
    /// The instances of earlier launches with the token. All of them are terminated.
    former: Vec<InstanceId>,
}

/// The instance that a token belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Bound {
    config: u8,
    id: InstanceId,
    ending: bool,
}

/// Returns whether some order of `events` that respects time explains every result.
pub(super) fn is_linearizable(events: &[Event], rules: Rules) -> bool {
    let mut dead_ends = HashSet::new();
    let all: Vec<usize> = (0..events.len()).collect();
    search(events, rules, &all, &Token::default(), &mut dead_ends)
}

/// Searches an order of the events whose indices are `left`, from the state `token`. `dead_ends` has the
/// pairs that were searched without success.
fn search(
    events: &[Event],
    rules: Rules,
    left: &[usize],
    token: &Token,
    dead_ends: &mut HashSet<(Vec<usize>, Token)>,
) -> bool {
    // A call that was made after another one had returned cannot come before it.
    let Some(first_end) = left.iter().map(|at| events[*at].end).min() else {
        return true;
    };
    if dead_ends.contains(&(left.to_vec(), token.clone())) {
        return false;
    }
    for at in left.iter().filter(|at| events[**at].start < first_end) {
        let rest: Vec<usize> = left.iter().copied().filter(|one| one != at).collect();
        if let Some(next) = token.after(&events[*at], rules) {
            if search(events, rules, &rest, &next, dead_ends) {
                return true;
            }
        }
    }
    dead_ends.insert((left.to_vec(), token.clone()));
    false
}

impl Token {
    /// Returns the state of the token after a call, if the call can have had this result.
    fn after(&self, event: &Event, rules: Rules) -> Option<Self> {
        match &event.requested {
            Request::Launch(config) => self.after_launch(*config, &event.result, rules),
            Request::List => {
                let live = self.bound.as_ref().filter(|bound| !bound.ending);
                let live = live.map(|bound| bound.id.clone());
                (event.result == CallResult::Live(live)).then(|| self.clone())
            }
            Request::Stop(id) | Request::Start(id) => {
                let expected = match self.is_ending(id)? {
                    false => event.result == CallResult::Done,
                    true => {
                        event.result == CallResult::WrongState
                            || (event.result == CallResult::NotFound
                                && rules.records_may_be_forgotten)
                    }
                };
                expected.then(|| self.clone())
            }
            Request::Terminate(id) => {
                let ending = self.is_ending(id)?;
                let forgotten = ending && rules.records_may_be_forgotten;
                let expected = event.result == CallResult::Done
                    || (event.result == CallResult::NotFound && forgotten);
                expected.then(|| self.with_terminated(id))
            }
        }
    }

    /// Returns the state after a launch, if a launch with `config` can have had this result: the bound
    /// instance for the same config, a conflict for another one, spent if the instance is ending, and
    /// a new instance if nothing is bound or the token may be forgotten.
    fn after_launch(&self, config: u8, result: &CallResult, rules: Rules) -> Option<Self> {
        let may_launch = match &self.bound {
            None => true,
            Some(bound) => bound.ending && rules.tokens_may_be_forgotten,
        };
        match (result, &self.bound) {
            (CallResult::Instance(id), Some(bound)) if !bound.ending => {
                (bound.id == *id && bound.config == config).then(|| self.clone())
            }
            (CallResult::Instance(id), bound) => {
                let mut former = self.former.clone();
                former.extend(bound.iter().map(|bound| bound.id.clone()));
                let fresh = may_launch && !former.contains(id);
                let bound = Bound {
                    config,
                    id: id.clone(),
                    ending: false,
                };
                fresh.then_some(Self {
                    bound: Some(bound),
                    former,
                })
            }
            (CallResult::TokenConflict, Some(bound)) => {
                (bound.config != config).then(|| self.clone())
            }
            (CallResult::TokenSpent, Some(bound)) => bound.ending.then(|| self.clone()),
            _ => None,
        }
    }

    /// Returns whether an instance of this token is terminating or terminated, or `None` if the token
    /// never had this instance.
    fn is_ending(&self, id: &InstanceId) -> Option<bool> {
        match &self.bound {
            Some(bound) if bound.id == *id => Some(bound.ending),
            _ => self.former.contains(id).then_some(true),
        }
    }

    /// Returns the state after the instance was terminated. A former instance changes nothing.
    fn with_terminated(&self, id: &InstanceId) -> Self {
        let mut next = self.clone();
        if let Some(bound) = next.bound.as_mut().filter(|bound| bound.id == *id) {
            bound.ending = true;
        }
        next
    }
}

/// The call and its result, for a message.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.requested {
            Request::Launch(config) => write!(f, "launch with config {config}"),
            Request::Stop(id) => write!(f, "stop {id}"),
            Request::Start(id) => write!(f, "start {id}"),
            Request::Terminate(id) => write!(f, "terminate {id}"),
            Request::List => f.write_str("list"),
        }?;
        match &self.result {
            CallResult::Instance(id) => write!(f, " -> {id}"),
            CallResult::Live(id) => write!(
                f,
                " -> {}",
                id.as_ref().map_or("nothing", InstanceId::as_str)
            ),
            CallResult::Done => f.write_str(" -> ok"),
            CallResult::TokenConflict => f.write_str(" -> token conflict"),
            CallResult::TokenSpent => f.write_str(" -> token spent"),
            CallResult::WrongState => f.write_str(" -> wrong state"),
            CallResult::NotFound => f.write_str(" -> not found"),
            CallResult::Refused => f.write_str(" -> failed without effect"),
            CallResult::Unknown => f.write_str(" -> failed with unknown effect"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Rules = Rules {
        tokens_may_be_forgotten: false,
        records_may_be_forgotten: false,
    };

    fn id(name: &str) -> InstanceId {
        InstanceId::new(name).unwrap()
    }

    fn event(start: u64, end: u64, requested: Request, result: CallResult) -> Event {
        Event {
            requested,
            result,
            start,
            end,
        }
    }

    fn launch(start: u64, end: u64, config: u8, name: &str) -> Event {
        let result = CallResult::Instance(id(name));
        event(start, end, Request::Launch(config), result)
    }

    #[test]
    fn replay_returns_the_same_instance() {
        let once = [launch(1, 4, 0, "a"), launch(2, 3, 0, "a")];
        assert!(is_linearizable(&once, STRICT));
        let twice = [launch(1, 4, 0, "a"), launch(2, 3, 0, "b")];
        assert!(!is_linearizable(&twice, STRICT));
        let other_config = [launch(1, 4, 0, "a"), launch(2, 3, 1, "a")];
        assert!(!is_linearizable(&other_config, STRICT));
    }

    #[test]
    fn order_respects_time() {
        let spent = event(5, 6, Request::Launch(0), CallResult::TokenSpent);
        let end = |start, end| event(start, end, Request::Terminate(id("a")), CallResult::Done);
        let launched = launch(1, 2, 0, "a");
        assert!(is_linearizable(
            &[launched.clone(), end(3, 4), spent.clone()],
            STRICT
        ));
        assert!(is_linearizable(
            &[launched.clone(), end(3, 9), spent.clone()],
            STRICT
        ));
        assert!(!is_linearizable(
            &[launched.clone(), spent, end(7, 8)],
            STRICT
        ));
        let late_stop = event(5, 6, Request::Stop(id("a")), CallResult::Done);
        assert!(!is_linearizable(
            &[launched.clone(), end(3, 4), late_stop],
            STRICT
        ));
        let racing_stop = event(3, 6, Request::Stop(id("a")), CallResult::Done);
        assert!(is_linearizable(&[launched, end(4, 5), racing_stop], STRICT));
    }

    #[test]
    fn forgotten_token_launches_a_new_instance() {
        let forgetful = Rules {
            tokens_may_be_forgotten: true,
            records_may_be_forgotten: true,
        };
        let end = event(3, 4, Request::Terminate(id("a")), CallResult::Done);
        let new = [launch(1, 2, 0, "a"), end.clone(), launch(5, 6, 1, "b")];
        assert!(is_linearizable(&new, forgetful) && !is_linearizable(&new, STRICT));
        let back = [launch(1, 2, 0, "a"), end, launch(5, 6, 0, "a")];
        assert!(!is_linearizable(&back, forgetful));
    }

    #[test]
    fn final_list_must_match_the_calls() {
        let list = |live: Option<&str>| event(7, 8, Request::List, CallResult::Live(live.map(id)));
        let launched = launch(1, 2, 0, "a");
        assert!(is_linearizable(
            &[launched.clone(), list(Some("a"))],
            STRICT
        ));
        assert!(!is_linearizable(&[launched.clone(), list(None)], STRICT));
        let end = event(3, 4, Request::Terminate(id("a")), CallResult::Done);
        assert!(!is_linearizable(&[launched, end, list(Some("a"))], STRICT));
    }
}
