//! A store here and a ledger there, a clock by hand, and a process that dies where it is told to.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use fleetwright_identity::{
    Actor, ActorName, Allocation, Amounts, QuotaKinds,
    saga::{
        LocalError, LocalStep, Operation, Outcome, RemoteDouble, RemoteError, RemoteLedger, Saga,
        SagaError, Sagas, Ticket,
    },
};
use fleetwright_store::{
    Interest, Kind, Page, Query, Record, RecordId, Result as Stored, Revision, Schema, Store,
    StoreExt, Transaction, Watch,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::allocation;

/// What outlives a process.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) remote: RemoteDouble,
    pub(crate) seconds: Arc<AtomicU64>,
}

impl World {
    pub(crate) fn over(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            remote: RemoteDouble::new(Arc::new(QuotaKinds::standard())),
            seconds: Arc::new(AtomicU64::new(1_000_000)),
        }
    }

    /// A process that nothing happens to.
    pub(crate) fn process(&self) -> Sagas {
        self.process_with(Arc::clone(&self.store), Arc::new(self.remote.clone()))
    }

    pub(crate) fn process_with(
        &self,
        store: Arc<dyn Store>,
        remote: Arc<dyn RemoteLedger>,
    ) -> Sagas {
        let kinds = Arc::new(QuotaKinds::standard());
        let local = Arc::new(Instances(Arc::clone(&store)));
        let seconds = Arc::clone(&self.seconds);
        Sagas::new(store, kinds, remote, local)
            .unwrap()
            .clock(move || {
                let seconds = seconds.load(Ordering::Relaxed);
                SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
            })
    }

    /// What an instance costs, if it is there.
    pub(crate) async fn cost(&self, id: &RecordId) -> Option<Amounts> {
        let record = self.store.get(id).await.unwrap()?;
        Some(serde_json::from_value(record.value["cost"].clone()).unwrap())
    }

    pub(crate) async fn open(&self) -> usize {
        let query = Query::all(Kind::new("saga").unwrap());
        self.store.list_all(&query).await.unwrap().records.len()
    }

    /// Lets time pass and sweeps, until no saga is left.
    pub(crate) async fn settle(&self) {
        for _ in 0..60 {
            if self.open().await == 0 {
                return;
            }
            self.seconds.fetch_add(301, Ordering::Relaxed);
            let sweep = self.process().sweep().await.unwrap();
            assert!(
                sweep.failed.is_empty() && sweep.damaged.is_empty(),
                "{sweep:?}"
            );
        }
        assert_eq!(self.open().await, 0, "a saga does not end");
    }

    /// There is an allocation there exactly if there is an instance here, and of the same size.
    pub(crate) async fn is_whole(&self, id: &RecordId, told: &str) {
        let there = self
            .remote
            .allocation(id)
            .map(|there| there.amounts.normal());
        assert_eq!(there, self.cost(id).await, "{id} {told}");
    }
}

/// An instance as the store has it.
pub(crate) fn record(cost: &Amounts) -> Value {
    json!({ "cost": cost.clone().normal() })
}

pub(crate) fn actor() -> Actor {
    Actor::User(ActorName::new("ada").unwrap())
}

/// Makes and changes instances. What is asked for in the payload decides whether it wants to.
#[derive(Debug)]
pub(crate) struct Instances(Arc<dyn Store>);

#[async_trait]
impl LocalStep for Instances {
    async fn transaction(&self, saga: &Saga) -> Result<Transaction, LocalError> {
        if saga.payload["refuse"] == json!(true) {
            return Err(LocalError::Refused("the network is gone".to_owned()));
        }
        assert_ne!(saga.payload["panic"], json!(true), "the step is broken");
        let later = |error: fleetwright_store::StoreError| LocalError::Later(error.to_string());
        let id = saga.pays_for().clone();
        let found = self.0.get(&id).await.map_err(later)?;
        match (&saga.operation, found) {
            (Operation::Create, None) => {
                Ok(Transaction::new().create(id, record(&saga.allocation.amounts)))
            }
            (Operation::Create, Some(_)) => Err(LocalError::Refused("it is there".to_owned())),
            (Operation::Update { after }, Some(found)) => {
                Ok(Transaction::new().replace(id, found.revision, record(after)))
            }
            (Operation::Update { .. }, None) => Err(LocalError::Refused("it is gone".to_owned())),
            (Operation::Release, _) => Err(LocalError::Refused("nothing to do".to_owned())),
        }
    }
}

/// What a user asks for.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Create(Amounts),
    Update(Amounts),
    Delete,
}

/// Begins a saga and drives it; nothing if one is under way, or if there is nothing to update or delete.
pub(crate) async fn carry_out(
    sagas: &Sagas,
    store: &Arc<dyn Store>,
    name: &str,
    ask: &Ask,
    payload: Value,
) -> Result<Option<Outcome>, SagaError> {
    let found = store.get(&super::instance(name)).await?;
    let cost = |found: &Record| serde_json::from_value(found.value["cost"].clone()).unwrap();
    let begin = match (ask, &found) {
        (Ask::Create(amounts), _) => {
            let paid = allocation(name, amounts.clone());
            sagas.begin_create(Transaction::new(), &actor(), &paid, payload)?
        }
        (Ask::Update(after), Some(found)) => {
            let unchanged = fleetwright_store::Check::At(found.id.clone(), found.revision);
            let paid = allocation(name, cost(found));
            let begin = Transaction::new().check(unchanged);
            sagas.begin_update(begin, &actor(), &paid, after, payload)?
        }
        (Ask::Delete, Some(found)) => {
            let paid: Allocation = allocation(name, cost(found));
            let begin = Transaction::new().remove(found.id.clone(), found.revision);
            sagas.begin_release(begin, &actor(), &paid)?
        }
        (Ask::Update(_) | Ask::Delete, None) => return Ok(None),
    };
    match store.commit(&begin).await {
        Ok(_) => sagas.drive(&super::instance(name)).await.map(Some),
        Err(error) if error.conflict().is_some() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Where a process dies: at an effect, by number, just before it or just after it.
#[derive(Debug, Default)]
pub(crate) struct Death {
    at: Option<(usize, When)>,
    effects: AtomicUsize,
    died: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    After,
}

impl Death {
    pub(crate) fn at(at: Option<(usize, When)>) -> Arc<Self> {
        Arc::new(Self {
            at,
            ..Self::default()
        })
    }

    pub(crate) fn effects(&self) -> usize {
        self.effects.load(Ordering::Relaxed)
    }

    /// Runs until the process is done or dead.
    pub(crate) async fn or<T>(&self, life: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.died.notified() => None,
            done = life => Some(done),
        }
    }

    async fn around<T>(&self, effect: impl Future<Output = T>) -> T {
        let number = self.effects.fetch_add(1, Ordering::Relaxed);
        self.here(number, When::Before).await;
        let done = effect.await;
        self.here(number, When::After).await;
        done
    }

    async fn here(&self, number: usize, when: When) {
        if self.at == Some((number, when)) {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

/// Something of a process that dies.
#[derive(Debug)]
pub(crate) struct Mortal<T> {
    pub(crate) inner: T,
    pub(crate) death: Arc<Death>,
}

#[async_trait]
impl Store for Mortal<Arc<dyn Store>> {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }
    async fn get(&self, id: &RecordId) -> Stored<Option<Record>> {
        self.inner.get(id).await
    }
    async fn list(&self, query: &Query) -> Stored<Page> {
        self.inner.list(query).await
    }
    async fn commit(&self, transaction: &Transaction) -> Stored<Revision> {
        self.death.around(self.inner.commit(transaction)).await
    }
    async fn head(&self) -> Stored<Revision> {
        self.inner.head().await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Stored<Watch> {
        self.inner.watch(after, interest).await
    }
    async fn compact(&self, through: Revision) -> Stored<()> {
        self.inner.compact(through).await
    }
}

#[async_trait]
impl RemoteLedger for Mortal<RemoteDouble> {
    async fn allocate(&self, ticket: &Ticket, allocation: &Allocation) -> Result<(), RemoteError> {
        self.death
            .around(self.inner.allocate(ticket, allocation))
            .await
    }
    async fn update(&self, ticket: &Ticket, allocation: &Allocation) -> Result<(), RemoteError> {
        self.death
            .around(self.inner.update(ticket, allocation))
            .await
    }
    async fn release(&self, ticket: &Ticket, pays_for: &RecordId) -> Result<(), RemoteError> {
        self.death
            .around(self.inner.release(ticket, pays_for))
            .await
    }
}
