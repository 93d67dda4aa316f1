//! Layers: what repeats, limits, combines and watches calls, over any provisioner.
//!
//! Owns the blessed order, in [`Stack`], and what a layer is. A layer knows nothing of a cloud: it
//! reads an error's advice, effect and scope, and what the backend declares. Backends repeat,
//! limit and combine nothing by themselves, so that it is done once and seen in one place.
//!
//! # The order, and why
//!
//! From the caller to the cloud:
//!
//! | layer | stands there because |
//! | --- | --- |
//! | [`Trace`], [`Metrics`] | what they show is what the caller meets, waiting included |
//! | [`Timeout`] in total | bounds all that is below: alternatives, repetitions, waiting for a turn |
//! | [`Fallback`] | an offering is given up only once its launch was repeated and settled below |
//! | [`Coalesce`] | above the repetitions: a throttled batch of five hundred is repeated as one call, and only what failed while others came through for its own callers |
//! | [`Retry`] | above the limits: every repetition takes its turn like a first call |
//! | [`Limit`] | outside the timeout of one attempt: who waits for a turn has sent nothing yet, so nothing of it is unknown |
//! | [`Timeout`] of one attempt | around the cloud's own time and nothing else |
//!
//! # Who retries what
//!
//! [`Retry`] is the only one that repeats a call; where calls are put together, [`Coalesce`] has it
//! repeat a call that failed as a whole, and by its rules repeats what failed alone, so that nobody
//! waits for the failure of another. A backend's SDK is told not to, or only what it
//! alone can see (an expired session that it renews, a redirect); it never repeats a refusal of
//! the service. [`wait`](crate::wait) polls, which is no repetition: it goes on after errors that
//! may be retried, so a wait over a stack of layers is more patient than either.
//!
//! # Guarantees
//!
//! - A launch is never sent again while its outcome is unknown, unless with the same token. One
//!   without a token, and a reboot, are repeated only after an error without effect.
//! - The time that a cloud asks for is kept, by the caller that was told and by all that follow.
//! - A dropped call leaves nothing behind in a layer: no turn taken, no place kept, no other caller
//!   touched.
//!
//! # Assumptions
//!
//! The backend keeps the contract. A layer over one that keeps it keeps it too: the contract kit
//! runs on the memory cloud under the whole stack.

mod budget;
mod coalesce;
mod course;
mod fallback;
mod lacking;
mod lane;
mod layered;
#[cfg(feature = "limit")]
mod limit;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "limit")]
mod pace;
mod request;
mod retry;
mod signal;
mod stack;
mod timeout;
#[cfg(feature = "trace")]
mod trace;

pub use budget::RetryBudget;
pub use coalesce::{Coalesce, CoalescePolicy};
pub use fallback::{Alternative, Fallback, FallbackPolicy};
pub use layered::Layered;
#[cfg(feature = "limit")]
pub use limit::{Limit, LimitPolicy, Rate};
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use request::{LaunchOutput, Layer, Request};
pub use retry::{Retry, RetryPolicy};
pub use stack::Stack;
pub use timeout::{Timeout, TimeoutPolicy};
#[cfg(feature = "trace")]
pub use trace::Trace;
