//! The simulated cloud, knob by knob, against its own oracle. All of it in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers may panic"
)]

mod attached;
mod bad_input;
mod batches;
mod calls;
mod cancel;
mod capacity;
mod catalog;
mod consoles;
mod determinism;
mod faults;
mod knobs;
mod lag;
mod lifecycle;
mod lists;
mod model;
mod outside;
mod pages;
mod parts;
mod patience;
mod power;
mod quota;
mod scale;
mod support;
mod throttle;
mod tokens;
mod trouble;
mod verbs;
mod zones;
