//! Where the ledger is another service: sagas that are stored before anything is done, go on after a crash at any point,
//! and end with the record here and its allocation there, or with neither.

mod double;
mod drive;
mod patience;
mod record;
mod remote;
mod sweep;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use fleetwright_store::{Check, Invalid, RecordId, Store, StoreError, Table, Transaction};
use serde_json::Value;

pub use double::{Fault, RemoteDouble};
pub use drive::Outcome;
pub use patience::Patience;
pub use record::{Operation, Phase, Queue, Reason, Saga};
pub use remote::{RemoteError, RemoteLedger, Ticket};
pub use sweep::Sweep;

use crate::{Actor, Allocation, Amounts, QuotaKinds, Refused, UnknownKind, schema::key_for};

/// What the embedding program does between the two services: it makes or changes the record that is paid for.
#[async_trait]
pub trait LocalStep: Send + Sync + fmt::Debug {
    /// What is to be written, judged by what is stored now. It is called again after a crash, or when somebody else was
    /// faster, and its writes are committed at most once, together with the saga's own.
    async fn transaction(&self, saga: &Saga) -> Result<Transaction, LocalError>;
}

/// Why the local step does not go ahead. The reasons are stored and shown: no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalError {
    /// It never will: the saga is undone.
    #[error("{0}")]
    Refused(String),
    /// Not now: it is tried again.
    #[error("{0}")]
    Later(String),
}

/// The sagas over a store, whose schema has what [`schema`](crate::schema()) adds.
///
/// # Flow
///
/// [`begin_create`](Self::begin_create) and its siblings add a saga to the caller's transaction. Once that is committed,
/// [`run_to_end`](Self::run_to_end) drives it in a task of its own, which goes on when the request is dropped.
/// [`run`](Self::run) takes up what a crash or a failure has left.
///
/// # Guarantees
///
/// - One saga at a time for a record: a second one conflicts; see [`is_busy`](Self::is_busy).
/// - The local step's writes are committed once or never. In the end the remote allocation is what the record here costs.
/// - What undoes is tried until it succeeds, with growing pauses. One that fails holds up no other, and is shown by
///   [`stuck`](Self::stuck).
/// - Any number of processes may drive the same saga.
///
/// # Caveats
///
/// Tickets are revisions of the store. A store that was restored from an older copy begins again with lower ones: the
/// remote ledger refuses them as superseded, and the sagas show up as stuck instead of doing harm.
#[derive(Clone)]
pub struct Sagas {
    store: Arc<dyn Store>,
    table: Table<Saga>,
    kinds: Arc<QuotaKinds>,
    remote: Arc<dyn RemoteLedger>,
    local: Arc<dyn LocalStep>,
    patience: Patience,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Sagas {
    /// Fails if the store's schema lacks what [`schema`](crate::schema()) adds.
    pub fn new(
        store: Arc<dyn Store>,
        kinds: Arc<QuotaKinds>,
        remote: Arc<dyn RemoteLedger>,
        local: Arc<dyn LocalStep>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            table: Table::new(Arc::clone(&store))?,
            store,
            kinds,
            remote,
            local,
            patience: Patience::default(),
            clock: Arc::new(SystemTime::now),
        })
    }

    /// With other pauses.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// With another clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Adds to a transaction that a record is to be made by the local step, and paid for. The record must not be there: a
    /// duplicate is a conflict before anything is charged.
    pub fn begin_create(
        &self,
        transaction: Transaction,
        by: &Actor,
        allocation: &Allocation,
        payload: Value,
    ) -> Result<Transaction, SagaError> {
        // Undoing releases whatever is allocated for the record, so nothing may be from before.
        let transaction = transaction.check(Check::Absent(allocation.pays_for.clone()));
        self.begin(transaction, by, allocation, Operation::Create, payload)
    }

    /// Adds to a transaction that a record is to be changed by the local step, and what it costs from then on.
    /// `allocation` is what it costs until then; check in the same transaction that the record is as it was when that was
    /// read.
    pub fn begin_update(
        &self,
        transaction: Transaction,
        by: &Actor,
        allocation: &Allocation,
        after: &Amounts,
        payload: Value,
    ) -> Result<Transaction, SagaError> {
        self.kinds.check_amounts(after)?;
        let after = after.clone().normal();
        let operation = Operation::Update { after };
        let transaction = transaction.check(Check::Exists(allocation.pays_for.clone()));
        self.begin(transaction, by, allocation, operation, payload)
    }

    /// Adds to a transaction, which deletes the record, that the allocation for it is to be released.
    pub fn begin_release(
        &self,
        transaction: Transaction,
        by: &Actor,
        allocation: &Allocation,
    ) -> Result<Transaction, SagaError> {
        self.begin(transaction, by, allocation, Operation::Release, Value::Null)
    }

    /// Whether a transaction failed because a saga for the same record is under way (HTTP 409): later again.
    pub fn is_busy(&self, error: &StoreError) -> bool {
        error
            .conflict()
            .is_some_and(|conflict| match &conflict.check {
                Check::Absent(id) => id.kind == *self.table.kind(),
                Check::Exists(_) | Check::At(..) | Check::Unclaimed(_) => false,
            })
    }

    /// The saga for a record, if one is under way.
    pub async fn saga(&self, pays_for: &RecordId) -> Result<Option<Saga>, SagaError> {
        let found = self.table.get(&key_for(pays_for)?).await?;
        Ok(found.map(|found| found.value))
    }

    fn begin(
        &self,
        transaction: Transaction,
        by: &Actor,
        allocation: &Allocation,
        operation: Operation,
        payload: Value,
    ) -> Result<Transaction, SagaError> {
        self.kinds.check_amounts(&allocation.amounts)?;
        let amounts = allocation.amounts.clone().normal();
        let allocation = Allocation {
            amounts,
            ..allocation.clone()
        };
        let key = key_for(&allocation.pays_for)?;
        let saga = Saga::begin(allocation, operation, by.clone(), payload);
        let saga = saga.due_in(self.now(), self.patience.lease);
        Ok(self.table.create(transaction, &key, &saga)?)
    }

    fn now(&self) -> Duration {
        let since = (self.clock)().duration_since(SystemTime::UNIX_EPOCH);
        // A clock before 1970 is wrong; then everything is due at once.
        since.unwrap_or_default()
    }
}

impl fmt::Debug for Sagas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sagas")
            .field("remote", &self.remote)
            .field("local", &self.local)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// Why a saga was not begun or not driven. If it was begun it is still there, and taken up again.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SagaError {
    /// A kind that is not in the registry.
    #[error(transparent)]
    UnknownKind(#[from] UnknownKind),
    /// The principal may not look at sagas, or not wake them (HTTP 403).
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The task that drove it has ended before it did: the runtime shuts down, or a step panicked.
    #[error("the saga for {pays_for} was interrupted: it is taken up by the next sweep")]
    Interrupted {
        /// What it is about.
        pays_for: RecordId,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Invalid> for SagaError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}
