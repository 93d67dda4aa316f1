//! Tests of the simulated cloud against its oracle, in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers may panic"
)]

mod bad_input;
mod batches;
mod calls;
mod cancel;
mod capacity;
mod catalog;
mod console;
mod determinism;
mod external_actor;
mod fault_cases;
mod faults;
mod images;
mod knobs;
mod lifecycle;
mod lists;
mod model;
mod pages;
mod partial_launch;
mod power;
mod quota;
mod read_lag;
mod recent_launches;
mod resources;
mod scale;
mod support;
mod throttle;
mod tokens;
mod verbs;
mod zones;
