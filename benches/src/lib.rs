//! Measures what fleetwright costs, side by side, in one run on one machine.
//!
//! Every group compares variants of one operation. The variants of an operation run in turn, round after round, so that a
//! slower minute of the machine slows all of them. A row has the median of the rounds and their spread. Numbers of different
//! runs or machines are not comparable; the ratios of one run are.
//!
//! Counts of allocations and of calls to a cloud do not depend on the machine, and `tests/counts.rs` asserts them.
#![allow(
    clippy::expect_used,
    reason = "a measurement that cannot be made ends the program"
)]

pub mod idle;
pub mod layers;
pub mod measure;
pub mod memory;
pub mod report;
