//! A backend that keeps its instances in a file: a shelf of machines whose records outlive every
//! process that uses them.
//!
//! [`Shelf`] is the backend, [`Records`] the file behind it. Each call is one transaction on the file:
//! lock, read, change, write, unlock. [`Steps`] is the seam around a transaction, where the tests
//! inject faults. `tests/contract.rs` runs the whole contract in real time, and kills processes.

mod records;
mod shelf;

pub use records::{Machine, Records};
pub use shelf::{NoFaults, Shelf, Steps};
