//! A watch as a process uses it: an event may fail to arrive, and the watch may end.

use std::sync::Arc;

use async_trait::async_trait;
use fleetwright_store::{Batch, Commit, Result, Revision, Source, StoreError, Watch};
use tokio::sync::Mutex;

use super::unavailable;
use crate::{
    fault::{FaultKind, FaultPoint},
    journal::Journal,
    life::Life,
};

/// Passes on the commits of another watch, one by one.
pub(super) struct FaultySource {
    inner: Mutex<(Watch, Option<Commit>)>,
    point: FaultPoint,
    life: Arc<Life>,
    journal: Arc<Journal>,
}

impl FaultySource {
    pub(super) fn new(
        watch: Watch,
        point: FaultPoint,
        life: Arc<Life>,
        journal: Arc<Journal>,
    ) -> Self {
        Self {
            inner: Mutex::new((watch, None)),
            point,
            life,
            journal,
        }
    }
}

#[async_trait]
impl Source for FaultySource {
    async fn batch(&self, after: Revision) -> Result<Batch> {
        let mut inner = self.inner.lock().await;
        let (watch, held) = &mut *inner;
        // A commit that was not delivered is kept for the next call.
        let commit = match held.take() {
            Some(commit) => commit,
            None => watch.next().await?,
        };
        let kind = self.journal.next_fault(self.point);
        if kind.is_some() {
            *held = Some(commit.clone());
        }
        match kind {
            Some(FaultKind::CrashBefore | FaultKind::CrashAfter) => {
                self.journal.crash(&self.life).await;
            }
            Some(FaultKind::Error | FaultKind::LostResponse) => return Err(unavailable()),
            // The watch is behind what the store still keeps.
            Some(FaultKind::LostRequest) => {
                return Err(StoreError::Compacted {
                    requested: after,
                    oldest: commit.revision,
                });
            }
            None => {}
        }
        Ok(Batch {
            through: commit.revision,
            commits: vec![commit],
        })
    }
}
