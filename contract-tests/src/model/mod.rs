//! The model-based test: generated sequences of calls, faults, dropped calls and restarts, compared
//! with a reference model.
//!
//! The model does not know what a cloud does, because nobody knows that after a lost response. It
//! keeps the *set* of states that are possible for each launch token. A result removes the states
//! in which a correct cloud could not have returned it. A call whose result is lost adds the states
//! that are possible if the cloud carried it out. A backend violates the clause if the set becomes
//! empty: then no state explains what was observed.
//!
//! A sequence has 4 to 23 steps on two tokens. `step` generates it, so that a call on an instance
//! only follows a launch that may have created one, and `execution` carries it out on a fresh account.
//! proptest shrinks a sequence that fails to a short one that still fails; the message shows its
//! steps with their results. The sequences depend on a seed alone, and failing ones are stored and
//! tried first in later runs (the module `seed`).
//!
//! | file | what it owns |
//! | --- | --- |
//! | `mode` | the possible states of a token, and the results of a correct cloud in each |
//! | `step` | the steps that can be generated, and which sequences are useful |
//! | `slot` | the set of possible states of one token, narrowed by every result |
//! | `execution` | carrying out a sequence on an account |

mod execution;
mod mode;
mod slot;
mod step;

use std::sync::atomic::Ordering;

use proptest_state_machine::ReferenceStateMachine as _;

use crate::{Factory, Outcome, Pass, Time, seed, suite::run_case};
use execution::Execution;
use step::Machine;

/// Runs the clause: 160 sequences in virtual time, 8 in real time, the same ones in every run.
pub(crate) fn run(factory: &Factory) -> Outcome {
    let cases = match factory().time() {
        Time::Virtual => 160,
        Time::Real => 8,
    };
    let strategy = Machine::sequential_strategy(4..24);
    seed::for_all("CRASH-06", cases, &strategy, |(_, steps, observed)| {
        let result = run_case(factory, "CRASH-06", async |cx| {
            let mut execution = Execution::new(cx).await?;
            for step in &steps {
                // Without the count of steps, a failure would shrink to an empty sequence.
                if let Some(observed) = &observed {
                    observed.fetch_add(1, Ordering::SeqCst);
                }
                execution.run_step(step).await?;
            }
            execution.finish().await?;
            Ok(Pass::Held)
        });
        result.map(drop)
    })
}
