//! Broken stores that prove the suite: each is the memory store with one thing twisted, and each dies of the
//! clause that it is named for. [`Leaps`] is odd and legal, and passes everything.

mod leaps;
pub mod mutants;
pub(crate) mod twist;

pub use leaps::Leaps;
pub use twist::{At, Twist, Twisted, TwistedHarness};
