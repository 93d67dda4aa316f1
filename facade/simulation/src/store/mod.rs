//! The store as a process sees it: each commit, each read and each change that is shown is a step at which something may go wrong.

mod site;
mod watch;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright_store::{
    Interest, MemoryStore, Page, Query, Record, RecordId, Result, Revision, Schema, Store,
    StoreError, Transaction, Watch,
};

use crate::{
    fault::{Kind, Site},
    journal::Journal,
    rules::{Rules, Written},
};
use watch::FaultySource;

/// Who reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The service of instances.
    Service,
    /// An operator, past the service.
    Operator,
    /// The catalog.
    Catalog,
    /// The controller of instances.
    Instances,
    /// The keeper of networks.
    Networks,
    /// The region's controller.
    Region,
    /// The region's monitor.
    Monitor,
    /// The region's maker of images.
    Images,
}

impl Actor {
    /// What its reads are.
    fn reads(self) -> Option<Site> {
        match self {
            Self::Service => Some(Site::ReadService),
            Self::Instances => Some(Site::ReadInstances),
            Self::Networks => Some(Site::ReadNetworks),
            Self::Region | Self::Monitor | Self::Images => Some(Site::ReadRegion),
            // What it reads when a process begins would not let it begin.
            Self::Catalog | Self::Operator => None,
        }
    }

    /// What its watches are.
    fn watches(self) -> Option<Site> {
        match self {
            Self::Instances => Some(Site::WatchInstances),
            Self::Networks => Some(Site::WatchNetworks),
            Self::Region | Self::Images | Self::Catalog => Some(Site::WatchRegion),
            Self::Service | Self::Operator | Self::Monitor => None,
        }
    }
}

/// A handle of one part of one process.
#[derive(Debug)]
pub struct FaultyStore {
    /// Who reads and writes.
    pub actor: Actor,
    /// The store that outlives the process.
    pub inner: MemoryStore,
    /// Where steps are counted.
    pub journal: Arc<Journal>,
    /// What must hold of what is written.
    pub rules: Rules,
}

impl FaultyStore {
    /// What goes wrong with a read.
    async fn read(&self) -> Result<()> {
        self.journal.pause(Duration::ZERO).await;
        let Some(site) = self.actor.reads() else {
            return Ok(());
        };
        match self.journal.strike(site) {
            Some(Kind::CrashBefore | Kind::CrashAfter) => {
                self.journal.die().await;
                Ok(())
            }
            Some(Kind::Error | Kind::LostRequest | Kind::LostReply) => Err(unavailable()),
            None => Ok(()),
        }
    }

    /// How everything that a transaction writes was before it.
    pub(crate) async fn before(&self, transaction: &Transaction) -> Vec<Written> {
        let mut written = Vec::new();
        for write in &transaction.writes {
            let before = self.inner.get(write.id()).await.ok().flatten();
            written.push(Written::new(write, before.map(|record| record.value)));
        }
        written
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable {
        reason: "injected".to_owned(),
        source: None,
    }
}

fn lost() -> StoreError {
    StoreError::UnknownOutcome {
        reason: "injected".to_owned(),
        source: None,
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.read().await?;
        self.inner.get(id).await
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        self.read().await?;
        self.inner.list(query).await
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        self.journal.pause(Duration::from_millis(30)).await;
        let written = self.before(transaction).await;
        let site = site::of(self.actor, &written);
        let fault = self.journal.strike(site);
        match fault {
            Some(Kind::CrashBefore) => self.journal.die().await,
            Some(Kind::Error) => return Err(unavailable()),
            Some(Kind::LostRequest) => return Err(lost()),
            Some(Kind::CrashAfter | Kind::LostReply) | None => {}
        }
        let answer = self.inner.commit(transaction).await;
        if answer.is_ok() {
            self.rules.written(self.actor, site, &written).await;
        }
        match fault {
            Some(Kind::CrashAfter) => self.journal.die().await,
            Some(Kind::LostReply) => return Err(lost()),
            Some(Kind::CrashBefore | Kind::Error | Kind::LostRequest) | None => {}
        }
        answer
    }

    async fn head(&self) -> Result<Revision> {
        self.inner.head().await
    }

    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        let inner = self.inner.watch(after, interest).await?;
        let Some(site) = self.actor.watches() else {
            return Ok(inner);
        };
        let source = FaultySource::new(inner, site, Arc::clone(&self.journal));
        Ok(Watch::new(source, after))
    }

    async fn compact(&self, through: Revision) -> Result<()> {
        self.inner.compact(through).await
    }
}
