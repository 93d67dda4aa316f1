//! Backends that break the family state.

use super::Mutant;

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[];
