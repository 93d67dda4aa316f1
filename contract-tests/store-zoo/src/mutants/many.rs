//! RACE, DROP, MODEL, CRASH-02 and FULL: stores that break with concurrent calls, dropped calls, a
//! reopened handle or no space, or only in some sequences of calls.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use fleetwright_store::{
    IndexName, Query, Record, RecordId, Result, Revision, Schema, Store as _, StoreError,
    Transaction, Write,
};

use super::{Mutant, mutant, puts};
use crate::{CallContext, Override};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<ChecksThenWrites>("RACE-01", "checks first and writes later"),
    mutant::<ReadsThenClaims>("RACE-02", "reads the holders first and claims later"),
    mutant::<CachesInHandles>("RACE-03", "reads from a cache of the handle"),
    mutant::<WritesInHalves>("DROP-01", "writes in two halves"),
    mutant::<LosesTheSecondDelete>("MODEL-01", "applies only the first delete of a transaction"),
    mutant::<SkipsCheckOfWritten>(
        "MODEL-01",
        "does not compare the revision of a record that it also writes",
    ),
    mutant::<LosesRecordsOnReopen>("CRASH-02", "loses all records when it is reopened"),
    mutant::<HidesFull>("FULL-01", "acknowledges a write that it has no space for"),
    mutant::<ReportsFullAsUnavailable>("FULL-01", "reports a full store as unavailable"),
];

#[derive(Default)]
struct ChecksThenWrites;
#[async_trait]
impl Override for ChecksThenWrites {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let (mut checks, mut writes) = (transaction.clone(), transaction.clone());
        checks.writes.clear();
        writes.checks.clear();
        call.store.commit(&checks).await?;
        tokio::task::yield_now().await;
        call.store.commit(&writes).await
    }
}

#[derive(Default)]
struct ReadsThenClaims;
#[async_trait]
impl Override for ReadsThenClaims {
    /// Has no unique index.
    fn schema(&self, _: Schema) -> Schema {
        let builder = Schema::builder().kind("thing").index("name", ["/name"]);
        let builder = builder.kind("other").index("name", ["/name"]);
        builder.build().unwrap_or_default()
    }
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        for (id, value) in puts(transaction) {
            let Some(name) = value["name"].as_str() else {
                continue;
            };
            let query = Query::by(id.kind.clone(), IndexName::new("name")?, name);
            if !call.store.list(&query).await?.records.is_empty() {
                return call
                    .store
                    .commit(&Transaction::new().check(fleetwright_store::Check::Exists(id.clone())))
                    .await;
            }
        }
        tokio::task::yield_now().await;
        call.store.commit(transaction).await
    }
}

#[derive(Default)]
struct CachesInHandles(Mutex<BTreeMap<(usize, RecordId), Option<Record>>>);
#[async_trait]
impl Override for CachesInHandles {
    async fn get(&self, call: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        let found = call.store.get(id).await?;
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(cache
            .entry((call.handle, id.clone()))
            .or_insert(found)
            .clone())
    }
}

#[derive(Default)]
struct WritesInHalves;
#[async_trait]
impl Override for WritesInHalves {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let (mut first, mut second) = (transaction.clone(), Transaction::new());
        second.writes = first.writes.split_off(first.writes.len() / 2);
        call.store.commit(&first).await?;
        tokio::task::yield_now().await;
        call.store.commit(&second).await
    }
}

#[derive(Default)]
struct LosesTheSecondDelete;
#[async_trait]
impl Override for LosesTheSecondDelete {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let mut changed = transaction.clone();
        let mut deletes = 0;
        changed.writes.retain(|write| match write {
            Write::Put(..) => true,
            Write::Delete(_) => {
                deletes += 1;
                deletes < 2
            }
        });
        call.store.commit(&changed).await
    }
}

#[derive(Default)]
struct SkipsCheckOfWritten;
#[async_trait]
impl Override for SkipsCheckOfWritten {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let mut changed = transaction.clone();
        let writes = |id: &RecordId| puts(transaction).any(|(put, _)| put == id);
        changed.checks.retain(|check| match check {
            fleetwright_store::Check::At(id, _) => !writes(id),
            fleetwright_store::Check::Absent(_)
            | fleetwright_store::Check::Exists(_)
            | fleetwright_store::Check::Unclaimed(_) => true,
        });
        call.store.commit(&changed).await
    }
}

#[derive(Default)]
struct LosesRecordsOnReopen;
#[async_trait]
impl Override for LosesRecordsOnReopen {
    fn has_records_per_handle(&self) -> bool {
        true
    }
}

#[derive(Default)]
struct HidesFull;
#[async_trait]
impl Override for HidesFull {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        match call.store.commit(transaction).await {
            Err(StoreError::Full { .. }) => Ok(call.store.head().await?.next()),
            result => result,
        }
    }
}

#[derive(Default)]
struct ReportsFullAsUnavailable;
#[async_trait]
impl Override for ReportsFullAsUnavailable {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let result = call.store.commit(transaction).await;
        if let Err(StoreError::Full { reason, source }) = result {
            return Err(StoreError::Unavailable { reason, source });
        }
        result
    }
}
