//! The store as a process uses it: each commit, read and watch event is a step at which a fault may
//! be injected.

mod point;
mod watch;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright_store::{
    Interest, MemoryStore, Page, Query, Record, RecordId, Result, Revision, Schema, Store,
    StoreError, Transaction, Watch,
};

use crate::{
    fault::{FaultKind, FaultPoint},
    journal::Journal,
    life::Life,
    rules::{RecordChange, Rules},
    scenario::UserDataAtRest,
};
use watch::FaultySource;

/// The part of the process that reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The instance service.
    Service,
    /// An operator who bypasses the service.
    Operator,
    /// The catalog.
    Catalog,
    /// The instance controller.
    InstanceController,
    /// The network controller.
    NetworkController,
    /// The server controller.
    ServerController,
    /// The monitor.
    Monitor,
    /// The snapshot controller.
    SnapshotController,
}

impl Actor {
    /// Returns the fault point of its reads.
    fn reads(self) -> FaultPoint {
        match self {
            Self::Service => FaultPoint::ReadService,
            Self::InstanceController => FaultPoint::ReadInstances,
            Self::NetworkController => FaultPoint::ReadNetworks,
            Self::ServerController | Self::Monitor | Self::SnapshotController => {
                FaultPoint::ReadRegion
            }
            Self::Catalog => FaultPoint::ReadCatalog,
            Self::Operator => FaultPoint::ReadOperator,
        }
    }

    /// Returns the fault point of its watch events.
    fn watches(self) -> Option<FaultPoint> {
        match self {
            Self::InstanceController => Some(FaultPoint::WatchInstances),
            Self::NetworkController => Some(FaultPoint::WatchNetworks),
            Self::ServerController | Self::SnapshotController => Some(FaultPoint::WatchRegion),
            Self::Catalog => Some(FaultPoint::WatchCatalog),
            Self::Service | Self::Operator | Self::Monitor => None,
        }
    }
}

/// The handle of one part of one process.
#[derive(Debug)]
pub struct FaultyStore {
    /// The part of the process that reads and writes.
    pub actor: Actor,
    /// The store that outlives the process.
    pub inner: MemoryStore,
    /// The process.
    pub life: Arc<Life>,
    /// Counts steps and injects faults.
    pub journal: Arc<Journal>,
    /// The rules that every commit must keep.
    pub rules: Rules,
}

impl FaultyStore {
    /// Injects a fault into a read.
    async fn before_read(&self, point: FaultPoint) -> Result<()> {
        self.journal.pause(&self.life, Duration::ZERO).await;
        match self.journal.next_fault(point) {
            Some(FaultKind::CrashBefore | FaultKind::CrashAfter) => {
                self.journal.crash(&self.life).await;
                Ok(())
            }
            Some(FaultKind::Error | FaultKind::LostRequest | FaultKind::LostResponse) => {
                Err(unavailable())
            }
            None => Ok(()),
        }
    }

    /// Reads the values after a commit, with user data in clear.
    async fn open(&self, changes: &mut [RecordChange]) {
        if self.rules.user_data == UserDataAtRest::Clear {
            return;
        }
        for change in changes.iter_mut().filter(|change| change.after.is_some()) {
            let after = self.rules.store.get(&change.id).await.ok().flatten();
            change.after = after.map(|record| record.value);
        }
    }

    /// Returns what a transaction changes, with the values before it. What is sealed in the transaction is sealed in the values after it.
    pub(crate) async fn changes_of(&self, transaction: &Transaction) -> Vec<RecordChange> {
        let mut changes = Vec::new();
        for write in &transaction.writes {
            let before = self.rules.store.get(write.id()).await.ok().flatten();
            changes.push(RecordChange::new(write, before.map(|record| record.value)));
        }
        changes
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable {
        reason: "injected".to_owned(),
        source: None,
    }
}

fn unknown_outcome() -> StoreError {
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
        self.before_read(self.actor.reads()).await?;
        self.inner.get(id).await
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        self.before_read(self.actor.reads()).await?;
        self.inner.list(query).await
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        self.journal
            .pause(&self.life, Duration::from_millis(30))
            .await;
        let mut changes = self.changes_of(transaction).await;
        let point = point::of_transaction(self.actor, &changes);
        let fault = self.journal.next_fault(point);
        match fault {
            Some(FaultKind::CrashBefore) => self.journal.crash(&self.life).await,
            Some(FaultKind::Error) => return Err(unavailable()),
            Some(FaultKind::LostRequest) => return Err(unknown_outcome()),
            Some(FaultKind::CrashAfter | FaultKind::LostResponse) | None => {}
        }
        let result = self.inner.commit(transaction).await;
        if result.is_ok() {
            self.rules.check_sealed(transaction);
            self.open(&mut changes).await;
            self.rules
                .check_commit(self.life.number, self.actor, point, &changes)
                .await;
        }
        match fault {
            Some(FaultKind::CrashAfter) => self.journal.crash(&self.life).await,
            Some(FaultKind::LostResponse) => return Err(unknown_outcome()),
            Some(FaultKind::CrashBefore | FaultKind::Error | FaultKind::LostRequest) | None => {}
        }
        result
    }

    async fn head(&self) -> Result<Revision> {
        self.before_read(self.actor.reads()).await?;
        self.inner.head().await
    }

    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        self.before_read(FaultPoint::OpenWatch).await?;
        let inner = self.inner.watch(after, interest).await?;
        let Some(point) = self.actor.watches() else {
            return Ok(inner);
        };
        let source = FaultySource::new(
            inner,
            point,
            Arc::clone(&self.life),
            Arc::clone(&self.journal),
        );
        Ok(Watch::new(source, after))
    }

    async fn compact(&self, through: Revision) -> Result<()> {
        self.inner.compact(through).await
    }
}
