//! Broken stores that prove the suite: each is the memory store with one call overridden, and each violates the
//! clause that it names. [`Leaps`] is unusual and correct, and passes everything.

mod leaps;
pub mod mutants;
pub(crate) mod overrides;

pub use leaps::Leaps;
pub use overrides::{CallContext, OverriddenStore, Override, OverrideHarness};
