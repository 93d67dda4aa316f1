//! Building blocks of a simulated cloud: clocks, random numbers, token buckets and fault plans.
//!
//! - [`Clock`]: time that a test controls. [`TokioClock`] follows tokio's clock (so a paused runtime
//!   pauses it), [`ManualClock`] moves only when it is advanced.
//! - [`SeededRng`]: random numbers that depend on a seed alone.
//! - [`TokenBucket`]: a rate limit on a [`Clock`].
//! - [`FaultPlan`]: which fault to inject into which call.
//!
//! The memory cloud, the emulators and the simulation are built on it. Nothing here knows what an
//! instance is, and the crate depends on no other crate of the workspace. With the same seed and the
//! same calls at the same times, all of it behaves the same in every run.

mod bucket;
mod clock;
mod fault;
mod rng;

pub use bucket::TokenBucket;
pub use clock::{Clock, ManualClock, TokioClock};
pub use fault::{FaultPlan, Rule, When};
pub use rng::SeededRng;
