//! A façade with tenants, on either store.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use fleetwright_compute::prelude::*;
use fleetwright_facade_testkit::{CATALOG, MAPPING, operator, principals::create_tenant, tenant};
use fleetwright_identity::Defaults;
use fleetwright_memory::{MemoryCloud, Timing};
use fleetwright_store_sqlite::{SqliteOptions, SqliteStore};
use futures_util::{StreamExt as _, stream};
use tempfile::TempDir;

/// Where the records are kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    Memory,
    Sqlite,
}

impl Kept {
    pub(super) const ALL: [Self; 2] = [Self::Memory, Self::Sqlite];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory store",
            Self::Sqlite => "SQLite",
        }
    }
}

/// A façade, its tenants with one network each, and a cloud whose machines boot at once.
pub(super) struct World {
    pub(super) facade: Facade,
    pub(super) principal: Principal,
    networks: Vec<((OrganizationId, ProjectId), NetworkId)>,
    created: AtomicUsize,
    /// Removed at the end.
    pub(super) folder: TempDir,
}

impl World {
    /// Builds a façade with this many tenants. No controller runs.
    pub(super) async fn new(kept: Kept, tenants: usize) -> Arc<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let schema = Facade::schema().expect("a schema");
        let store: Arc<dyn Store> = match kept {
            Kept::Memory => Arc::new(MemoryStore::new(schema)),
            Kept::Sqlite => {
                let path = folder.path().join("fleet.db");
                let opened = SqliteStore::open_with(path, schema, SqliteOptions::default());
                Arc::new(opened.await.expect("a store"))
            }
        };
        let cloud = MemoryCloud::builder().timing(Timing::all(Duration::ZERO));
        let quota = QuotaKinds::standard()
            .with(QuotaKind::servers(), Defaults::organization(u64::MAX))
            .with(QuotaKind::networks(), Defaults::organization(1000));
        let facade = Facade::builder()
            .store(store)
            .catalog(CATALOG)
            .region(Arc::new(cloud.build().provisioner()), MAPPING)
            .quota_kinds(quota)
            .without_server_keys()
            .build()
            .await
            .expect("a façade");
        let principal = operator();
        let mut networks = Vec::new();
        for number in 1..=tenants as u128 {
            let owner = tenant(number, 1);
            create_tenant(&facade.tenancy, owner).await;
            let new = NewNetwork {
                organization: owner.0,
                project: owner.1,
                region: "north".parse().expect("a region"),
                name: "blue".parse().expect("a name"),
                prefix: "10.0.0.0/8".parse().expect("a prefix"),
                dns: Vec::new(),
            };
            let made = facade.networks.create(&principal, &new).await;
            networks.push((owner, made.expect("a network").value.id));
        }
        Arc::new(Self {
            facade,
            principal,
            networks,
            created: AtomicUsize::new(0),
            folder,
        })
    }

    /// The network of the first tenant.
    pub(super) fn network(&self) -> NetworkId {
        self.networks[0].1
    }

    /// Creates the next instance, for the next tenant.
    pub(super) async fn create(&self) -> InstanceId {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        let (tenant, network) = self.networks[number % self.networks.len()];
        let spec = InstanceSpec::new(
            "small".parse().expect("a flavor"),
            "debian".parse().expect("an image"),
        );
        let name = Name::new(format!("web-{number:08}")).expect("a name");
        let new = NewInstance::new(name, tenant, network, spec);
        let made = self.facade.instances.create(&self.principal, &new).await;
        made.expect("an instance").instance.id
    }

    /// Creates this many instances, `at_once` at a time, each from a task of its own.
    pub(super) async fn create_many(
        self: &Arc<Self>,
        count: usize,
        at_once: usize,
    ) -> Vec<InstanceId> {
        // A task is spawned when the stream has room for it, so no more than `at_once` run.
        let tasks = stream::iter(0..count).map(|_| {
            let world = Arc::clone(self);
            tokio::spawn(async move { world.create().await })
        });
        let ids = tasks.buffer_unordered(at_once);
        ids.map(|id| id.expect("a task")).collect().await
    }

    /// Waits until an instance is reported as running.
    pub(super) async fn until_running(&self, id: InstanceId) {
        loop {
            let view = self.facade.instances.read(&self.principal, id).await;
            let view = view.expect("the instance");
            let applied = view.provisioning == Provisioning::Provisioned;
            if applied && view.instance.status.phase == Phase::Running {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
