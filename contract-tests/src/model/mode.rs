//! The reference model: what may be the case, as a set, and what each call does to it.
//!
//! Owns the table of answers that a legal cloud gives. It never calls anything and knows no ids.

use std::{collections::BTreeSet, fmt};

/// What a launch token stands for.
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

/// The parts of a life that calls tell apart; time alone leads to the end of each.
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

/// What the caller hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// An instance that nobody has heard of before.
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

impl fmt::Display for Answer {
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

/// What the cloud may have forgotten by now, as it declares.
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

/// Every answer that `verb` may have in `mode`, with what is the case then.
pub(super) fn outcomes(mode: Mode, verb: Verb, gone: Forgotten) -> Vec<(Answer, Mode)> {
    match (verb, mode) {
        (Verb::Launch(config), Mode::Free) => vec![(Answer::New, launched(config))],
        (Verb::Launch(config), Mode::Is(it)) => relaunched(config, it, gone),
        (Verb::Stop | Verb::Start | Verb::Terminate, Mode::Free) => Vec::new(),
        (Verb::Stop, Mode::Is(it)) => powered(it, Phase::Down, gone),
        (Verb::Start, Mode::Is(it)) => powered(it, Phase::Up, gone),
        (Verb::Terminate, Mode::Is(it)) => terminated(it, gone),
    }
}

/// What may be the case after a call whose answer was not heard.
pub(super) fn unheard(mode: Mode, verb: Verb, gone: Forgotten) -> BTreeSet<Mode> {
    let done = outcomes(mode, verb, gone)
        .into_iter()
        .map(|next| match next {
            // The id of what was launched is not heard of either.
            (Answer::New, Mode::Is(it)) => Mode::Is(Instance { known: false, ..it }),
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

fn relaunched(config: Shape, it: Instance, gone: Forgotten) -> Vec<(Answer, Mode)> {
    let mut may = Vec::new();
    if it.config != config {
        may.push((Answer::TokenConflict, Mode::Is(it)));
    }
    match it.phase {
        Phase::Ending => {
            may.push((Answer::TokenSpent, Mode::Is(it)));
            if gone.token {
                may.push((Answer::New, launched(config)));
            }
        }
        Phase::Up | Phase::Down if it.config == config => {
            let heard = if it.known { Answer::Known } else { Answer::New };
            may.push((heard, Mode::Is(Instance { known: true, ..it })));
        }
        Phase::Up | Phase::Down => {}
    }
    may
}

/// Stop and start. What is not known is not called; then the id is of an older one that has ended.
fn powered(it: Instance, phase: Phase, gone: Forgotten) -> Vec<(Answer, Mode)> {
    if !it.known || it.phase == Phase::Ending {
        let mut may = vec![(Answer::WrongState, Mode::Is(it))];
        may.extend(gone.record.then_some((Answer::NotFound, Mode::Is(it))));
        return may;
    }
    let done = (Answer::Done, Mode::Is(Instance { phase, ..it }));
    vec![done, (Answer::Busy, Mode::Is(it))]
}

fn terminated(it: Instance, gone: Forgotten) -> Vec<(Answer, Mode)> {
    let over = !it.known || it.phase == Phase::Ending;
    let phase = if it.known { Phase::Ending } else { it.phase };
    let mut may = vec![(Answer::Done, Mode::Is(Instance { phase, ..it }))];
    may.extend((over && gone.record).then_some((Answer::NotFound, Mode::Is(it))));
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

    fn answers(mode: Mode, verb: Verb, gone: Forgotten) -> Vec<Answer> {
        outcomes(mode, verb, gone)
            .into_iter()
            .map(|(answer, _)| answer)
            .collect()
    }

    #[test]
    fn a_token_is_bound_then_spent_then_forgotten() {
        let launch = Verb::Launch(Shape::Usual);
        assert_eq!(answers(Mode::Free, launch, NOTHING), [Answer::New]);
        assert_eq!(answers(is(Phase::Down), launch, NOTHING), [Answer::Known]);
        assert_eq!(
            answers(is(Phase::Ending), launch, NOTHING),
            [Answer::TokenSpent]
        );
        let forgotten = answers(is(Phase::Ending), launch, Forgotten::ALL);
        assert_eq!(forgotten, [Answer::TokenSpent, Answer::New]);
        let other = answers(is(Phase::Up), Verb::Launch(Shape::Other), NOTHING);
        assert_eq!(other, [Answer::TokenConflict]);
    }

    #[test]
    fn nothing_is_done_to_what_has_ended() {
        for verb in [Verb::Stop, Verb::Start] {
            assert_eq!(
                answers(is(Phase::Ending), verb, NOTHING),
                [Answer::WrongState]
            );
        }
        assert_eq!(
            answers(is(Phase::Ending), Verb::Terminate, NOTHING),
            [Answer::Done]
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
