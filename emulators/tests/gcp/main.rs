//! The emulated Compute Engine over real sockets.
#![cfg(feature = "gcp")]
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod client;
mod faults;
mod fuzz;
mod program;
#[path = "../shared/mod.rs"]
mod shared;
mod sockets;
