//! The emulated EC2 over real sockets.
#![cfg(feature = "ec2")]
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod client;
mod faults;
mod fuzz;
mod program;
#[path = "../shared/mod.rs"]
mod shared;
mod sockets;
