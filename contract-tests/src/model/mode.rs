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
    /// Nothing was launched with the token, or nothing that the cloud remembers.
    Free,
    /// The token belongs to an instance.
    Bound(Instance),
}

/// An instance, as far as the results of calls depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instance {
    pub(super) phase: Phase,
    pub(super) config: Shape,
    /// Whether the caller knows its id. It does not if the response of the launch was lost.
    pub(super) known: bool,
}

/// The phases of a lifecycle that calls distinguish. Within a phase, an instance changes its state by the
/// passing of time alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Pending or running.
    Up,
    /// Stopping or stopped.
    Down,
    /// Terminating or terminated.
    Ending,
}

/// Which of a token's two configs a launch uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    Usual,
    Other,
}

/// A call about a token. All but a launch use the id that the token was last known for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Launch(Shape),
    Stop,
    Start,
    Terminate,
}

/// The result of a call, as far as the model distinguishes results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallResult {
    /// An instance whose id was not known before.
    New,
    /// The instance that the token is known for.
    Known,
    Done,
    TokenConflict,
    TokenSpent,
    WrongState,
    NotFound,
    /// A conflict: another call on the instance is in progress.
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
    /// Everything may be forgotten. This allows the most results.
    pub(super) const ALL: Self = Self {
        token: true,
        record: true,
    };
}

/// Returns every result that `verb` may have in `mode`, with the state after it.
pub(super) fn outcomes(mode: Mode, verb: Verb, forgotten: Forgotten) -> Vec<(CallResult, Mode)> {
    match (verb, mode) {
        (Verb::Launch(config), Mode::Free) => vec![(CallResult::New, after_launch(config))],
        (Verb::Launch(config), Mode::Bound(instance)) => {
            relaunch_outcomes(config, instance, forgotten)
        }
        (Verb::Stop | Verb::Start | Verb::Terminate, Mode::Free) => Vec::new(),
        (Verb::Stop, Mode::Bound(instance)) => power_outcomes(instance, Phase::Down, forgotten),
        (Verb::Start, Mode::Bound(instance)) => power_outcomes(instance, Phase::Up, forgotten),
        (Verb::Terminate, Mode::Bound(instance)) => terminate_outcomes(instance, forgotten),
    }
}

/// Returns the possible states after a call whose result was lost.
pub(super) fn after_lost_result(mode: Mode, verb: Verb, forgotten: Forgotten) -> BTreeSet<Mode> {
    let done = outcomes(mode, verb, forgotten)
        .into_iter()
        .map(|next| match next {
            // The caller does not know the id of the launched instance either.
            (CallResult::New, Mode::Bound(instance)) => Mode::Bound(Instance {
                known: false,
                ..instance
            }),
            (_, mode) => mode,
        });
    done.chain([mode]).collect()
}

/// Returns the state after a launch that created an instance.
fn after_launch(config: Shape) -> Mode {
    Mode::Bound(Instance {
        phase: Phase::Up,
        config,
        known: true,
    })
}

/// A launch with a token that has an instance: a replay, a conflict, or spent. If the token may be
/// forgotten, it can also create another instance.
fn relaunch_outcomes(
    config: Shape,
    instance: Instance,
    forgotten: Forgotten,
) -> Vec<(CallResult, Mode)> {
    let mut possible = Vec::new();
    if instance.config != config {
        possible.push((CallResult::TokenConflict, Mode::Bound(instance)));
    }
    match instance.phase {
        Phase::Ending => {
            possible.push((CallResult::TokenSpent, Mode::Bound(instance)));
            if forgotten.token {
                possible.push((CallResult::New, after_launch(config)));
            }
        }
        Phase::Up | Phase::Down if instance.config == config => {
            let result = if instance.known {
                CallResult::Known
            } else {
                CallResult::New
            };
            possible.push((
                result,
                Mode::Bound(Instance {
                    known: true,
                    ..instance
                }),
            ));
        }
        Phase::Up | Phase::Down => {}
    }
    possible
}

/// Stop and start, which lead to `phase`. They are only called with a known id; if the instance of the
/// mode is not known, the id belongs to an older instance, which is terminated.
fn power_outcomes(
    instance: Instance,
    phase: Phase,
    forgotten: Forgotten,
) -> Vec<(CallResult, Mode)> {
    if !instance.known || instance.phase == Phase::Ending {
        let mut possible = vec![(CallResult::WrongState, Mode::Bound(instance))];
        possible.extend(
            forgotten
                .record
                .then_some((CallResult::NotFound, Mode::Bound(instance))),
        );
        return possible;
    }
    let done = (
        CallResult::Done,
        Mode::Bound(Instance { phase, ..instance }),
    );
    vec![done, (CallResult::Busy, Mode::Bound(instance))]
}

/// A terminate. It succeeds for a terminated instance, too, unless the record may be forgotten.
fn terminate_outcomes(instance: Instance, forgotten: Forgotten) -> Vec<(CallResult, Mode)> {
    let ended = !instance.known || instance.phase == Phase::Ending;
    let phase = if instance.known {
        Phase::Ending
    } else {
        instance.phase
    };
    let mut possible = vec![(
        CallResult::Done,
        Mode::Bound(Instance { phase, ..instance }),
    )];
    possible.extend(
        (ended && forgotten.record).then_some((CallResult::NotFound, Mode::Bound(instance))),
    );
    possible
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Forgotten = Forgotten {
        token: false,
        record: false,
    };

    fn is(phase: Phase) -> Mode {
        Mode::Bound(Instance {
            phase,
            config: Shape::Usual,
            known: true,
        })
    }

    fn results(mode: Mode, verb: Verb, forgotten: Forgotten) -> Vec<CallResult> {
        outcomes(mode, verb, forgotten)
            .into_iter()
            .map(|(result, _)| result)
            .collect()
    }

    #[test]
    fn token_is_bound_then_spent_then_forgotten() {
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
    fn ending_instance_is_never_changed() {
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
    fn lost_result_leaves_both_states_possible() {
        let after = after_lost_result(Mode::Free, Verb::Launch(Shape::Usual), NOTHING);
        let unknown = Mode::Bound(Instance {
            phase: Phase::Up,
            config: Shape::Usual,
            known: false,
        });
        assert_eq!(after.into_iter().collect::<Vec<_>>(), [Mode::Free, unknown]);
        let stopped = after_lost_result(is(Phase::Up), Verb::Stop, NOTHING);
        assert!(stopped.contains(&is(Phase::Up)) && stopped.contains(&is(Phase::Down)));
    }
}
