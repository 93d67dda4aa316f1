//! The emulated Azure over real sockets.
#![cfg(feature = "azure")]
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod client;
mod faults;
mod fuzz;
mod polling;
mod program;
#[path = "../shared/mod.rs"]
mod shared;
mod sockets;
