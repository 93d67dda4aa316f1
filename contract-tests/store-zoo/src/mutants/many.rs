//! Stores that break when many call at once, when calls are dropped, when they are opened again, when they are
//! full, or only now and then.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;

use super::{Mutant, mutant, puts};
use crate::{CallContext, Override};
use fleetwright_store::{
    IndexName, Query, Record, RecordId, Result, Revision, Schema, Store as _, StoreError,
    Transaction, Write,
};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<ChecksThenWrites>("RACE-01", "checks first and writes later"),
    mutant::<LooksThenClaims>("RACE-02", "looks for holders first and claims later"),
    mutant::<CachesInHandles>("RACE-03", "answers from a cache of the handle"),
    mutant::<WritesInHalves>("DROP-01", "writes in two halves"),
    mutant::<LosesTheSecondDelete>("MODEL-01", "carries out the first of two deletes"),
    mutant::<FreesTooMuch>(
        "MODEL-01",
        "does not compare a revision if the record is also made",
    ),
    mutant::<ForgetsWithTheHandle>("CRASH-02", "forgets all with its handle"),
    mutant::<SwallowsFull>("FULL-01", "acknowledges what there is no room for"),
    mutant::<CallsFullUnavailable>("FULL-01", "asks to repeat what there is no room for"),
];

#[derive(Default)]
struct ChecksThenWrites;
#[async_trait]
impl Override for ChecksThenWrites {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let (mut checks, mut writes) = (transaction.clone(), transaction.clone());
        checks.writes.clear();
        writes.checks.clear();
        at.store.commit(&checks).await?;
        tokio::task::yield_now().await;
        at.store.commit(&writes).await
    }
}

#[derive(Default)]
struct LooksThenClaims;
#[async_trait]
impl Override for LooksThenClaims {
    /// Without anything unique.
    fn schema(&self, _: Schema) -> Schema {
        let builder = Schema::builder().kind("thing").index("name", ["/name"]);
        let builder = builder.kind("other").index("name", ["/name"]);
        builder.build().unwrap_or_default()
    }
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        for (id, value) in puts(transaction) {
            let Some(name) = value["name"].as_str() else {
                continue;
            };
            let query = Query::by(id.kind.clone(), IndexName::new("name")?, name);
            if !at.store.list(&query).await?.records.is_empty() {
                return at
                    .store
                    .commit(&Transaction::new().check(fleetwright_store::Check::Exists(id.clone())))
                    .await;
            }
        }
        tokio::task::yield_now().await;
        at.store.commit(transaction).await
    }
}

#[derive(Default)]
struct CachesInHandles(Mutex<BTreeMap<(usize, RecordId), Option<Record>>>);
#[async_trait]
impl Override for CachesInHandles {
    async fn get(&self, at: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        let found = at.store.get(id).await?;
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(cache
            .entry((at.handle, id.clone()))
            .or_insert(found)
            .clone())
    }
}

#[derive(Default)]
struct WritesInHalves;
#[async_trait]
impl Override for WritesInHalves {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let (mut first, mut second) = (transaction.clone(), Transaction::new());
        second.writes = first.writes.split_off(first.writes.len() / 2);
        at.store.commit(&first).await?;
        tokio::task::yield_now().await;
        at.store.commit(&second).await
    }
}

#[derive(Default)]
struct LosesTheSecondDelete;
#[async_trait]
impl Override for LosesTheSecondDelete {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let mut changed = transaction.clone();
        let mut deletes = 0;
        changed.writes.retain(|write| match write {
            Write::Put(..) => true,
            Write::Delete(_) => {
                deletes += 1;
                deletes < 2
            }
        });
        at.store.commit(&changed).await
    }
}

#[derive(Default)]
struct FreesTooMuch;
#[async_trait]
impl Override for FreesTooMuch {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let mut changed = transaction.clone();
        let made = |id: &RecordId| puts(transaction).any(|(put, _)| put == id);
        changed.checks.retain(|check| match check {
            fleetwright_store::Check::At(id, _) => !made(id),
            fleetwright_store::Check::Absent(_)
            | fleetwright_store::Check::Exists(_)
            | fleetwright_store::Check::Unclaimed(_) => true,
        });
        at.store.commit(&changed).await
    }
}

#[derive(Default)]
struct ForgetsWithTheHandle;
#[async_trait]
impl Override for ForgetsWithTheHandle {
    fn forgets_with_each_handle(&self) -> bool {
        true
    }
}

#[derive(Default)]
struct SwallowsFull;
#[async_trait]
impl Override for SwallowsFull {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        match at.store.commit(transaction).await {
            Err(StoreError::Full { .. }) => Ok(at.store.head().await?.next()),
            answer => answer,
        }
    }
}

#[derive(Default)]
struct CallsFullUnavailable;
#[async_trait]
impl Override for CallsFullUnavailable {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let answer = at.store.commit(transaction).await;
        if let Err(StoreError::Full { reason, source }) = answer {
            return Err(StoreError::Unavailable { reason, source });
        }
        answer
    }
}
