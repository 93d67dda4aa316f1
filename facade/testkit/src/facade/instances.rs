//! Creating, changing, reading and awaiting instances.

use fleetwright_compute::{
    ComputeError,
    instance::{ConditionKind, Instance, InstanceId},
    service::InstanceView,
};
use fleetwright_identity::{Allocation, Amounts, QuotaKind};
use fleetwright_region::{
    ids::NetworkId,
    server::{Phase, ServerView},
};
use fleetwright_store::{Store as _, Transaction, Versioned};

use super::TestFacade;
use crate::{advance_until, new_instance, operator, project_user, record_id, tenant};

impl TestFacade {
    /// Requests an instance of `tenant(1, 1)`.
    pub async fn try_create(
        &self,
        network: NetworkId,
        called: &str,
    ) -> Result<InstanceView, ComputeError> {
        let alice = project_user(tenant(1, 1));
        let new = new_instance(network, called);
        self.instances.create(&alice, &new).await
    }

    /// Creates an instance of `tenant(1, 1)`.
    pub async fn create(&self, network: NetworkId, called: &str) -> InstanceView {
        self.try_create(network, called).await.unwrap()
    }

    /// Inserts the record of an instance of `tenant(1, 1)` with its allocation, without the checks of the service.
    pub async fn insert(&self, instance: Instance) -> InstanceId {
        let (id, key) = (instance.id, instance.id.key().unwrap());
        let amounts = Amounts::new().with(QuotaKind::servers(), 1);
        let (organization, project) = tenant(1, 1);
        let allocation = Allocation::new(self.table.id(&key), organization, project, amounts);
        let build = || async {
            let transaction = self.table.create(Transaction::new(), &key, &instance)?;
            Ok::<_, ComputeError>(self.ledger.charge(transaction, &allocation).await?)
        };
        self.ledger.commit(organization, build).await.unwrap();
        id
    }

    /// Changes the desired state of an instance, without the checks of the service.
    pub async fn edit(&self, id: InstanceId, change: impl Fn(&mut Instance)) {
        loop {
            let read = self.record(id).await.unwrap();
            let mut instance = read.value.clone();
            change(&mut instance);
            instance.generation += 1;
            let replaced = self.table.replace(Transaction::new(), &read, &instance);
            match self.store.commit(&replaced.unwrap()).await {
                Ok(_) => return,
                Err(error) => assert!(error.conflict().is_some(), "{error}"),
            }
        }
    }

    /// Requests the deletion of an instance of `tenant(1, 1)`.
    pub async fn delete(&self, id: InstanceId) {
        let alice = project_user(tenant(1, 1));
        self.instances.delete(&alice, id).await.unwrap();
    }

    /// Deletes the only instance, of `tenant(1, 1)`, and waits until nothing of it is left. The loops must run meanwhile.
    pub async fn delete_completely(&self, id: InstanceId) {
        self.delete(id).await;
        self.until_gone(id).await;
        self.assert_empty().await;
    }

    /// Reads an instance as an operator.
    pub async fn read(&self, id: InstanceId) -> InstanceView {
        self.instances.read(&operator(), id).await.unwrap()
    }

    /// Reads an instance's record.
    pub async fn record(&self, id: InstanceId) -> Option<Versioned<Instance>> {
        self.table.get(&id.key().unwrap()).await.unwrap()
    }

    /// Reads an instance's server.
    pub async fn server(&self, id: InstanceId) -> Option<ServerView> {
        self.servers.read(&operator(), id.server()).await.ok()
    }

    /// Deletes an instance's server directly, as an operator can.
    pub async fn delete_server(&self, id: InstanceId) {
        let deleted = self.servers.delete(&operator(), id.server()).await;
        deleted.unwrap();
    }

    /// Waits until an instance fulfils a condition, and returns it. The loops must run meanwhile.
    pub async fn until(&self, id: InstanceId, condition: impl Fn(&Instance) -> bool) -> Instance {
        let read = async || {
            let found = self.record(id).await.unwrap().value;
            Some(found).filter(&condition)
        };
        advance_until("an instance's condition", read).await
    }

    /// Waits until an instance has a condition, and returns it. The loops must run meanwhile.
    pub async fn until_condition(&self, id: InstanceId, kind: ConditionKind) -> Instance {
        self.until(id, |instance| has_condition(instance, kind))
            .await
    }

    /// Waits until an instance's record is gone. The loops must run meanwhile.
    pub async fn until_gone(&self, id: InstanceId) {
        let read = async || self.record(id).await.is_none().then_some(());
        advance_until("the end of an instance", read).await;
    }

    /// What an instance uses of its quota.
    pub async fn allocation(&self, id: InstanceId) -> Option<Allocation> {
        let id = record_id("instance", &id);
        self.ledger.allocation(&id).await.unwrap()
    }

    /// The amounts of an instance's allocation, which must exist.
    pub async fn allocated(&self, id: InstanceId) -> Amounts {
        self.allocation(id).await.unwrap().amounts
    }
}

/// Whether an instance is running and everything requested is applied.
pub fn is_running(instance: &Instance) -> bool {
    instance.status.phase == Phase::Running && is_applied(instance)
}

/// Whether everything requested of an instance is applied.
pub fn is_applied(instance: &Instance) -> bool {
    instance.status.observed_generation == instance.generation
}

/// Whether an instance has a condition.
pub fn has_condition(instance: &Instance, kind: ConditionKind) -> bool {
    instance.status.condition(kind).is_some()
}
