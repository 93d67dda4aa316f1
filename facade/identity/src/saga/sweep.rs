//! Taking up what was left: by a crash, by a failure, by a request that was dropped.

use std::{convert::Infallible, panic::AssertUnwindSafe};

use fleetwright_store::{Cursor, IndexName, RecordId, Transaction};
use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::{Outcome, Queue, Saga, SagaError, Sagas};
use crate::{Principal, Resource, Scope, Verb, schema::key_for};

/// How many sagas a sweep drives at once.
const AT_ONCE: usize = 16;

/// What a sweep has found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Sweep {
    /// Sagas that are over.
    pub ended: usize,
    /// Sagas that wait for their next attempt.
    pub waiting: usize,
    /// Sagas that could not be driven, and why. They are due again at once.
    pub failed: Vec<(RecordId, SagaError)>,
    /// Records of sagas that cannot be read: somebody must look at them.
    pub damaged: Vec<RecordId>,
}

impl Sagas {
    /// Sweeps again and again until it is dropped. Errors of the store are told to `report`, and the next sweep is tried.
    pub async fn run(&self, mut report: impl FnMut(&Result<Sweep, SagaError>)) -> Infallible {
        loop {
            report(&self.sweep().await);
            tokio::time::sleep(self.patience.sweep_every).await;
        }
    }

    /// Drives every saga that is due, several at once. One that fails holds up no other.
    pub async fn sweep(&self) -> Result<Sweep, SagaError> {
        let mut sweep = Sweep::default();
        let mut due = Vec::new();
        for queue in [Queue::Waiting, Queue::Stuck] {
            let (found, damaged) = self.due(queue).await?;
            due.extend(found);
            sweep.damaged.extend(damaged);
        }
        let driven = stream::iter(due).map(|id| async move {
            // A local step that panics is its own saga's trouble. What it leaves is stored, as after a crash.
            let answer = AssertUnwindSafe(self.drive(&id)).catch_unwind().await;
            let pays_for = id.clone();
            let interrupted = |_| Err(SagaError::Interrupted { pays_for });
            (answer.unwrap_or_else(interrupted), id)
        });
        let mut driven = driven.buffer_unordered(AT_ONCE);
        while let Some((answer, id)) = driven.next().await {
            match answer {
                Ok(Outcome::Done | Outcome::Undone(_) | Outcome::Ended) => sweep.ended += 1,
                Ok(Outcome::Waiting { .. }) => sweep.waiting += 1,
                Err(error) => sweep.failed.push((id, error)),
            }
        }
        Ok(sweep)
    }

    /// A page of the sagas that have failed so often that somebody should look, those due first in front. The principal
    /// must be permitted to list sagas.
    pub async fn stuck(
        &self,
        principal: &Principal,
        after: Option<Cursor>,
    ) -> Result<(Vec<Saga>, Option<Cursor>), SagaError> {
        principal.may(Verb::List, Resource::Sagas, &Scope::Global)?;
        let mut query = self
            .table
            .by(&IndexName::new("queue")?, Queue::Stuck.as_str());
        query.after = after;
        let page = self.table.list(&query).await?;
        let sagas = page.items.into_iter().map(|item| item.value);
        Ok((sagas.collect(), page.next))
    }

    /// Makes a saga due now, when what was in its way is gone. The principal must be permitted to update sagas. Answers
    /// whether there is such a saga.
    pub async fn wake(
        &self,
        principal: &Principal,
        pays_for: &RecordId,
    ) -> Result<bool, SagaError> {
        principal.may(Verb::Update, Resource::Sagas, &Scope::Global)?;
        let key = key_for(pays_for)?;
        loop {
            let Some(read) = self.table.get(&key).await? else {
                return Ok(false);
            };
            let mut saga = read.value.clone();
            saga.due = 0;
            saga.begun = saga.begun.or(Some(read.revision));
            let write = self.table.replace(Transaction::new(), &read, &saga)?;
            match self.store.commit(&write).await {
                Ok(_) => return Ok(true),
                // It has moved on meanwhile.
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What is due of a queue. The index has it in order, so what is not due is not read but for one page's rest.
    async fn due(&self, queue: Queue) -> Result<(Vec<RecordId>, Vec<RecordId>), SagaError> {
        let now = u64::try_from(self.now().as_millis()).unwrap_or(u64::MAX);
        let mut query = self.table.by(&IndexName::new("queue")?, queue.as_str());
        let (mut due, mut damaged) = (Vec::new(), Vec::new());
        loop {
            let page = self.table.list(&query).await?;
            damaged.extend(page.damaged.into_iter().map(|damaged| damaged.id));
            for item in page.items {
                if item.value.due > now {
                    return Ok((due, damaged));
                }
                due.push(item.value.pays_for().clone());
            }
            match page.next {
                Some(cursor) => query.after = Some(cursor),
                None => return Ok((due, damaged)),
            }
        }
    }
}
