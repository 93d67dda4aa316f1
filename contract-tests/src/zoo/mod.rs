//! Backends that prove the kit: the reference, mutants that are each broken in one way, and benign
//! oddities that are legal.
//!
//! They ship with the kit, so that the author of a backend can watch a clause fail.

pub mod benign;
pub mod mutants;
mod reference;
mod twist;

pub use reference::MemoryHarness;
pub use twist::{At, Twist, Twisted, TwistedHarness};

pub use crate::Factory;
