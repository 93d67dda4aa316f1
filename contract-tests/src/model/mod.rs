//! The model-based test: generated sequences of calls, faults, dropped calls and restarts, against a
//! reference that keeps the set of everything that may be the case.
//!
//! | file | what it owns |
//! | --- | --- |
//! | `mode` | the possible states, and the results of a correct cloud in each |
//! | `step` | the alphabet, and which sequences make sense |
//! | `slot` | the possible states of one token, narrowed by every result |
//! | `play` | a sequence played on an account |

mod mode;
mod play;
mod slot;
mod step;

use std::sync::atomic::Ordering;

use proptest_state_machine::ReferenceStateMachine as _;

use crate::{Factory, Outcome, Pass, Time, seed, suite::run_case};
use play::Play;
use step::Machine;

/// Runs the clause: a fixed number of sequences, the same ones each time.
pub(crate) fn run(factory: &Factory) -> Outcome {
    let cases = match factory().time() {
        Time::Virtual => 160,
        Time::Real => 8,
    };
    let strategy = Machine::sequential_strategy(4..24);
    seed::for_all("CRASH-06", cases, &strategy, |(_, steps, observed)| {
        let played = run_case(factory, "CRASH-06", async |cx| {
            let mut play = Play::new(cx).await?;
            for step in &steps {
                // Without the count of steps, a failure would shrink to an empty sequence.
                if let Some(observed) = &observed {
                    observed.fetch_add(1, Ordering::SeqCst);
                }
                play.take(step).await?;
            }
            play.finish().await?;
            Ok(Pass::Held)
        });
        played.map(drop)
    })
}
