//! A watch as a process sees it: what it is shown may fail to come, or come to an end.

use std::sync::Arc;

use async_trait::async_trait;
use fleetwright_store::{Batch, Commit, Result, Revision, Source, StoreError, Watch};
use tokio::sync::Mutex;

use super::unavailable;
use crate::{
    fault::{Kind, Site},
    journal::Journal,
};

/// Hands out the commits of another watch, one by one.
pub(super) struct FaultySource {
    inner: Mutex<(Watch, Option<Commit>)>,
    site: Site,
    journal: Arc<Journal>,
}

impl FaultySource {
    pub(super) fn new(watch: Watch, site: Site, journal: Arc<Journal>) -> Self {
        Self {
            inner: Mutex::new((watch, None)),
            site,
            journal,
        }
    }
}

#[async_trait]
impl Source for FaultySource {
    async fn batch(&self, after: Revision) -> Result<Batch> {
        let mut inner = self.inner.lock().await;
        let (watch, held) = &mut *inner;
        // What failed to come is kept for who asks again.
        let commit = match held.take() {
            Some(commit) => commit,
            None => watch.next().await?,
        };
        let kind = self.journal.strike(self.site);
        if kind.is_some() {
            *held = Some(commit.clone());
        }
        match kind {
            Some(Kind::CrashBefore | Kind::CrashAfter) => self.journal.die().await,
            Some(Kind::Error | Kind::LostReply) => return Err(unavailable()),
            // It is slower than the store remembers.
            Some(Kind::LostRequest) => {
                return Err(StoreError::Compacted {
                    asked: after,
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
