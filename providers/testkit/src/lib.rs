//! What the tests of all providers share.
//!
//! The contract kit and the emulators do not depend on each other, so that a mistake in one is not
//! repeated in the other. This crate connects them:
//!
//! - [`emulated`] is the contract harness of a provider on an emulator.
//! - [`EmulatorFaults`] injects the kit's faults into any emulator.
//! - [`broken_responses`] checks that responses which cannot be understood become typed errors.
//! - [`errors`] checks how error responses become shared errors.
//! - [`kill_sweep`] kills a process at every request that it sends.
//! - [`late_shortage`] lets launches fail after they were accepted, under the fallback layer.
//! - [`native_costs`] compares the calls that an emulator counts with those that a provider declares.
//! - [`canned_responses`] serves responses that no emulator sends.

pub mod broken_responses;
pub mod canned_responses;
pub mod emulated;
pub mod errors;
mod fault_injection;
pub mod kill_sweep;
pub mod late_shortage;
pub mod native_costs;

pub use fault_injection::{EmulatorFaults, emulator_fault};
