//! Broken stores that prove the suite: each is the memory store with one thing twisted, and each dies of the
//! clause that it is named for.

pub mod mutants;
pub(crate) mod twist;

pub use twist::{At, Twist, Twisted, TwistedHarness};
