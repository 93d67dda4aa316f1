//! The audit log: who did what to which record, and when. It outlives the records that it is about.
//!
//! Owns the entries and their retention. Entries are only ever added: [`AuditLog::add`] puts one into the transaction of the change that
//! it describes, so that neither exists without the other. No call changes an entry, and only [`AuditLog::prune`] removes entries, those
//! that are older than their organization's [retention](AuditRetention). An entry never contains user data, keys or other secrets: it has
//! no field for them.

mod entry;
mod list;
mod retention;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use fleetwright_runtime::{
    clock::Clock,
    entropy::{Entropy, EntropyError},
};
use fleetwright_store::{Invalid, Store, StoreError, Table, Transaction};

pub use entry::{AuditEntry, AuditEvent, AuditOutcome};
pub use list::{AuditError, AuditQuery};
pub use retention::{AuditRetention, MIN_RETENTION};

use crate::Refused;
pub(crate) use entry::Stored;
pub(crate) use retention::PruneDate;

/// The audit log of a store whose schema contains the kinds of [`schema`](crate::schema()). Clones share everything.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_identity::{
///     ActorName, AuditEvent, AuditLog, AuditQuery, Permission, Principal, Resource, Scope, Verb, schema,
/// };
/// use fleetwright_runtime::{clock::SystemClock, entropy::OsEntropy};
/// use fleetwright_store::{MemoryStore, RecordId, Schema, Store as _, Transaction};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new(schema(Schema::builder().kind("flavor")).build()?));
/// let log = AuditLog::new(store.clone(), Arc::new(SystemClock), Arc::new(OsEntropy))?;
/// let olga = Principal::service(ActorName::new("olga")?, Permission::all());
///
/// // The change and its entry are one transaction.
/// let create = Transaction::new().create(RecordId::new("flavor", "small")?, json!({}));
/// let event = AuditEvent::new(olga.actor(), Verb::Create, Resource::Flavors, "small", Scope::Global);
/// store.commit(&log.add(create, &event)?).await?;
///
/// let page = log.list(&olga, &AuditQuery::within(Scope::Global)).await?;
/// assert_eq!(page.items[0].to_string().split_once(' ').unwrap().1, "service olga create flavors small: done");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AuditLog {
    store: Arc<dyn Store>,
    entries: Table<Stored>,
    prune_dates: Table<PruneDate>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    retention: Arc<AuditRetention>,
    /// Orders the entries of this process that have the same date.
    added: Arc<AtomicU64>,
}

impl AuditLog {
    /// Opens the log of a store, with the default [retention](AuditRetention).
    ///
    /// # Errors
    ///
    /// The store's schema lacks a kind of [`schema`](crate::schema()).
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            entries: Table::new(Arc::clone(&store))?,
            prune_dates: Table::new(Arc::clone(&store))?,
            store,
            clock,
            entropy,
            retention: Arc::new(AuditRetention::default()),
            added: Arc::new(AtomicU64::new(0)),
        })
    }

    /// Sets how long entries are kept.
    #[must_use]
    pub fn with_retention(mut self, retention: AuditRetention) -> Self {
        self.retention = Arc::new(retention);
        self
    }

    /// Adds the entry of a change to the transaction of that change, with the current date.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if no random bytes are available for the entry's key. The change must then not be committed.
    pub fn add(
        &self,
        transaction: Transaction,
        event: &AuditEvent,
    ) -> Result<Transaction, StoreError> {
        let at = self.clock.now();
        let mut random = [0; 8];
        self.entropy.fill(&mut random).map_err(unavailable)?;
        let number = self.added.fetch_add(1, Ordering::Relaxed);
        let key = entry::key(at, number, u64::from_be_bytes(random))?;
        // The key is new: no entry is ever replaced.
        self.entries.create(transaction, &key, &event.at(at))
    }

    /// Commits an entry on its own: for what was shown and for what was refused, where no record changes.
    ///
    /// # Errors
    ///
    /// The store failed. What the entry is about must then not be shown.
    pub async fn record(&self, event: &AuditEvent) -> Result<(), StoreError> {
        self.store
            .commit(&self.add(Transaction::new(), event)?)
            .await?;
        Ok(())
    }

    /// Records that a call on an existing record was refused to a caller who may read it. The caller gets the refusal in any case, so a
    /// failure is only logged.
    pub async fn record_refusal(
        &self,
        refused: &Refused,
        record: impl ToString,
        name: Option<&str>,
    ) {
        let event = AuditEvent::refused(refused, record, name);
        if let Err(error) = self.record(&event).await {
            tracing::warn!(%error, "a refused call is not in the audit log");
        }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &*self.entropy
    }
}

fn unavailable(error: EntropyError) -> StoreError {
    StoreError::Unavailable {
        reason: "the audit log cannot create an entry".to_owned(),
        source: Some(Arc::new(error)),
    }
}
