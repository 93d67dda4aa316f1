//! The reference model: the possible states of a token, and what each call can do in each of them.
//!
//! Owns the table of results that a correct cloud returns. It never makes a call and knows no ids.
//!
//! The model is as coarse as the contract: pending and running are one phase, since the passing of
//! time alone leads from one to the other, and so are stopping and stopped, terminating and
//! terminated. What a cloud may forget about a terminated instance depends on its declaration and
//! on the time, so the caller passes that in.

use std::{collections::BTreeSet, fmt};

/// The state of a launch token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// Nothing was launched with it.
    Free,
    /// An instance.
    Is(Instance),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instance {
    pub(super) phase: Phase,
    pub(super) config: Shape,
    /// Whether the caller has heard of its id.
    pub(super) known: bool,
}

/// The phases of a lifecycle that calls distinguish; each ends by the passing of time alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Pending or running.
    Up,
    /// Stopping or stopped.
    Down,
    /// Terminating or terminated.
    Ending,
}

/// Which of a token's two configs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    Usual,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Launch(Shape),
    Stop,
    Start,
    Terminate,
}

/// What the caller receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallResult {
    /// An instance that was not known before.
    New,
    /// The instance that the token is known for.
    Known,
    Done,
    TokenConflict,
    TokenSpent,
    WrongState,
    NotFound,
    /// Something else is being done to it.
    Busy,
}

impl fmt::Display for CallResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "an instance that was not known",
            Self::Known => "the instance that was known",
            Self::Done => "success",
            Self::TokenConflict => "token conflict",
            Self::TokenSpent => "token spent",
            Self::WrongState => "wrong state",
            Self::NotFound => "not found",
            Self::Busy => "conflict",
        })
    }
}

/// What the cloud may have forgotten by now, according to its declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forgotten {
    pub(super) token: bool,
    pub(super) record: bool,
}

impl Forgotten {
    /// Everything, which allows the most.
    pub(super) const ALL: Self = Self {
        token: true,
        record: true,
    };
}

/// Returns every result that `verb` may have in `mode`, with the state after it.
pub(super) fn outcomes(mode: Mode, verb: Verb, gone: Forgotten) -> Vec<(CallResult, Mode)> {
    match (verb, mode) {
        (Verb::Launch(config), Mode::Free) => vec![(CallResult::New, launched(config))],
        (Verb::Launch(config), Mode::Is(it)) => relaunched(config, it, gone),
        (Verb::Stop | Verb::Start | Verb::Terminate, Mode::Free) => Vec::new(),
        (Verb::Stop, Mode::Is(it)) => powered(it, Phase::Down, gone),
        (Verb::Start, Mode::Is(it)) => powered(it, Phase::Up, gone),
        (Verb::Terminate, Mode::Is(it)) => terminated(it, gone),
    }
}

/// Returns the possible states after a call whose result was lost.
pub(super) fn unheard(mode: Mode, verb: Verb, gone: Forgotten) -> BTreeSet<Mode> {
    let done = outcomes(mode, verb, gone)
        .into_iter()
        .map(|next| match next {
            // The id of what was launched is not heard of either.
            (CallResult::New, Mode::Is(it)) => Mode::Is(Instance { known: false, ..it }),
            (_, mode) => mode,
        });
    done.chain([mode]).collect()
}

fn launched(config: Shape) -> Mode {
    Mode::Is(Instance {
        phase: Phase::Up,
        config,
        known: true,
    })
}

fn relaunched(config: Shape, it: Instance, gone: Forgotten) -> Vec<(CallResult, Mode)> {
    let mut may = Vec::new();
    if it.config != config {
        may.push((CallResult::TokenConflict, Mode::Is(it)));
    }
    match it.phase {
        Phase::Ending => {
            may.push((CallResult::TokenSpent, Mode::Is(it)));
            if gone.token {
                may.push((CallResult::New, launched(config)));
            }
        }
        Phase::Up | Phase::Down if it.config == config => {
            let heard = if it.known {
                CallResult::Known
            } else {
                CallResult::New
            };
            may.push((heard, Mode::Is(Instance { known: true, ..it })));
        }
        Phase::Up | Phase::Down => {}
    }
    may
}

/// Stop and start. They are only called with a known id; in other modes it belongs to an older instance that has ended.
fn powered(it: Instance, phase: Phase, gone: Forgotten) -> Vec<(CallResult, Mode)> {
    if !it.known || it.phase == Phase::Ending {
        let mut may = vec![(CallResult::WrongState, Mode::Is(it))];
        may.extend(gone.record.then_some((CallResult::NotFound, Mode::Is(it))));
        return may;
    }
    let done = (CallResult::Done, Mode::Is(Instance { phase, ..it }));
    vec![done, (CallResult::Busy, Mode::Is(it))]
}

fn terminated(it: Instance, gone: Forgotten) -> Vec<(CallResult, Mode)> {
    let over = !it.known || it.phase == Phase::Ending;
    let phase = if it.known { Phase::Ending } else { it.phase };
    let mut may = vec![(CallResult::Done, Mode::Is(Instance { phase, ..it }))];
    may.extend((over && gone.record).then_some((CallResult::NotFound, Mode::Is(it))));
    may
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Forgotten = Forgotten {
        token: false,
        record: false,
    };

    fn is(phase: Phase) -> Mode {
        Mode::Is(Instance {
            phase,
            config: Shape::Usual,
            known: true,
        })
    }

    fn results(mode: Mode, verb: Verb, gone: Forgotten) -> Vec<CallResult> {
        outcomes(mode, verb, gone)
            .into_iter()
            .map(|(result, _)| result)
            .collect()
    }

    #[test]
    fn a_token_is_bound_then_spent_then_forgotten() {
        let launch = Verb::Launch(Shape::Usual);
        assert_eq!(results(Mode::Free, launch, NOTHING), [CallResult::New]);
        assert_eq!(
            results(is(Phase::Down), launch, NOTHING),
            [CallResult::Known]
        );
        assert_eq!(
            results(is(Phase::Ending), launch, NOTHING),
            [CallResult::TokenSpent]
        );
        let forgotten = results(is(Phase::Ending), launch, Forgotten::ALL);
        assert_eq!(forgotten, [CallResult::TokenSpent, CallResult::New]);
        let other = results(is(Phase::Up), Verb::Launch(Shape::Other), NOTHING);
        assert_eq!(other, [CallResult::TokenConflict]);
    }

    #[test]
    fn nothing_is_done_to_what_has_ended() {
        for verb in [Verb::Stop, Verb::Start] {
            assert_eq!(
                results(is(Phase::Ending), verb, NOTHING),
                [CallResult::WrongState]
            );
        }
        assert_eq!(
            results(is(Phase::Ending), Verb::Terminate, NOTHING),
            [CallResult::Done]
        );
    }

    #[test]
    fn what_was_not_heard_may_have_happened_or_not() {
        let after = unheard(Mode::Free, Verb::Launch(Shape::Usual), NOTHING);
        let unknown = Mode::Is(Instance {
            phase: Phase::Up,
            config: Shape::Usual,
            known: false,
        });
        assert_eq!(after.into_iter().collect::<Vec<_>>(), [Mode::Free, unknown]);
        let stopped = unheard(is(Phase::Up), Verb::Stop, NOTHING);
        assert!(stopped.contains(&is(Phase::Up)) && stopped.contains(&is(Phase::Down)));
    }
}
