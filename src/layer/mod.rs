//! Layers around a provisioner: retries, rate limits, batching, timeouts, fallbacks and telemetry.
//!
//! Owns what a layer is and, in [`Stack`], the recommended order. A layer knows nothing about any
//! cloud: it reads an error's retry advice, effect and scopes, and the backend's capabilities.
//! Backends never retry, limit or combine calls themselves, so that it happens once, in one place.
//!
//! Most programs need one line:
//!
//! ```
//! use fleetwright::{InstanceProvisioner, layer::Stack};
//! use fleetwright_memory::MemoryCloud;
//!
//! let provisioner = Stack::default().wrap(MemoryCloud::new().provisioner());
//! assert_eq!(provisioner.capabilities().provider, "memory");
//! ```
//!
//! # The order, and why
//!
//! From the caller to the cloud:
//!
//! | layer | why it is there |
//! | --- | --- |
//! | [`Trace`], [`Metrics`] | They measure what the caller experiences, including all waiting. |
//! | [`Timeout`] in total | It bounds everything below: alternatives, retries, waiting for a rate limit. |
//! | [`Fallback`] | It gives up an offering only after the layers below have retried and settled the launch. |
//! | [`Coalesce`] | It is above the retries: a throttled batch of 500 is retried as one call, and each caller retries only its own failed item. Small batches, such as the polls of waits, are combined like single calls. |
//! | [`Retry`] | It is above the limits: every retry waits for a permit like a first attempt. |
//! | [`Limit`] | It is outside the timeout of one attempt: a queued call has not been sent, so its outcome is known. It counts native calls, as the backend declares them. |
//! | [`Timeout`] of one attempt | It measures only the time of the cloud. |
//!
//! # Which part retries
//!
//! - [`Retry`] is the only layer that sends a call again. [`Coalesce`] uses it to retry a batch in
//!   which every item failed, and lets each caller retry its own item otherwise, so that no caller
//!   waits for the failure of another.
//! - A backend configures its SDK not to retry, except for what only the SDK can handle: an expired
//!   session that it renews, a redirect. It never retries an error of the service.
//! - [`wait`](crate::wait) polls, and continues after errors that may be retried. A wait over a stack
//!   of layers therefore survives longer outages than either alone.
//!
//! # Guarantees
//!
//! - A launch is never sent again while its outcome is unknown, except with the same token. A launch
//!   without a token, and a reboot, are retried only after an error without effect.
//! - The delay that a cloud requests is respected by the caller that received it and by all later
//!   calls of the same operations.
//! - A dropped call leaves nothing behind in a layer: no permit, no queue entry, no effect on another
//!   caller.
//!
//! The guarantees assume that the backend keeps the contract. A layer over such a backend keeps it
//! too: the contract kit also runs on the memory cloud under the whole stack.
//!
//! # Writing a layer
//!
//! Implement [`Layer`] and put it around a provisioner with [`Layered`]. Every method has a default
//! body that passes the call on, so a layer implements only what it changes. This one refuses to
//! terminate anything:
//!
//! ```
//! use std::borrow::Cow;
//! use fleetwright::{
//!     BoxFuture, ErrorKind, InstanceConfig, InstanceId, InstanceProvisioner, Operation, Result,
//!     layer::{Layer, Layered, Request},
//! };
//! use fleetwright_memory::MemoryCloud;
//!
//! #[derive(Debug)]
//! struct TerminationLock;
//!
//! impl Layer for TerminationLock {
//!     fn call<'a, T: Send + 'a>(
//!         &'a self,
//!         request: Request<'a>,
//!         send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
//!     ) -> BoxFuture<'a, Result<T>> {
//!         if request.operation() == Operation::TerminateInstance {
//!             let error = request.call.forbidden("termination is locked");
//!             return Box::pin(async move { Err(error) });
//!         }
//!         send()
//!     }
//!
//!     fn batch<'a, T: Send + 'a>(
//!         &'a self,
//!         request: Request<'a>,
//!         send: impl Fn(Cow<'a, [InstanceId]>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
//!     ) -> BoxFuture<'a, Vec<Result<T>>> {
//!         if request.operation() == Operation::TerminateInstances {
//!             let error = request.call.forbidden("termination is locked");
//!             let results = request.ids.iter().map(|_| Err(error.clone())).collect();
//!             return Box::pin(async move { results });
//!         }
//!         send(Cow::Borrowed(request.ids))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let locked = Layered::new(MemoryCloud::new().provisioner(), TerminationLock);
//! let config = InstanceConfig::builder("image-1", "small").build()?;
//! let instance = locked.launch_instance(&config).await?;
//! let error = locked.terminate_instance(&instance.id).await.unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Forbidden);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "limit")]
mod adaptive_rate;
mod batch_queue;
mod budget;
mod capacity_memory;
mod coalesce;
mod coalesce_policy;
mod coalesce_send;
mod fallback;
mod fallback_follow;
mod fallback_policy;
mod fallback_progress;
mod layered;
#[cfg(feature = "limit")]
mod limit;
#[cfg(feature = "metrics")]
mod metric_keys;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "limit")]
mod permit_queue;
mod request;
mod retry;
mod retry_batch;
mod retry_state;
mod stack;
mod telemetry;
mod timeout;
#[cfg(feature = "trace")]
mod trace;

pub use budget::RetryBudget;
pub use coalesce::Coalesce;
pub use coalesce_policy::CoalescePolicy;
pub use fallback::Fallback;
pub use fallback_policy::{Alternative, FallbackPolicy};
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
