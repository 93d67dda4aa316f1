//! The parts of a [`TestFacade`] that a test can change.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use chrono::{DateTime, Utc};
use fleetwright::InstanceProvisioner;
use fleetwright_compute::{controller::ControllerPolicy, facade::Facade};
use fleetwright_identity::{Defaults, QuotaKind, QuotaKinds};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    catalog::CatalogService,
    mapping::RegionPlanner,
    monitor::Policy,
    secret::{Keyring, ServerKeys},
};
use fleetwright_runtime::{
    clock::{Clock, TokioClock},
    entropy::OsEntropy,
};
use fleetwright_store::{Store, Table};

use super::TestFacade;
use crate::{CATALOG, MAPPING, memory_store, north, operator, principals::create_tenant, tenant};

/// Changes what a [`TestFacade`] is built from.
pub struct TestFacadeBuilder {
    pub(super) cloud: MemoryCloud,
    pub(super) provisioner: Option<Arc<dyn InstanceProvisioner>>,
    pub(super) store: Option<Arc<dyn Store>>,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) catalog: Option<Arc<CatalogService>>,
    pub(super) mapping: String,
    pub(super) keys: String,
    pub(super) server_quota: u64,
    pub(super) record_quota: u64,
    pub(super) scan_every: Duration,
    pub(super) instance_policy: ControllerPolicy,
}

impl TestFacadeBuilder {
    /// On this cloud.
    #[must_use]
    pub fn cloud(mut self, cloud: &MemoryCloud) -> Self {
        self.cloud = cloud.clone();
        self
    }

    /// On this handle of a cloud.
    #[must_use]
    pub fn provisioner(mut self, provisioner: Arc<dyn InstanceProvisioner>) -> Self {
        self.provisioner = Some(provisioner);
        self
    }

    /// On this store. Without it, on an empty one in memory.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// With this mapping of region `north`.
    #[must_use]
    pub fn mapping(mut self, mapping: impl Into<String>) -> Self {
        self.mapping = mapping.into();
        self
    }

    /// With this keyring. Without it, with the key `may`.
    #[must_use]
    pub fn keys(mut self, keyring: impl Into<String>) -> Self {
        self.keys = keyring.into();
        self
    }

    /// With this many servers, and as many public addresses, for each organization. Without it, 1000.
    #[must_use]
    pub fn server_quota(mut self, servers: u64) -> Self {
        self.server_quota = servers;
        self
    }

    /// With this many networks, certificate authorities and images for each organization. Without it, 1000.
    #[must_use]
    pub fn record_quota(mut self, records: u64) -> Self {
        self.record_quota = records;
        self
    }

    /// With scans as often as this.
    #[must_use]
    pub fn scan_every(mut self, interval: Duration) -> Self {
        self.scan_every = interval;
        self
    }

    /// With a changed policy of the controllers of instances and networks.
    #[must_use]
    pub fn instance_policy(mut self, change: impl FnOnce(&mut ControllerPolicy)) -> Self {
        change(&mut self.instance_policy);
        self
    }

    /// Builds it.
    pub async fn build(self) -> TestFacade {
        let store = self.store.unwrap_or_else(memory_store);
        let clock = self.clock.unwrap_or_else(|| {
            let epoch = DateTime::<Utc>::from_timestamp(1_767_225_600, 0).unwrap();
            Arc::new(TokioClock::starting_at(epoch))
        });
        let cloud = &self.cloud;
        let provisioner = self
            .provisioner
            .unwrap_or_else(|| Arc::new(cloud.provisioner()));
        let mut policy = Policy::default();
        policy.tick = self.scan_every;
        let quota = QuotaKinds::standard()
            .with(
                QuotaKind::servers(),
                Defaults::organization(self.server_quota),
            )
            .with(
                QuotaKind::public_ips(),
                Defaults::organization(self.server_quota),
            )
            .with(
                QuotaKind::networks(),
                Defaults::organization(self.record_quota),
            )
            .with(
                QuotaKind::ssh_authorities(),
                Defaults::organization(self.record_quota),
            )
            .with(
                QuotaKind::images(),
                Defaults::organization(self.record_quota),
            );
        let is_reopened = self.catalog.is_some();
        let catalog = match self.catalog {
            Some(catalog) => catalog,
            None => {
                let (catalog, _) = CatalogService::open(store.clone()).await.unwrap();
                catalog.load(CATALOG).await.unwrap();
                Arc::new(catalog)
            }
        };
        let planner = Arc::new(RegionPlanner::new(catalog.clone(), &self.mapping).unwrap());
        let keyring: Arc<Keyring> = Arc::new(self.keys.parse().unwrap());
        let builder = Facade::builder()
            .store(store.clone())
            .clock(clock)
            .shared_catalog(catalog)
            .region_with_planner(north(), provisioner.clone(), planner.clone())
            .region(provisioner, MAPPING.replace("north", "south"))
            .quota_kinds(quota)
            .keyring(keyring.clone())
            .instance_policy(self.instance_policy)
            .monitor_policy(policy);
        let facade = builder.build().await.unwrap();
        let (first, _) = tenant(1, 1);
        if !is_reopened
            && facade
                .tenancy
                .organization(&operator(), first)
                .await
                .is_err()
        {
            create_tenant(&facade.tenancy, tenant(1, 1)).await;
        }
        TestFacade {
            keys: ServerKeys::new(store, keyring, Arc::new(OsEntropy)).unwrap(),
            table: Table::new(facade.store.clone()).unwrap(),
            facade,
            cloud: self.cloud,
            planner,
            mapping: Mutex::new(self.mapping),
            server_quota: self.server_quota,
        }
    }
}

impl fmt::Debug for TestFacadeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestFacadeBuilder").finish_non_exhaustive()
    }
}
