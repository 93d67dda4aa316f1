//! Measures what fleetwright costs, side by side, in one run on one machine.
//!
//! Every group compares variants of one operation. The variants of an operation run in turn, round after round, so that a
//! slower minute of the machine slows all of them. A row has the median of the rounds and their spread. Numbers of different
//! runs or machines are not comparable; the ratios of one run are.
//!
//! Counts of allocations and of calls to a cloud do not depend on the machine, and `tests/counts.rs` asserts them.
//!
//! The feature `clouds` adds groups that run against the project's emulators: `overhead`, `economy`, `list` and `emulators`.
//! It builds the SDKs of the three vendors, which takes minutes.
#![allow(
    clippy::expect_used,
    reason = "a measurement that cannot be made ends the program"
)]

#[cfg(feature = "clouds")]
pub mod clouds;
pub mod crowd;
pub mod facade;
pub mod idle;
pub mod layers;
pub mod measure;
pub mod memory;
pub mod page;
pub mod proof;
#[cfg(feature = "clouds")]
pub mod python;
pub mod report;
pub mod service;
pub mod svg;
