//! What the tests of all providers share.
//!
//! [`Struck`] makes the kit's faults happen on any emulator; [`canned`] answers what no emulator does;
//! [`kills`] kills a process at every request it sends. The kit
//! and the emulators know nothing of each other, so that a misunderstanding of one is not the other's too:
//! this is where they meet.

pub mod canned;
pub mod kills;
mod struck;

pub use struck::{Struck, native};
