//! Backends that break the family verbs.

use super::Mutant;

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[];
