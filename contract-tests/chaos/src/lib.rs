//! Building blocks of a simulated cloud, without any meaning of their own.
//!
//! - [`Clock`]: time that a test can hold. [`TokioClock`] follows tokio's (so a paused runtime
//!   pauses it), [`ManualClock`] moves only when told.
//! - [`Dice`]: randomness that repeats from its seed.
//! - [`Bucket`]: a token bucket on a [`Clock`].
//! - [`FaultPlan`]: what goes wrong, at which call.
//!
//! Nothing here knows what an instance is; both the memory cloud and the emulators stand on it.

mod bucket;
mod clock;
mod dice;
mod fault;

pub use bucket::Bucket;
pub use clock::{Clock, ManualClock, TokioClock};
pub use dice::Dice;
pub use fault::{FaultPlan, Rule, When};
