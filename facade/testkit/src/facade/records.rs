//! Records as the store has them: changed, counted and checked without a service.

use fleetwright_compute::instance::InstanceId;
use fleetwright_region::ids::NetworkId;
use fleetwright_store::{Kind, Query, Store as _, StoreExt as _, Transaction};
use serde_json::{Value, json};

use super::TestFacade;
use crate::{name, north, record_id, tenant};

impl TestFacade {
    /// Changes a record directly in the store.
    pub async fn patch(&self, kind: &str, key: &str, change: impl FnOnce(&mut Value)) {
        let id = record_id(kind, &key);
        let mut record = self.store.get(&id).await.unwrap().unwrap();
        change(&mut record.value);
        let transaction = Transaction::new().replace(id, record.revision, record.value);
        self.store.commit(&transaction).await.unwrap();
    }

    /// Deletes a record directly in the store.
    pub async fn remove(&self, kind: &str, key: &str) {
        let transaction = Transaction::new().delete(record_id(kind, &key));
        self.store.commit(&transaction).await.unwrap();
    }

    /// Inserts an instance named `broken` whose record cannot be read, and returns its id.
    pub async fn insert_unreadable(&self, network: NetworkId) -> InstanceId {
        let id = InstanceId::derive(network, &name("broken"));
        let (organization, project) = tenant(1, 1);
        let unreadable = json!({
            "network": network, "name": "broken", "organization": organization, "project": project,
            "region": north(), "spec": "nonsense",
        });
        let written = Transaction::new().create(record_id("instance", &id), unreadable);
        self.store.commit(&written).await.unwrap();
        id
    }

    /// How many records of a kind exist. Of allocations, those of instances.
    pub async fn count(&self, kind: &str) -> usize {
        if kind == "allocation" {
            return self.count_allocations("instance").await;
        }
        let query = Query::all(Kind::new(kind).unwrap());
        self.store.list_all(&query).await.unwrap().records.len()
    }

    /// How many records of a kind are charged.
    pub async fn count_allocations(&self, charged: &str) -> usize {
        let query = Query::all(Kind::new("allocation").unwrap());
        let all = self.store.list_all(&query).await.unwrap().records;
        let prefix = format!("{charged}/");
        let of_kind = all
            .iter()
            .filter(|one| one.id.key.as_str().starts_with(&prefix));
        of_kind.count()
    }

    /// Checks that no instance, server, key or allocation is left, and no machine.
    pub async fn assert_empty(&self) {
        for kind in ["instance", "server", "allocation", "server-key"] {
            assert_eq!(self.count(kind).await, 0, "{kind}");
        }
        self.assert_balanced(0).await;
        let left = self.cloud.oracle().leftovers();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Checks that there are this many instances, each with its allocation, and that the ledger's totals are their sum.
    pub async fn assert_balanced(&self, instances: usize) {
        let audit = self.ledger.audit(tenant(1, 1).0).await.unwrap();
        assert!(audit.differences.is_empty(), "{audit:?}");
        assert_eq!(self.count_allocations("instance").await, instances);
        assert_eq!(self.count("instance").await, instances);
    }
}
