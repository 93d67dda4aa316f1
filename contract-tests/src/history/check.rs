//! The judge of a history: a search for an order that explains it.

use std::{collections::HashSet, fmt};

use fleetwright::InstanceId;

/// A call with its answer, and when it began and ended among all others.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) asked: Asked,
    pub(super) answer: Answer,
    pub(super) began: u64,
    pub(super) ended: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// With this one of the token's configs.
    Launch(u8),
    Stop(InstanceId),
    Start(InstanceId),
    Terminate(InstanceId),
    /// What there is, when everything is over.
    Look,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Instance(InstanceId),
    Done,
    TokenConflict,
    TokenSpent,
    WrongState,
    NotFound,
    /// Failed without effect, for a reason that has nothing to do with the others.
    Refused,
    /// Nobody knows what became of it.
    Unheard,
    /// What is neither terminated nor going.
    Live(Option<InstanceId>),
}

/// What the backend declares to forget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) tokens_may_be_forgotten: bool,
    pub(super) records_may_be_forgotten: bool,
}

/// What a token stands for, in a cloud that does one thing at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Token {
    bound: Option<Bound>,
    /// Instances that it stood for earlier, all terminated.
    former: Vec<InstanceId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Bound {
    config: u8,
    id: InstanceId,
    ending: bool,
}

/// Whether some order of `events` that respects time explains every answer.
pub(super) fn is_linearizable(events: &[Event], rules: Rules) -> bool {
    let mut dead_ends = HashSet::new();
    let all: Vec<usize> = (0..events.len()).collect();
    search(events, rules, &all, &Token::default(), &mut dead_ends)
}

fn search(
    events: &[Event],
    rules: Rules,
    left: &[usize],
    token: &Token,
    dead_ends: &mut HashSet<(Vec<usize>, Token)>,
) -> bool {
    // Whatever ended first bounds what may come next.
    let Some(first_end) = left.iter().map(|at| events[*at].ended).min() else {
        return true;
    };
    if dead_ends.contains(&(left.to_vec(), token.clone())) {
        return false;
    }
    for at in left.iter().filter(|at| events[**at].began < first_end) {
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
    /// What the token stands for after a call, if the call can have been answered so.
    fn after(&self, event: &Event, rules: Rules) -> Option<Self> {
        match &event.asked {
            Asked::Launch(config) => self.launched(*config, &event.answer, rules),
            Asked::Look => {
                let live = self.bound.as_ref().filter(|bound| !bound.ending);
                let live = live.map(|bound| bound.id.clone());
                (event.answer == Answer::Live(live)).then(|| self.clone())
            }
            Asked::Stop(id) | Asked::Start(id) => {
                let expected = match self.is_ending(id)? {
                    false => event.answer == Answer::Done,
                    true => {
                        event.answer == Answer::WrongState
                            || (event.answer == Answer::NotFound && rules.records_may_be_forgotten)
                    }
                };
                expected.then(|| self.clone())
            }
            Asked::Terminate(id) => {
                let ending = self.is_ending(id)?;
                let forgotten = ending && rules.records_may_be_forgotten;
                let expected =
                    event.answer == Answer::Done || (event.answer == Answer::NotFound && forgotten);
                expected.then(|| self.with_ended(id))
            }
        }
    }

    fn launched(&self, config: u8, answer: &Answer, rules: Rules) -> Option<Self> {
        let may_launch = match &self.bound {
            None => true,
            Some(bound) => bound.ending && rules.tokens_may_be_forgotten,
        };
        match (answer, &self.bound) {
            (Answer::Instance(id), Some(bound)) if !bound.ending => {
                (bound.id == *id && bound.config == config).then(|| self.clone())
            }
            (Answer::Instance(id), bound) => {
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
            (Answer::TokenConflict, Some(bound)) => (bound.config != config).then(|| self.clone()),
            (Answer::TokenSpent, Some(bound)) => bound.ending.then(|| self.clone()),
            _ => None,
        }
    }

    /// Whether an instance of this token is terminated or going; nothing if it never was one.
    fn is_ending(&self, id: &InstanceId) -> Option<bool> {
        match &self.bound {
            Some(bound) if bound.id == *id => Some(bound.ending),
            _ => self.former.contains(id).then_some(true),
        }
    }

    fn with_ended(&self, id: &InstanceId) -> Self {
        let mut next = self.clone();
        if let Some(bound) = next.bound.as_mut().filter(|bound| bound.id == *id) {
            bound.ending = true;
        }
        next
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{} ", self.began, self.ended)?;
        match &self.asked {
            Asked::Launch(config) => write!(f, "launch with config {config}"),
            Asked::Stop(id) => write!(f, "stop {id}"),
            Asked::Start(id) => write!(f, "start {id}"),
            Asked::Terminate(id) => write!(f, "terminate {id}"),
            Asked::Look => f.write_str("list"),
        }?;
        match &self.answer {
            Answer::Instance(id) => write!(f, " -> {id}"),
            Answer::Live(id) => write!(
                f,
                " -> {}",
                id.as_ref().map_or("nothing", InstanceId::as_str)
            ),
            other @ (Answer::Done
            | Answer::TokenConflict
            | Answer::TokenSpent
            | Answer::WrongState
            | Answer::NotFound
            | Answer::Refused
            | Answer::Unheard) => write!(f, " -> {other:?}"),
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

    fn event(began: u64, ended: u64, asked: Asked, answer: Answer) -> Event {
        Event {
            asked,
            answer,
            began,
            ended,
        }
    }

    fn launch(began: u64, ended: u64, config: u8, name: &str) -> Event {
        let answer = Answer::Instance(id(name));
        event(began, ended, Asked::Launch(config), answer)
    }

    #[test]
    fn a_replay_is_the_same_instance() {
        let once = [launch(1, 4, 0, "a"), launch(2, 3, 0, "a")];
        assert!(is_linearizable(&once, STRICT));
        let twice = [launch(1, 4, 0, "a"), launch(2, 3, 0, "b")];
        assert!(!is_linearizable(&twice, STRICT));
        let other_config = [launch(1, 4, 0, "a"), launch(2, 3, 1, "a")];
        assert!(!is_linearizable(&other_config, STRICT));
    }

    #[test]
    fn time_is_respected() {
        let spent = event(5, 6, Asked::Launch(0), Answer::TokenSpent);
        let end = |began, ended| event(began, ended, Asked::Terminate(id("a")), Answer::Done);
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
        let late_stop = event(5, 6, Asked::Stop(id("a")), Answer::Done);
        assert!(!is_linearizable(
            &[launched.clone(), end(3, 4), late_stop],
            STRICT
        ));
        let racing_stop = event(3, 6, Asked::Stop(id("a")), Answer::Done);
        assert!(is_linearizable(&[launched, end(4, 5), racing_stop], STRICT));
    }

    #[test]
    fn a_forgotten_token_launches_anew_and_never_the_old_one() {
        let forgetful = Rules {
            tokens_may_be_forgotten: true,
            records_may_be_forgotten: true,
        };
        let end = event(3, 4, Asked::Terminate(id("a")), Answer::Done);
        let anew = [launch(1, 2, 0, "a"), end.clone(), launch(5, 6, 1, "b")];
        assert!(is_linearizable(&anew, forgetful) && !is_linearizable(&anew, STRICT));
        let back = [launch(1, 2, 0, "a"), end, launch(5, 6, 0, "a")];
        assert!(!is_linearizable(&back, forgetful));
    }

    #[test]
    fn what_is_left_is_what_the_calls_left() {
        let look = |live: Option<&str>| event(7, 8, Asked::Look, Answer::Live(live.map(id)));
        let launched = launch(1, 2, 0, "a");
        assert!(is_linearizable(
            &[launched.clone(), look(Some("a"))],
            STRICT
        ));
        assert!(!is_linearizable(&[launched.clone(), look(None)], STRICT));
        let end = event(3, 4, Asked::Terminate(id("a")), Answer::Done);
        assert!(!is_linearizable(&[launched, end, look(Some("a"))], STRICT));
    }
}
