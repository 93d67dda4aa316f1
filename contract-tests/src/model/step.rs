//! The steps that can be generated, and which sequences are useful.
//!
//! Owns the generator: the weights of the steps, and the preconditions that keep a sequence useful
//! when it is generated and when it is shrunk. The generator has no account. It assumes the most
//! permissive cloud, so it never rules a sequence out that could happen.

use std::{collections::BTreeSet, fmt};

use proptest::{prelude::*, strategy::BoxedStrategy};
use proptest_state_machine::ReferenceStateMachine;

use super::mode::{Forgotten, Mode, Shape, Verb, after_lost_result, outcomes};
use crate::{WireFault, shown::in_words};

/// How many tokens a sequence uses.
pub(super) const SLOTS: usize = 2;

/// One step of a sequence.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A call about a token, with its disruption.
    Call(usize, Verb, Disruption),
    /// A list, and a description and a lookup of each token, which must all be possible in the model.
    Read,
    /// Waits until no instance is in a transition.
    FinishTransitions,
    /// The process ends and another one starts, with a new handle.
    Restart,
    /// The external actor stops or terminates an instance.
    External(usize, Verb),
}

/// What disturbs a call.
#[derive(Clone, Debug)]
pub(super) enum Disruption {
    None,
    /// The caller drops the call after this number of polls.
    Dropped(usize),
    /// A fault is injected into the call.
    Fault(WireFault),
    /// The process dies during the call, and another one continues.
    Crash(WireFault),
}

/// The model as the generator uses it: the possible states of each token.
#[derive(Debug)]
pub(super) struct Machine;

impl ReferenceStateMachine for Machine {
    type State = [BTreeSet<Mode>; SLOTS];
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self::State> {
        Just(std::array::from_fn(|_| BTreeSet::from([Mode::Free]))).boxed()
    }

    fn transitions(_: &Self::State) -> BoxedStrategy<Step> {
        let verb = prop_oneof![
            4 => Just(Verb::Launch(Shape::Usual)),
            2 => Just(Verb::Launch(Shape::Other)),
            2 => Just(Verb::Stop),
            2 => Just(Verb::Start),
            2 => Just(Verb::Terminate),
        ];
        let fault = proptest::sample::select(WireFault::AMBIGUOUS.to_vec());
        let crash = proptest::sample::select(vec![WireFault::CrashBefore, WireFault::CrashAfter]);
        let disruption = prop_oneof![
            6 => Just(Disruption::None),
            1 => (1_usize..4).prop_map(Disruption::Dropped),
            2 => fault.prop_map(Disruption::Fault),
            1 => crash.prop_map(Disruption::Crash),
        ];
        let outside = prop_oneof![Just(Verb::Stop), Just(Verb::Terminate)];
        prop_oneof![
            10 => (0..SLOTS, verb, disruption).prop_map(|(slot, verb, disruption)| Step::Call(slot, verb, disruption)),
            3 => Just(Step::Read),
            2 => Just(Step::FinishTransitions),
            1 => Just(Step::Restart),
            3 => (0..SLOTS, outside).prop_map(|(slot, verb)| Step::External(slot, verb)),
        ]
        .boxed()
    }

    fn apply(mut state: Self::State, step: &Step) -> Self::State {
        match step {
            Step::Call(slot, verb, disruption) => {
                let before = std::mem::take(&mut state[*slot]);
                state[*slot] = before
                    .into_iter()
                    .flat_map(|mode| after(mode, *verb, disruption))
                    .collect();
            }
            Step::External(slot, verb) => {
                let before = std::mem::take(&mut state[*slot]);
                let after = before
                    .into_iter()
                    .flat_map(|mode| after_lost_result(mode, *verb, Forgotten::ALL));
                state[*slot] = after.collect();
            }
            Step::Read | Step::FinishTransitions | Step::Restart => {}
        }
        state
    }

    /// Requires that a call on an instance comes after a launch that may have created one.
    fn preconditions(state: &Self::State, step: &Step) -> bool {
        match step {
            Step::Call(_, Verb::Launch(_), _)
            | Step::Read
            | Step::FinishTransitions
            | Step::Restart => true,
            Step::Call(slot, _, _) | Step::External(slot, _) => {
                state[*slot].iter().any(|mode| *mode != Mode::Free)
            }
        }
    }
}

/// Returns the possible states after a call.
fn after(mode: Mode, verb: Verb, disruption: &Disruption) -> BTreeSet<Mode> {
    match disruption {
        Disruption::None => {
            let after = outcomes(mode, verb, Forgotten::ALL).into_iter();
            let after: BTreeSet<_> = after.map(|(_, next)| next).collect();
            // A call with an unknown id is not made.
            if after.is_empty() {
                BTreeSet::from([mode])
            } else {
                after
            }
        }
        Disruption::Dropped(_) | Disruption::Fault(_) | Disruption::Crash(_) => {
            after_lost_result(mode, verb, Forgotten::ALL)
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(slot, verb, disruption) => write!(f, "{verb} #{slot}{disruption}"),
            Self::Read => f.write_str("read everything"),
            Self::FinishTransitions => f.write_str("wait until no instance is in a transition"),
            Self::Restart => f.write_str("restart the process"),
            Self::External(slot, verb) => write!(f, "external actor: {verb} #{slot}"),
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Launch(Shape::Usual) => "launch",
            Self::Launch(Shape::Other) => "launch with the other config",
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Terminate => "terminate",
        })
    }
}

impl fmt::Display for Disruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Dropped(polls) => write!(f, ", dropped after {polls} polls"),
            Self::Fault(fault) => write!(f, ", with {}", in_words(fault)),
            Self::Crash(fault) => write!(f, ", and the process dies: {}", in_words(fault)),
        }
    }
}
