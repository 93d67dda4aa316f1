//! A store that changes what one part reads or writes.

use async_trait::async_trait;
use fleetwright_compute::schema::INSTANCE_KIND;
use fleetwright_region::schema::{NETWORK_KIND, SERVER_KIND};
use fleetwright_store::{
    Check, Interest, MemoryStore, Page, Query, Record, RecordId, Result, Revision, Schema, Store,
    Transaction, Watch, Write,
};
use serde_json::Value;

use super::Mistake;
use crate::{
    rules::RecordChange,
    store::{Actor, FaultyStore},
};

/// One part's handle of the store, between that part and the injected faults.
#[derive(Debug)]
pub struct MistakenStore {
    /// The handle with the faults, which also checks the rules.
    pub inner: FaultyStore,
    /// What it does wrong.
    pub mistake: Mistake,
}

/// What becomes of a transaction.
enum Altered {
    /// It is committed as it is now.
    Commit(Transaction),
    /// Nothing is written, and the caller gets `Ok`.
    Drop,
    /// It is committed in two parts.
    Split(Transaction, Transaction),
}

impl MistakenStore {
    fn is(&self, actor: Actor, mistake: Mistake) -> bool {
        (self.inner.actor, self.mistake) == (actor, mistake)
    }

    fn oracle(&self) -> &MemoryStore {
        &self.inner.inner
    }

    /// Changes what is read.
    async fn misread(&self, record: &mut Record) {
        let kind = record.id.kind.as_str();
        let value = &mut record.value;
        if kind == INSTANCE_KIND && self.is(Actor::InstanceController, Mistake::ConsentAssumed) {
            set(value, "/consent", "destroy".into());
        }
        if kind == INSTANCE_KIND
            && self.is(Actor::InstanceController, Mistake::MissingServerRecreated)
        {
            let server = RecordId::new(SERVER_KIND, record.id.key.as_str());
            let found = match &server {
                Ok(id) => self.oracle().get(id).await.ok().flatten(),
                Err(_) => None,
            };
            if found.is_none() && is_null(value, "/deletion") {
                set(value, "/status/server", Value::Null);
            }
        }
        let stopped = kind == SERVER_KIND && value["intent"]["power"] == "stopped";
        let replaced = value["launch"]["incarnation"].as_u64() > Some(1);
        if stopped && replaced && self.is(Actor::ServerController, Mistake::StopLostOnReplace) {
            set(value, "/intent/power", "running".into());
        }
        let launching = kind == SERVER_KIND && is_null(value, "/machine");
        if launching && self.is(Actor::Monitor, Mistake::TerminatePendingLaunches) {
            let launch = value["launch"]["incarnation"].as_u64().unwrap_or(0);
            set(value, "/launch/incarnation", (launch + 1).into());
        }
    }

    /// Changes what is written.
    async fn miswrite(&self, mut transaction: Transaction) -> Altered {
        let changes = self.inner.changes_of(&transaction).await;
        let find = |kind: &str| changes.iter().find(|change| change.kind() == kind);
        let actor = self.inner.actor;
        if let Some(server) = find(SERVER_KIND) {
            let changed = server.before.is_some() && server.after.is_some();
            let launch = self.is(Actor::ServerController, Mistake::TokenNotStored)
                && server.differs("/launch/incarnation");
            let applied = self.is(Actor::InstanceController, Mistake::DesiredStateNotApplied)
                && changed
                && !server.is("/intent/power", "deleted");
            if launch || applied {
                return Altered::Drop;
            }
            if self.is(Actor::ServerController, Mistake::StopLostOnReplace) && changed {
                // The controller decides by what it misread. The record keeps what was requested.
                keep(&mut transaction, server, "/intent");
            }
        }
        let requested = find("image").is_some_and(|image| image.before.is_none());
        let removed = find(NETWORK_KIND).is_some_and(|network| network.after.is_none());
        if (requested && self.mistake == Mistake::ImageNotCharged)
            || (removed && self.mistake == Mistake::NetworkReleaseForgotten)
        {
            transaction.writes.retain(|write| !is_charge(write.id()));
            transaction.checks.retain(|check| !is_about_charge(check));
        }
        let Some(instance) = find(INSTANCE_KIND) else {
            return Altered::Commit(transaction);
        };
        if self.is(Actor::NetworkController, Mistake::NetworkInstancesKept) {
            return Altered::Drop;
        }
        let (before, after) = (instance.before.as_ref(), instance.after.as_ref());
        match (actor, before, after) {
            (Actor::Service, None, Some(_)) if self.charges_apart() => {
                let (paid, rest) = split(transaction);
                return Altered::Split(paid, rest);
            }
            (Actor::Service, Some(_), Some(_)) if self.mistake == Mistake::RechargeForgotten => {
                transaction = split(transaction).1;
            }
            (Actor::InstanceController, Some(_), None)
                if self.mistake == Mistake::ReleaseForgotten =>
            {
                transaction = split(transaction).1;
            }
            (Actor::Service | Actor::InstanceController, Some(before), Some(_)) => {
                self.miswrite_instance(instance, before, &mut transaction);
            }
            _ => {}
        }
        Altered::Commit(transaction)
    }

    fn charges_apart(&self) -> bool {
        self.mistake == Mistake::ChargeOutsideTransaction
    }

    /// Changes an instance that is replaced.
    fn miswrite_instance(
        &self,
        instance: &RecordChange,
        before: &Value,
        transaction: &mut Transaction,
    ) {
        match (self.inner.actor, self.mistake) {
            (Actor::Service, Mistake::ConsentKept) if before["consent"] == "destroy" => {
                keep(transaction, instance, "/consent");
            }
            // It is assumed for the server alone.
            (Actor::InstanceController, Mistake::ConsentAssumed) => {
                keep(transaction, instance, "/consent");
            }
            (Actor::Service, Mistake::EventLost) => keep(transaction, instance, "/events"),
            (Actor::Service, Mistake::GenerationNotRaised) => {
                keep(transaction, instance, "/generation");
            }
            (Actor::Service, Mistake::StopNotStored) if instance.is("/intent/power", "stopped") => {
                keep(transaction, instance, "/intent/power");
            }
            (Actor::InstanceController, Mistake::ObservedEarly) => {
                let Some(value) = value_of(transaction, instance) else {
                    return;
                };
                let passed = value["status"]["applied_generation"] == value["generation"];
                if passed && is_null(value, "/deletion") {
                    let generation = value["generation"].clone();
                    set(value, "/status/observed_generation", generation);
                }
            }
            _ => {}
        }
    }
}

/// What charges, and everything else.
fn split(transaction: Transaction) -> (Transaction, Transaction) {
    let charges = |id: &RecordId| id.kind.as_str() != INSTANCE_KIND;
    let (paid, writes) = transaction
        .writes
        .into_iter()
        .partition(|write| charges(write.id()));
    let (paid_checks, checks) = transaction.checks.into_iter().partition(is_about_charge);
    let (mut charge, mut rest) = (Transaction::new(), Transaction::new());
    (charge.checks, charge.writes) = (paid_checks, paid);
    (rest.checks, rest.writes) = (checks, writes);
    (charge, rest)
}

/// Whether a record is an allocation or an account.
fn is_charge(id: &RecordId) -> bool {
    ["allocation", "quota-account"].contains(&id.kind.as_str())
}

/// Whether a check is about an allocation or an account.
fn is_about_charge(check: &Check) -> bool {
    match check {
        Check::Absent(id) | Check::Exists(id) | Check::At(id, _) => is_charge(id),
        Check::Unclaimed(_) => false,
    }
}

/// The value that a transaction writes to a record.
fn value_of<'t>(transaction: &'t mut Transaction, record: &RecordChange) -> Option<&'t mut Value> {
    let mut writes = transaction.writes.iter_mut();
    writes.find_map(|write| match write {
        Write::Put(id, value) if *id == record.id => Some(&mut **value),
        Write::Put(..) | Write::Delete(_) => None,
    })
}

/// Leaves a part of a record as it was before the transaction.
fn keep(transaction: &mut Transaction, record: &RecordChange, path: &str) {
    let before = record.before.as_ref().and_then(|value| value.pointer(path));
    let before = before.cloned().unwrap_or_default();
    if let Some(value) = value_of(transaction, record) {
        set(value, path, before);
    }
}

fn set(value: &mut Value, path: &str, to: Value) {
    if let Some(part) = value.pointer_mut(path) {
        *part = to;
    }
}

fn is_null(value: &Value, path: &str) -> bool {
    value.pointer(path).is_none_or(Value::is_null)
}

#[async_trait]
impl Store for MistakenStore {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        let mut found = self.inner.get(id).await?;
        if let Some(record) = &mut found {
            self.misread(record).await;
        }
        Ok(found)
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        let mut page = self.inner.list(query).await?;
        for record in &mut page.records {
            self.misread(record).await;
        }
        Ok(page)
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        match self.miswrite(transaction.clone()).await {
            Altered::Commit(transaction) => self.inner.commit(&transaction).await,
            Altered::Drop => self.oracle().head().await,
            Altered::Split(first, second) => {
                self.inner.commit(&first).await?;
                self.inner.commit(&second).await
            }
        }
    }

    async fn head(&self) -> Result<Revision> {
        self.inner.head().await
    }

    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        self.inner.watch(after, interest).await
    }

    async fn compact(&self, through: Revision) -> Result<()> {
        self.inner.compact(through).await
    }
}
