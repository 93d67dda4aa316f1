//! Tests of the public API of the core, in one binary to save link time.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests and their helpers may panic"
)]

mod and_wait;
mod arbitrary;
mod fake;
mod fingerprint;
mod forward;
mod layer;
mod next_attempt;
mod provided;
mod serialized;
mod settle;
mod stream_owned;
mod wait;
