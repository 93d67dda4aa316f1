//! Fixtures that several tests share.
#![allow(dead_code, reason = "no test binary uses all helpers")]
#![allow(clippy::needless_pass_by_value, reason = "callers pass owned names")]

pub(crate) mod flaky;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use fleetwright_identity::{
    Account, Actor, ActorName, Allocation, Amounts, AuditLog, Content, Ledger, LedgerError,
    NewOrganization, NewProject, NewRoleBinding, OrganizationId, Permission, Principal, ProjectId,
    QuotaKind, QuotaKinds, Resource, RoleName, Roles, Scope, Tenancy, TenantName, schema,
};
use fleetwright_runtime::{clock::SystemClock, entropy::OsEntropy};
use fleetwright_store::{
    Check, Interest, MemoryStore, Page, Query, Record, RecordId, Result as Stored, Revision,
    Schema, Store, Transaction, Watch,
};
use serde_json::json;
use uuid::Uuid;

pub(crate) fn organization(number: u128) -> OrganizationId {
    OrganizationId::new(Uuid::from_u128(number))
}

pub(crate) fn project(number: u128) -> ProjectId {
    ProjectId::new(Uuid::from_u128(100 + number))
}

pub(crate) fn instance(name: impl ToString) -> RecordId {
    RecordId::new("instance", name.to_string()).unwrap()
}

pub(crate) fn amounts(servers: u64, gpus: u64) -> Amounts {
    Amounts::new()
        .with(QuotaKind::servers(), servers)
        .with(QuotaKind::gpus(), gpus)
}

pub(crate) fn allocation(name: impl ToString, amounts: Amounts) -> Allocation {
    Allocation::new(instance(name), organization(1), project(1), amounts)
}

/// A schema with this crate's kinds and a kind that is paid for.
pub(crate) fn whole_schema() -> Schema {
    let instance = Schema::builder()
        .kind("instance")
        .index("project", ["/organization", "/project"]);
    schema(instance).build().unwrap()
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(whole_schema()))
}

pub(crate) fn ledger(store: &Arc<dyn Store>) -> Ledger {
    Ledger::new(Arc::clone(store), Arc::new(QuotaKinds::standard())).unwrap()
}

pub(crate) fn operator() -> Principal {
    Principal::service(ActorName::new("operator").unwrap(), Permission::all())
}

/// Returns the use of servers and GPUs.
pub(crate) async fn used(ledger: &Ledger, account: Account) -> Amounts {
    let quota = ledger.quota(&operator(), &account).await.unwrap();
    let lines = quota.lines.into_iter().map(|line| (line.kind, line.used));
    lines.collect::<Amounts>().without_zeros()
}

/// Creates an instance with its allocation.
pub(crate) async fn create(
    ledger: &Ledger,
    allocation: &Allocation,
) -> Result<Revision, LedgerError> {
    let build = || async {
        let created = Transaction::new().create(allocation.pays_for.clone(), json!({}));
        ledger.charge(created, allocation).await
    };
    ledger.commit(allocation.organization, build).await
}

/// Deletes an instance with its allocation.
pub(crate) async fn delete(
    ledger: &Ledger,
    allocation: &Allocation,
) -> Result<Revision, LedgerError> {
    let build = || async {
        let deletion = Transaction::new().delete(allocation.pays_for.clone());
        ledger.release(deletion, &allocation.pays_for).await
    };
    ledger.commit(allocation.organization, build).await
}

/// Changes the allocation of an instance.
pub(crate) async fn resize(
    ledger: &Ledger,
    allocation: &Allocation,
) -> Result<Revision, LedgerError> {
    let build = || async {
        let transaction = Transaction::new().check(Check::Exists(allocation.pays_for.clone()));
        let recharge = ledger.recharge(transaction, &allocation.pays_for, &allocation.amounts);
        Ok(recharge.await?.transaction)
    };
    ledger.commit(allocation.organization, build).await
}

/// A store that yields a pseudo-random number of times before each call, so that tasks interleave.
#[derive(Debug)]
pub(crate) struct Mixed {
    store: Arc<dyn Store>,
    random: AtomicU64,
    commits: AtomicU64,
}

impl Mixed {
    pub(crate) fn over(store: Arc<dyn Store>, seed: u64) -> Arc<dyn Store> {
        Self::counting(store, seed)
    }

    /// Like [`over`](Self::over), as a type that counts commits.
    pub(crate) fn counting(store: Arc<dyn Store>, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            store,
            random: AtomicU64::new(seed),
            commits: AtomicU64::new(0),
        })
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    async fn yield_randomly(&self) {
        // A linear congruential generator; its upper bits are the random ones.
        let next = |x: u64| {
            x.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407)
        };
        let before = self
            .random
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |x| Some(next(x)));
        let turns = (before.unwrap_or_default() >> 32) % 4;
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait::async_trait]
impl Store for Mixed {
    fn schema(&self) -> &Schema {
        self.store.schema()
    }
    async fn get(&self, id: &RecordId) -> Stored<Option<Record>> {
        self.yield_randomly().await;
        self.store.get(id).await
    }
    async fn list(&self, query: &Query) -> Stored<Page> {
        self.yield_randomly().await;
        self.store.list(query).await
    }
    async fn commit(&self, transaction: &Transaction) -> Stored<Revision> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.yield_randomly().await;
        self.store.commit(transaction).await
    }
    async fn head(&self) -> Stored<Revision> {
        self.store.head().await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Stored<Watch> {
        self.store.watch(after, interest).await
    }
    async fn compact(&self, through: Revision) -> Stored<()> {
        self.store.compact(through).await
    }
}

const INSTANCES: Content = Content {
    kind: "instance",
    index: "project",
    resource: Resource::Instances,
};

/// The service of organizations and projects, which can contain instances.
pub(crate) fn tenancy(store: &Arc<dyn Store>) -> Tenancy {
    tenancy_of(store, Roles::built_in())
}

/// The same, with other roles.
pub(crate) fn tenancy_of(store: &Arc<dyn Store>, roles: Roles) -> Tenancy {
    let store = Arc::clone(store);
    let audit = AuditLog::new(store.clone(), Arc::new(SystemClock), Arc::new(OsEntropy)).unwrap();
    let tenancy = Tenancy::new(store, Arc::new(roles), audit).unwrap();
    tenancy.with_contents([INSTANCES]).unwrap()
}

pub(crate) fn name(text: impl AsRef<str>) -> TenantName {
    TenantName::new(text).unwrap()
}

pub(crate) fn user(text: impl AsRef<str>) -> Actor {
    Actor::User(ActorName::new(text).unwrap())
}

pub(crate) fn role(text: &str) -> RoleName {
    RoleName::new(text).unwrap()
}

pub(crate) async fn organization_named(tenancy: &Tenancy, text: &str) -> OrganizationId {
    let new = NewOrganization::new(name(text));
    tenancy
        .create_organization(&operator(), &new)
        .await
        .unwrap()
        .id
}

pub(crate) async fn project_named(
    tenancy: &Tenancy,
    organization: OrganizationId,
    text: &str,
) -> ProjectId {
    let new = NewProject::new(organization, name(text));
    tenancy.create_project(&operator(), &new).await.unwrap().id
}

/// Binds a role to a user and returns the user's principal.
pub(crate) async fn member(tenancy: &Tenancy, called: &str, with: &str, scope: Scope) -> Principal {
    let new = NewRoleBinding::new(user(called), role(with), scope);
    tenancy.bind(&operator(), &new).await.unwrap();
    tenancy.principal(&user(called)).await.unwrap().principal
}

/// A store that counts reads and the records that they return.
#[derive(Debug)]
pub(crate) struct Counted {
    store: Arc<dyn Store>,
    calls: AtomicU64,
    records: AtomicU64,
}

impl Counted {
    pub(crate) fn over(store: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(store),
            calls: AtomicU64::new(0),
            records: AtomicU64::new(0),
        })
    }

    pub(crate) fn reset(&self) {
        self.calls.store(0, Ordering::Relaxed);
        self.records.store(0, Ordering::Relaxed);
    }

    pub(crate) fn calls_and_records(&self) -> (u64, u64) {
        let [calls, records] = [&self.calls, &self.records].map(|one| one.load(Ordering::Relaxed));
        (calls, records)
    }

    fn count(&self, records: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(records as u64, Ordering::Relaxed);
    }
}

#[async_trait::async_trait]
impl Store for Counted {
    fn schema(&self) -> &Schema {
        self.store.schema()
    }
    async fn get(&self, id: &RecordId) -> Stored<Option<Record>> {
        let found = self.store.get(id).await?;
        self.count(usize::from(found.is_some()));
        Ok(found)
    }
    async fn list(&self, query: &Query) -> Stored<Page> {
        let page = self.store.list(query).await?;
        self.count(page.records.len());
        Ok(page)
    }
    async fn commit(&self, transaction: &Transaction) -> Stored<Revision> {
        self.store.commit(transaction).await
    }
    async fn head(&self) -> Stored<Revision> {
        self.store.head().await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Stored<Watch> {
        self.store.watch(after, interest).await
    }
    async fn compact(&self, through: Revision) -> Stored<()> {
        self.store.compact(through).await
    }
}
