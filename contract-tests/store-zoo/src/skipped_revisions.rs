//! A store whose revisions leap, as those of a store do that shares its counter with others. Legal: revisions grow,
//! and nobody promised by how much.

use async_trait::async_trait;

use crate::{CallContext, Override, overrides::next_batch};
use fleetwright_store::{
    Batch, Change, Check, Found, Interest, Page, Query, Record, RecordId, Result, Revision,
    StoreError, Transaction,
};

/// The overrides: 1, 2, 3 are shown as 107, 114, 121.
#[derive(Clone, Copy, Debug, Default)]
pub struct SkippedRevisions;

const FIRST: u64 = 100;
const LEAP: u64 = 7;

/// As it is shown. Before the first commit is where every store begins.
fn shown(revision: Revision) -> Revision {
    match revision {
        Revision::ZERO => Revision::ZERO,
        Revision(number) => Revision(FIRST + LEAP * number),
    }
}

/// The last one that is shown at or before this.
fn meant(shown: Revision) -> Revision {
    Revision(shown.0.saturating_sub(FIRST) / LEAP)
}

fn shown_record(record: Record) -> Record {
    Record {
        revision: shown(record.revision),
        ..record
    }
}

fn shown_error(error: StoreError) -> StoreError {
    match error {
        StoreError::Compacted { asked, oldest } => StoreError::Compacted {
            asked,
            oldest: shown(oldest),
        },
        StoreError::Conflict(mut conflict) => {
            if let Found::At(revision) = &mut conflict.found {
                *revision = shown(*revision);
            }
            StoreError::Conflict(conflict)
        }
        // The other errors carry no revision of a record.
        other => other,
    }
}

#[async_trait]
impl Override for SkippedRevisions {
    async fn get(&self, at: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        Ok(at.store.get(id).await?.map(shown_record))
    }
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        let page = at.store.list(query).await?;
        Ok(Page {
            records: page.records.into_iter().map(shown_record).collect(),
            revision: shown(page.revision),
            ..page
        })
    }
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let mut meaning = transaction.clone();
        for check in &mut meaning.checks {
            if let Check::At(_, revision) = check {
                // One in between is no record's.
                let is_shown = shown(meant(*revision)) == *revision;
                *revision = if is_shown {
                    meant(*revision)
                } else {
                    Revision(u64::MAX)
                };
            }
        }
        let answer = at.store.commit(&meaning).await;
        answer
            .map(shown)
            .map_err(|error| as_asked(shown_error(error), transaction))
    }
    async fn head(&self, at: CallContext<'_>) -> Result<Revision> {
        Ok(shown(at.store.head().await?))
    }
    async fn can_watch(
        &self,
        at: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<()> {
        let head = shown(at.store.head().await?);
        if after > head {
            return Err(StoreError::Ahead { asked: after, head });
        }
        let watch = at.store.watch(meant(after), interest.clone()).await;
        watch.map(|_| ()).map_err(shown_error)
    }
    async fn batch(
        &self,
        at: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        let mut batch = next_batch(at, meant(after), interest)
            .await
            .map_err(shown_error)?;
        batch.through = shown(batch.through);
        for commit in &mut batch.commits {
            commit.revision = shown(commit.revision);
            for change in &mut commit.changes {
                let (Change::Put(record) | Change::Deleted(record)) = change;
                record.revision = shown(record.revision);
            }
        }
        Ok(batch)
    }
    async fn compact(&self, at: CallContext<'_>, through: Revision) -> Result<()> {
        at.store.compact(meant(through)).await
    }
}

/// The check in a conflict as it was asked, not as it was meant.
fn as_asked(mut error: StoreError, transaction: &Transaction) -> StoreError {
    if let StoreError::Conflict(conflict) = &mut error {
        if let fleetwright_store::Part::Check(position) = conflict.part {
            if let Some(check) = transaction.checks.get(position) {
                conflict.check = check.clone();
            }
        }
    }
    error
}
