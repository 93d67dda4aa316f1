//! A store whose revisions skip numbers, like those of a store that shares its counter with others.
//!
//! It is correct: the contract promises that revisions grow, and not by how much. The clauses must
//! not assume that the next revision is the last one plus one.

use async_trait::async_trait;
use fleetwright_store::{
    Batch, Change, Check, Found, Interest, Page, Query, Record, RecordId, Result, Revision,
    StoreError, Transaction,
};

use crate::{CallContext, Override, overrides::next_batch};

/// Overrides that return the revisions 1, 2, 3 as 107, 114, 121.
#[derive(Clone, Copy, Debug, Default)]
pub struct SkippedRevisions;

const FIRST: u64 = 100;
const STEP: u64 = 7;

/// Converts a revision of the correct store. Every store starts at [`Revision::ZERO`].
fn to_outer(revision: Revision) -> Revision {
    match revision {
        Revision::ZERO => Revision::ZERO,
        Revision(number) => Revision(FIRST + STEP * number),
    }
}

/// Converts back: the last revision of the correct store at or before this one.
fn to_inner(outer: Revision) -> Revision {
    Revision(outer.0.saturating_sub(FIRST) / STEP)
}

fn record_to_outer(record: Record) -> Record {
    Record {
        revision: to_outer(record.revision),
        ..record
    }
}

/// Converts the revisions in an error. Only two errors have one of the correct store.
fn error_to_outer(mut error: StoreError) -> StoreError {
    if let StoreError::Compacted { oldest, .. } = &mut error {
        *oldest = to_outer(*oldest);
    }
    if let StoreError::Conflict(conflict) = &mut error {
        if let Found::At(revision) = &mut conflict.found {
            *revision = to_outer(*revision);
        }
    }
    error
}

#[async_trait]
impl Override for SkippedRevisions {
    async fn get(&self, call: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        Ok(call.store.get(id).await?.map(record_to_outer))
    }
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        let page = call.store.list(query).await?;
        Ok(Page {
            records: page.records.into_iter().map(record_to_outer).collect(),
            revision: to_outer(page.revision),
            ..page
        })
    }
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let mut translated = transaction.clone();
        for check in &mut translated.checks {
            if let Check::At(_, revision) = check {
                // A revision in between belongs to no record.
                let exists = to_outer(to_inner(*revision)) == *revision;
                *revision = if exists {
                    to_inner(*revision)
                } else {
                    Revision(u64::MAX)
                };
            }
        }
        let result = call.store.commit(&translated).await;
        result
            .map(to_outer)
            .map_err(|error| with_requested_check(error_to_outer(error), transaction))
    }
    async fn head(&self, call: CallContext<'_>) -> Result<Revision> {
        Ok(to_outer(call.store.head().await?))
    }
    async fn can_watch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<()> {
        let head = to_outer(call.store.head().await?);
        if after > head {
            return Err(StoreError::Ahead {
                requested: after,
                head,
            });
        }
        let watch = call.store.watch(to_inner(after), interest.clone()).await;
        watch.map(|_| ()).map_err(error_to_outer)
    }
    async fn batch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        let mut batch = next_batch(call, to_inner(after), interest)
            .await
            .map_err(error_to_outer)?;
        batch.through = to_outer(batch.through);
        for commit in &mut batch.commits {
            commit.revision = to_outer(commit.revision);
            for change in &mut commit.changes {
                let (Change::Put(record) | Change::Deleted(record)) = change;
                record.revision = to_outer(record.revision);
            }
        }
        Ok(batch)
    }
    async fn compact(&self, call: CallContext<'_>, through: Revision) -> Result<()> {
        call.store.compact(to_inner(through)).await
    }
}

/// Puts the caller's own check into a conflict, instead of the converted one.
fn with_requested_check(mut error: StoreError, transaction: &Transaction) -> StoreError {
    if let StoreError::Conflict(conflict) = &mut error {
        if let fleetwright_store::Part::Check(position) = conflict.part {
            if let Some(check) = transaction.checks.get(position) {
                conflict.check = check.clone();
            }
        }
    }
    error
}
