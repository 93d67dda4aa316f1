//! The simulated cloud, knob by knob, against its own oracle. All of it in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test that fails has to stop the test"
)]

mod attached;
mod bad_input;
mod batches;
mod calls;
mod capacity;
mod catalog;
mod consoles;
mod knobs;
mod lag;
mod lifecycle;
mod lists;
mod outside;
mod pages;
mod parts;
mod patience;
mod power;
mod quota;
mod support;
mod throttle;
mod tokens;
mod verbs;
mod zones;
