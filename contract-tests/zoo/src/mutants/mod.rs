//! Backends that are each broken in one way, grouped by the family of the clause that they violate.
//!
//! Owns the list of all mutants, and the clauses that share theirs.

mod account;
mod batch;
mod blocking;
mod bystanders;
mod cancellation;
mod concurrency;
mod consoles;
mod crash;
mod describe;
mod errors;
mod images;
mod kept;
mod launch;
mod layers;
mod leaks;
mod list;
mod matrix;
mod secrets;
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

use super::{Factory, Override};

/// A backend that is broken in one way.
pub struct Mutant {
    /// What is wrong with it, in a few words. The name is unique.
    pub name: &'static str,
    /// The id of the clause that it violates and that must detect it.
    pub violates: &'static str,
    /// Creates its factory: the memory cloud with some calls overridden.
    pub make: fn() -> Factory,
}

impl std::fmt::Debug for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.violates)
    }
}

/// Returns every mutant, in the order of the contract's families.
pub fn all() -> Vec<&'static Mutant> {
    [
        launch::MUTANTS,
        launch::fields::MUTANTS,
        launch::user_data::MUTANTS,
        launch::addresses::MUTANTS,
        launch::types::MUTANTS,
        token::MUTANTS,
        token::fields::MUTANTS,
        token::many::MUTANTS,
        state::MUTANTS,
        describe::MUTANTS,
        list::MUTANTS,
        stop::MUTANTS,
        start::MUTANTS,
        terminate::MUTANTS,
        bystanders::MUTANTS,
        tags::MUTANTS,
        tags::keys::MUTANTS,
        errors::MUTANTS,
        secrets::MUTANTS,
        batch::MUTANTS,
        batch::content::MUTANTS,
        batch::states::MUTANTS,
        batch::interrupted::MUTANTS,
        batch::partial::MUTANTS,
        verbs::MUTANTS,
        consoles::MUTANTS,
        images::MUTANTS,
        kept::MUTANTS,
        concurrency::MUTANTS,
        cancellation::MUTANTS,
        crash::MUTANTS,
        time::MUTANTS,
        blocking::MUTANTS,
        leaks::MUTANTS,
        account::MUTANTS,
        matrix::MUTANTS,
        layers::MUTANTS,
    ]
    .into_iter()
    .flatten()
    .collect()
}
