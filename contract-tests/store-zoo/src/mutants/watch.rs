//! Watches with gaps, doubles and silence.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;

use super::{Mutant, mutant};
use crate::{CallContext, Override, overrides::next_batch};
use fleetwright_store::{
    Batch, Change, Interest, Record, Result, Revision, Store as _, StoreError, Transaction,
};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<LosesDeletes>("WATCH-01", "does not show deletes"),
    mutant::<ForgetsTheDeleted>("WATCH-01", "does not say how a deleted record was"),
    mutant::<ShowsTheLatest>("WATCH-01", "shows every record as it is now"),
    mutant::<NeverWakes>("WATCH-02", "does not wake who waits"),
    mutant::<BeginsAtInsteadOfAfter>("WATCH-03", "shows the last commit again"),
    mutant::<ShowsAllKinds>("WATCH-04", "does not look at the interest"),
    mutant::<StandsStill>(
        "WATCH-04",
        "stays where it is while nothing of interest comes",
    ),
    mutant::<KnowsNoKinds>("WATCH-04", "waits for ever for a kind that is not there"),
    mutant::<SkipsTheCompacted>(
        "WATCH-05",
        "begins behind what is compacted and says nothing",
    ),
    mutant::<CompactsRecords>("WATCH-05", "cannot compact by parts"),
    mutant::<WaitsForTheFuture>("WATCH-06", "takes a revision of the future for now"),
    mutant::<OwnCommitsOnly>("WATCH-07", "shows the commits of its own handle"),
    mutant::<TakesOutBeforeHandingOver>("WATCH-08", "loses what a dropped call had taken"),
    mutant::<LosesSome>("WATCH-09", "loses one of ten commits"),
    mutant::<DoublesSome>("WATCH-09", "shows one of ten commits twice"),
    mutant::<SkipsWhenSlow>("WATCH-10", "goes on behind a gap and says nothing"),
];

/// The commits are changed on their way out.
macro_rules! changes_batches {
    ($name:ident, $change:expr) => {
        #[derive(Default)]
        struct $name;
        #[async_trait]
        impl Override for $name {
            async fn batch(
                &self,
                at: CallContext<'_>,
                after: Revision,
                of: &Interest,
            ) -> Result<Batch> {
                let mut batch = next_batch(at, after, of).await?;
                let change = $change;
                change(&mut batch);
                Ok(batch)
            }
        }
    };
}

changes_batches!(LosesDeletes, |batch: &mut Batch| {
    for commit in &mut batch.commits {
        commit
            .changes
            .retain(|change| matches!(change, Change::Put(_)));
    }
});
changes_batches!(ForgetsTheDeleted, |batch: &mut Batch| {
    for change in batch
        .commits
        .iter_mut()
        .flat_map(|commit| &mut commit.changes)
    {
        if let Change::Deleted(record) = change {
            record.value = serde_json::Value::Null;
        }
    }
});
changes_batches!(LosesSome, |batch: &mut Batch| {
    batch.commits.retain(|commit| commit.revision.0 % 10 != 7);
});
changes_batches!(DoublesSome, |batch: &mut Batch| {
    if batch.through.0 % 10 == 7 {
        batch.commits.extend(batch.commits.clone());
    }
});

#[derive(Default)]
struct ShowsTheLatest;
#[async_trait]
impl Override for ShowsTheLatest {
    async fn batch(&self, at: CallContext<'_>, after: Revision, of: &Interest) -> Result<Batch> {
        let mut batch = next_batch(at, after, of).await?;
        for change in batch
            .commits
            .iter_mut()
            .flat_map(|commit| &mut commit.changes)
        {
            if let Some(now) = at.store.get(change.id()).await? {
                *change = Change::Put(Record { ..now });
            }
        }
        Ok(batch)
    }
}

#[derive(Default)]
struct NeverWakes;
#[async_trait]
impl Override for NeverWakes {
    async fn batch(&self, at: CallContext<'_>, after: Revision, of: &Interest) -> Result<Batch> {
        if at.store.head().await? <= after {
            std::future::pending::<()>().await;
        }
        next_batch(at, after, of).await
    }
}

#[derive(Default)]
struct BeginsAtInsteadOfAfter(Mutex<BTreeMap<Revision, ()>>);
#[async_trait]
impl Override for BeginsAtInsteadOfAfter {
    async fn batch(&self, at: CallContext<'_>, after: Revision, of: &Interest) -> Result<Batch> {
        let is_first = {
            let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            begun.insert(after, ()).is_none()
        };
        let from = if is_first {
            after.0.saturating_sub(1)
        } else {
            after.0
        };
        next_batch(at, Revision(from), of).await
    }
}

#[derive(Default)]
struct ShowsAllKinds;
#[async_trait]
impl Override for ShowsAllKinds {
    async fn batch(&self, at: CallContext<'_>, after: Revision, _: &Interest) -> Result<Batch> {
        next_batch(at, after, &Interest::all()).await
    }
}

#[derive(Default)]
struct StandsStill;
#[async_trait]
impl Override for StandsStill {
    async fn batch(&self, at: CallContext<'_>, after: Revision, of: &Interest) -> Result<Batch> {
        let mut through = after;
        loop {
            let batch = next_batch(at, through, of).await?;
            if !batch.commits.is_empty() {
                return Ok(batch);
            }
            through = batch.through;
        }
    }
}

#[derive(Default)]
struct KnowsNoKinds;
#[async_trait]
impl Override for KnowsNoKinds {
    async fn can_watch(&self, at: CallContext<'_>, after: Revision, _: &Interest) -> Result<()> {
        at.store.watch(after, Interest::all()).await.map(|_| ())
    }
}

/// The oldest revision to watch from, if this one is too old.
async fn oldest(at: CallContext<'_>, after: Revision) -> Revision {
    match at.store.watch(after, Interest::all()).await {
        Err(StoreError::Compacted { oldest, .. }) => oldest,
        Ok(_) | Err(_) => after,
    }
}

#[derive(Default)]
struct SkipsTheCompacted;
#[async_trait]
impl Override for SkipsTheCompacted {
    async fn can_watch(&self, _: CallContext<'_>, _: Revision, _: &Interest) -> Result<()> {
        Ok(())
    }
    async fn batch(&self, at: CallContext<'_>, after: Revision, of: &Interest) -> Result<Batch> {
        next_batch(at, oldest(at, after).await, of).await
    }
}

#[derive(Default)]
struct CompactsRecords;
#[async_trait]
impl Override for CompactsRecords {
    async fn compact(&self, at: CallContext<'_>, _: Revision) -> Result<()> {
        at.store.compact(Revision(u64::MAX)).await
    }
}

#[derive(Default)]
struct WaitsForTheFuture;
#[async_trait]
impl Override for WaitsForTheFuture {
    async fn can_watch(&self, at: CallContext<'_>, after: Revision, _: &Interest) -> Result<()> {
        let after = after.min(at.store.head().await?);
        at.store.watch(after, Interest::all()).await.map(|_| ())
    }
}

#[derive(Default)]
struct OwnCommitsOnly(Mutex<BTreeMap<Revision, usize>>);
#[async_trait]
impl Override for OwnCommitsOnly {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let revision = at.store.commit(transaction).await?;
        let mut by = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        by.insert(revision, at.handle);
        Ok(revision)
    }
    async fn batch(&self, at: CallContext<'_>, after: Revision, of: &Interest) -> Result<Batch> {
        let mut batch = next_batch(at, after, of).await?;
        let by = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        batch
            .commits
            .retain(|commit| by.get(&commit.revision) == Some(&at.handle));
        Ok(batch)
    }
}

#[derive(Default)]
struct TakesOutBeforeHandingOver(Mutex<Revision>);
#[async_trait]
impl Override for TakesOutBeforeHandingOver {
    async fn batch(&self, at: CallContext<'_>, _: Revision, of: &Interest) -> Result<Batch> {
        let taken = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = next_batch(at, taken, of).await?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = batch.through;
        tokio::task::yield_now().await;
        Ok(batch)
    }
}

#[derive(Default)]
struct SkipsWhenSlow;
#[async_trait]
impl Override for SkipsWhenSlow {
    async fn batch(&self, at: CallContext<'_>, after: Revision, of: &Interest) -> Result<Batch> {
        next_batch(at, oldest(at, after).await, of).await
    }
}
