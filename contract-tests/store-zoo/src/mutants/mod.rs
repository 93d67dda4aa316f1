//! Stores that are each broken in one way, in one module per family of clauses.
//!
//! A mutant names the clause that it violates; a test runs that clause and requires that it fails.
//! A mutant breaks as little else as possible, so that the clause is shown to be necessary.

mod index;
mod many;
mod page;
mod record;
mod transaction;
mod unique;
mod watch;

use fleetwright_store::{Json, Transaction, Write};
use fleetwright_store_contract::Factory;
use serde_json::Value;

use super::{Override, OverrideHarness};

/// A store that is broken in one way.
pub struct Mutant {
    /// What is wrong with it, in a few words.
    pub name: &'static str,
    /// The id of the clause that must fail.
    pub violates: &'static str,
    /// Creates the factory of its harness.
    pub make: fn() -> Factory,
}

impl std::fmt::Debug for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.violates)
    }
}

/// Returns every mutant. Those of CRASH-01 need processes and are in the tests of the SQLite store.
pub fn all() -> Vec<&'static Mutant> {
    let families = [
        record::MUTANTS,
        transaction::MUTANTS,
        unique::MUTANTS,
        index::MUTANTS,
        page::MUTANTS,
        watch::MUTANTS,
        many::MUTANTS,
    ];
    families.into_iter().flatten().collect()
}

/// Declares a mutant with the overrides `T`.
const fn mutant<T: Override + Default + 'static>(
    violates: &'static str,
    name: &'static str,
) -> Mutant {
    Mutant {
        name,
        violates,
        make: OverrideHarness::factory::<T>,
    }
}

/// Returns the transaction with every value changed.
fn with_values(transaction: &Transaction, change: impl Fn(Value) -> Value) -> Transaction {
    let mut changed = transaction.clone();
    for write in &mut changed.writes {
        if let Write::Put(_, value) = write {
            *value = change(value.take()).into();
        }
    }
    changed
}

/// Returns the puts of a transaction.
fn puts(transaction: &Transaction) -> impl Iterator<Item = (&fleetwright_store::RecordId, &Json)> {
    transaction.writes.iter().filter_map(|write| match write {
        Write::Put(id, value) => Some((id, value)),
        Write::Delete(_) => None,
    })
}
