//! The core by what its callers see: one program, because each links a copy of everything.

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
