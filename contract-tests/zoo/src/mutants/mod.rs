//! Backends that are each broken in one way, by the family of the clause that is named for it.

mod batch;
mod cancellation;
mod concurrency;
mod consoles;
mod crash;
mod describe;
mod errors;
mod launch;
mod layers;
mod leaks;
mod list;
mod shared;
mod start;
mod state;
mod stop;
mod tags;
mod terminate;
mod time;
mod token;
mod verbs;

pub use shared::SHARED;

use super::{Factory, Twist};

/// A backend that is broken in one way.
pub struct Mutant {
    /// What is wrong with it, in a few words.
    pub name: &'static str,
    /// The clause that it dies of.
    pub dies_of: &'static str,
    /// Makes it: the memory cloud, twisted.
    pub make: fn() -> Factory,
}

impl std::fmt::Debug for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.dies_of)
    }
}

/// Every mutant.
pub fn all() -> Vec<&'static Mutant> {
    [
        launch::MUTANTS,
        token::MUTANTS,
        state::MUTANTS,
        describe::MUTANTS,
        list::MUTANTS,
        stop::MUTANTS,
        start::MUTANTS,
        terminate::MUTANTS,
        tags::MUTANTS,
        errors::MUTANTS,
        batch::MUTANTS,
        verbs::MUTANTS,
        consoles::MUTANTS,
        concurrency::MUTANTS,
        cancellation::MUTANTS,
        crash::MUTANTS,
        time::MUTANTS,
        leaks::MUTANTS,
        layers::MUTANTS,
    ]
    .into_iter()
    .flatten()
    .collect()
}
