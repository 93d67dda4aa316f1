//! The steps that can be generated, and which sequences are useful.
//!
//! Owns the generator: the weights of the steps, and the preconditions that keep a sequence useful
//! when it is generated and when it is shrunk. The generator has no account. It assumes the most
//! permissive cloud, so it never rules a sequence out that could happen.

use std::{collections::BTreeSet, fmt};

use proptest::{prelude::*, strategy::BoxedStrategy};
use proptest_state_machine::ReferenceStateMachine;

use super::mode::{Forgotten, Mode, Shape, Verb, outcomes, unheard};
use crate::WireFault;

/// How many tokens a sequence uses.
pub(super) const SLOTS: usize = 2;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A call about a token, and what goes wrong with it.
    Call(usize, Verb, Mishap),
    /// A list, a description and a look-up of everything, all of which must agree with the model.
    Look,
    /// Time passes until everything is at rest.
    Rest,
    /// The process ends, and another one begins.
    Restart,
    /// Somebody else stops or terminates an instance.
    Outside(usize, Verb),
}

#[derive(Clone, Debug)]
pub(super) enum Mishap {
    None,
    /// The caller drops the call after so many polls.
    Dropped(usize),
    /// Something goes wrong on the wire.
    Fault(WireFault),
    /// The process dies in the middle of the call.
    Crash(WireFault),
}

/// The model as it drives the generation: for each token, everything that may be the case.
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
        let mishap = prop_oneof![
            6 => Just(Mishap::None),
            1 => (1_usize..4).prop_map(Mishap::Dropped),
            2 => fault.prop_map(Mishap::Fault),
            1 => crash.prop_map(Mishap::Crash),
        ];
        let outside = prop_oneof![Just(Verb::Stop), Just(Verb::Terminate)];
        prop_oneof![
            10 => (0..SLOTS, verb, mishap).prop_map(|(slot, verb, mishap)| Step::Call(slot, verb, mishap)),
            3 => Just(Step::Look),
            2 => Just(Step::Rest),
            1 => Just(Step::Restart),
            3 => (0..SLOTS, outside).prop_map(|(slot, verb)| Step::Outside(slot, verb)),
        ]
        .boxed()
    }

    fn apply(mut state: Self::State, step: &Step) -> Self::State {
        match step {
            Step::Call(slot, verb, mishap) => {
                let before = std::mem::take(&mut state[*slot]);
                state[*slot] = before
                    .into_iter()
                    .flat_map(|mode| after(mode, *verb, mishap))
                    .collect();
            }
            Step::Outside(slot, verb) => {
                let before = std::mem::take(&mut state[*slot]);
                let after = before
                    .into_iter()
                    .flat_map(|mode| unheard(mode, *verb, Forgotten::ALL));
                state[*slot] = after.collect();
            }
            Step::Look | Step::Rest | Step::Restart => {}
        }
        state
    }

    /// Requires that a call on an instance comes after a launch that may have created one.
    fn preconditions(state: &Self::State, step: &Step) -> bool {
        match step {
            Step::Call(_, Verb::Launch(_), _) | Step::Look | Step::Rest | Step::Restart => true,
            Step::Call(slot, _, _) | Step::Outside(slot, _) => {
                state[*slot].iter().any(|mode| *mode != Mode::Free)
            }
        }
    }
}

fn after(mode: Mode, verb: Verb, mishap: &Mishap) -> BTreeSet<Mode> {
    match mishap {
        Mishap::None => {
            let after = outcomes(mode, verb, Forgotten::ALL).into_iter();
            let after: BTreeSet<_> = after.map(|(_, next)| next).collect();
            // A call with an unknown id is not made.
            if after.is_empty() {
                BTreeSet::from([mode])
            } else {
                after
            }
        }
        Mishap::Dropped(_) | Mishap::Fault(_) | Mishap::Crash(_) => {
            unheard(mode, verb, Forgotten::ALL)
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(slot, verb, mishap) => write!(f, "{verb} #{slot}{mishap}"),
            Self::Look => f.write_str("look at everything"),
            Self::Rest => f.write_str("wait until everything is at rest"),
            Self::Restart => f.write_str("restart the process"),
            Self::Outside(slot, verb) => write!(f, "somebody else: {verb} #{slot}"),
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

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Dropped(polls) => write!(f, ", dropped after {polls} polls"),
            Self::Fault(fault) => write!(f, ", with {fault:?}"),
            Self::Crash(fault) => write!(f, ", and the process dies: {fault:?}"),
        }
    }
}
