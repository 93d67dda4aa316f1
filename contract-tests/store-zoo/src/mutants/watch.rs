//! WATCH: watches that lose, repeat or delay commits.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use fleetwright_store::{
    Batch, Change, Interest, Record, Result, Revision, Store as _, StoreError, Transaction,
};

use super::{Mutant, mutant};
use crate::{CallContext, Override, overrides::next_batch};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<LosesDeletes>("WATCH-01", "does not return deletes"),
    mutant::<DropsDeletedValue>("WATCH-01", "does not return the value of a deleted record"),
    mutant::<ReturnsNewestValue>("WATCH-01", "returns the newest value in every change"),
    mutant::<NeverWakes>("WATCH-02", "does not wake a waiting watch"),
    mutant::<StartsAtInsteadOfAfter>("WATCH-03", "returns the last commit again"),
    mutant::<ReturnsAllKinds>("WATCH-04", "ignores the interest"),
    mutant::<StaysInPlace>("WATCH-04", "does not advance over commits of other kinds"),
    mutant::<AcceptsUnknownKinds>("WATCH-04", "waits forever for a kind that is not declared"),
    mutant::<SkipsCompacted>(
        "WATCH-05",
        "starts after the compacted commits without an error",
    ),
    mutant::<CompactsEverything>("WATCH-05", "compacts everything, whatever the revision"),
    mutant::<AcceptsFutureRevision>("WATCH-06", "treats a future revision as the current one"),
    mutant::<OwnCommitsOnly>("WATCH-07", "returns only the commits of its own handle"),
    mutant::<AdvancesBeforeReturning>("WATCH-08", "loses the commit of a dropped call"),
    mutant::<LosesSome>("WATCH-09", "loses one of ten commits"),
    mutant::<RepeatsSome>("WATCH-09", "returns one of ten commits twice"),
    mutant::<SkipsWhenSlow>("WATCH-10", "continues after a gap without an error"),
];

/// Declares a store that changes each batch before a watch returns it.
macro_rules! changes_batches {
    ($name:ident, $change:expr) => {
        #[derive(Default)]
        struct $name;
        #[async_trait]
        impl Override for $name {
            async fn batch(
                &self,
                call: CallContext<'_>,
                after: Revision,
                interest: &Interest,
            ) -> Result<Batch> {
                let mut batch = next_batch(call, after, interest).await?;
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
changes_batches!(DropsDeletedValue, |batch: &mut Batch| {
    for change in batch
        .commits
        .iter_mut()
        .flat_map(|commit| &mut commit.changes)
    {
        if let Change::Deleted(record) = change {
            record.value = serde_json::Value::Null.into();
        }
    }
});
changes_batches!(LosesSome, |batch: &mut Batch| {
    batch.commits.retain(|commit| commit.revision.0 % 10 != 7);
});
changes_batches!(RepeatsSome, |batch: &mut Batch| {
    if batch.through.0 % 10 == 7 {
        batch.commits.extend(batch.commits.clone());
    }
});

#[derive(Default)]
struct ReturnsNewestValue;
#[async_trait]
impl Override for ReturnsNewestValue {
    async fn batch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        let mut batch = next_batch(call, after, interest).await?;
        for change in batch
            .commits
            .iter_mut()
            .flat_map(|commit| &mut commit.changes)
        {
            if let Some(now) = call.store.get(change.id()).await? {
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
    async fn batch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        if call.store.head().await? <= after {
            std::future::pending::<()>().await;
        }
        next_batch(call, after, interest).await
    }
}

#[derive(Default)]
struct StartsAtInsteadOfAfter(Mutex<BTreeMap<Revision, ()>>);
#[async_trait]
impl Override for StartsAtInsteadOfAfter {
    async fn batch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        let is_first_call = {
            let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            started.insert(after, ()).is_none()
        };
        let from = if is_first_call {
            after.0.saturating_sub(1)
        } else {
            after.0
        };
        next_batch(call, Revision(from), interest).await
    }
}

#[derive(Default)]
struct ReturnsAllKinds;
#[async_trait]
impl Override for ReturnsAllKinds {
    async fn batch(&self, call: CallContext<'_>, after: Revision, _: &Interest) -> Result<Batch> {
        next_batch(call, after, &Interest::all()).await
    }
}

#[derive(Default)]
struct StaysInPlace;
#[async_trait]
impl Override for StaysInPlace {
    async fn batch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        let mut through = after;
        loop {
            let batch = next_batch(call, through, interest).await?;
            if !batch.commits.is_empty() {
                return Ok(batch);
            }
            through = batch.through;
        }
    }
}

#[derive(Default)]
struct AcceptsUnknownKinds;
#[async_trait]
impl Override for AcceptsUnknownKinds {
    async fn can_watch(&self, call: CallContext<'_>, after: Revision, _: &Interest) -> Result<()> {
        call.store.watch(after, Interest::all()).await.map(|_| ())
    }
}

/// Returns the revision, or the oldest one to watch from if it is compacted.
async fn oldest(call: CallContext<'_>, after: Revision) -> Revision {
    match call.store.watch(after, Interest::all()).await {
        Err(StoreError::Compacted { oldest, .. }) => oldest,
        Ok(_) | Err(_) => after,
    }
}

#[derive(Default)]
struct SkipsCompacted;
#[async_trait]
impl Override for SkipsCompacted {
    async fn can_watch(&self, _: CallContext<'_>, _: Revision, _: &Interest) -> Result<()> {
        Ok(())
    }
    async fn batch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        next_batch(call, oldest(call, after).await, interest).await
    }
}

#[derive(Default)]
struct CompactsEverything;
#[async_trait]
impl Override for CompactsEverything {
    async fn compact(&self, call: CallContext<'_>, _: Revision) -> Result<()> {
        call.store.compact(Revision(u64::MAX)).await
    }
}

#[derive(Default)]
struct AcceptsFutureRevision;
#[async_trait]
impl Override for AcceptsFutureRevision {
    async fn can_watch(&self, call: CallContext<'_>, after: Revision, _: &Interest) -> Result<()> {
        let after = after.min(call.store.head().await?);
        call.store.watch(after, Interest::all()).await.map(|_| ())
    }
}

#[derive(Default)]
struct OwnCommitsOnly(Mutex<BTreeMap<Revision, usize>>);
#[async_trait]
impl Override for OwnCommitsOnly {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let revision = call.store.commit(transaction).await?;
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handles.insert(revision, call.handle);
        Ok(revision)
    }
    async fn batch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        let mut batch = next_batch(call, after, interest).await?;
        let handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        batch
            .commits
            .retain(|commit| handles.get(&commit.revision) == Some(&call.handle));
        Ok(batch)
    }
}

#[derive(Default)]
struct AdvancesBeforeReturning(Mutex<Revision>);
#[async_trait]
impl Override for AdvancesBeforeReturning {
    async fn batch(
        &self,
        call: CallContext<'_>,
        _: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        let position = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = next_batch(call, position, interest).await?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = batch.through;
        tokio::task::yield_now().await;
        Ok(batch)
    }
}

#[derive(Default)]
struct SkipsWhenSlow;
#[async_trait]
impl Override for SkipsWhenSlow {
    async fn batch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        next_batch(call, oldest(call, after).await, interest).await
    }
}
