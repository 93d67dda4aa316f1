//! Creating instances: one at a time, by many tenants, and by one tenant with many requests at once.
//!
//! No controller runs. A create is one transaction with the instance, its audit entry, its allocation and two accounts. The raw variant
//! writes the same rows, as many transactions in one SQLite transaction as there are requests at once: the least that a store with
//! group commit can do.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use fleetwright_store::{RecordId, Transaction, Write};
use futures_util::{StreamExt as _, stream};
use tokio::runtime::Runtime;

use super::{
    measure,
    raw::{Raw, Rows},
    world::{Kept, World},
};
use crate::measure::{Effort, Row, Variant};

/// Who creates: how many tenants, and how many requests at once.
const CASES: [(&str, usize, usize); 3] = [
    ("create, one at a time", 1, 1),
    ("create, 64 tenants, 64 at once", 64, 64),
    ("create, one tenant, 16 at once", 1, 16),
];

/// How many writers the store is measured with.
const WRITERS: usize = 64;

pub(super) fn run(effort: Effort, runtime: &Runtime) -> Vec<Row> {
    let mut rows = Vec::new();
    for (operation, tenants, at_once) in CASES {
        let mut variants: Vec<Variant<'_>> = vec![raw(runtime, at_once)];
        for kept in Kept::ALL {
            let world = runtime.block_on(World::new(kept, tenants));
            let run = move |count: u32| {
                runtime.block_on(world.create_many(count as usize, at_once));
            };
            variants.push((kept.name().to_owned(), Box::new(run)));
        }
        rows.extend(measure(effort, operation, variants));
    }
    let variants = vec![raw(runtime, WRITERS), store(runtime)];
    rows.extend(measure(effort, "store commit, 64 writers", variants));
    rows
}

/// Raw transactions in groups of this size.
fn raw(runtime: &Runtime, group: usize) -> Variant<'_> {
    let world = runtime.block_on(World::new(Kept::Sqlite, 1));
    runtime.block_on(world.create_many(2, 1));
    let mut raw = Raw::new(world.folder.path());
    let run = move |count: u32| {
        raw.write(count as usize, group);
        let _ = &world;
    };
    (format!("raw SQLite, groups of {group}"), Box::new(run))
}

/// The store itself, with the rows of a create in each transaction.
fn store(runtime: &Runtime) -> Variant<'_> {
    let world = runtime.block_on(World::new(Kept::Sqlite, 1));
    runtime.block_on(world.create_many(2, 1));
    let rows = Rows::last(&world.folder.path().join("fleet.db"));
    let (next, rows) = (Arc::new(AtomicUsize::new(0)), Arc::new(rows));
    let run = move |count: u32| {
        let commits = stream::iter(0..count).map(|_| {
            let (store, rows) = (Arc::clone(&world.facade.store), Arc::clone(&rows));
            let number = next.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let transaction = transaction(&rows, number);
                store.commit(&transaction).await.expect("a commit");
            })
        });
        // A task is spawned when the stream has room for it, so no more than `WRITERS` run.
        let commits = commits.buffer_unordered(WRITERS);
        runtime.block_on(commits.for_each(async |done| done.expect("a task")));
    };
    ("SQLite store".to_owned(), Box::new(run))
}

/// The rows of a create as a transaction of their own: other keys, and other unique values.
fn transaction(rows: &Rows, number: usize) -> Transaction {
    let mut transaction = Transaction::new();
    for record in &rows.records {
        let key = record.key(number);
        let id = RecordId::new(record.kind.as_str(), key).expect("an id");
        transaction = transaction.write(Write::Put(id, record.json(number)));
    }
    transaction
}
