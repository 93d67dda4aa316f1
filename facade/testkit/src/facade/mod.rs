//! A whole façade on the memory cloud: its parts, and running its loops. What tests do with its records is in the submodules.

mod audit;
mod builder;
mod instances;
mod records;
mod servers;
mod tenancy;

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fleetwright::InstanceProvisioner;
use fleetwright_compute::{
    controller::ControllerPolicy,
    facade::{Facade, FacadeRegion},
    instance::{Instance, InstanceId},
    service::{InstanceDependencies, Instances},
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    catalog::CatalogService,
    ids::NetworkId,
    mapping::RegionPlanner,
    secret::{ServerKeys, SshKeys},
    server::Servers,
};
use fleetwright_runtime::entropy::Entropy;
use fleetwright_store::{Store, Table};

pub use audit::commits_after;
pub use builder::TestFacadeBuilder;
pub use instances::{has_condition, is_applied, is_running};

use crate::{MAPPING, north};

const KEYS: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// A façade with regions `north` and `south` on one memory cloud, the [catalog](crate::CATALOG), the organization and project of
/// `tenant(1, 1)`, server keys, and a clock that follows tokio's. The monitor of `north` scans every two seconds; no loop of `south` runs.
///
/// It derefs to its [`Facade`].
pub struct TestFacade {
    facade: Facade,
    /// The cloud. A façade on another provisioner does not use it.
    pub cloud: MemoryCloud,
    /// The key pairs of servers.
    pub keys: ServerKeys,
    /// The records of instances.
    pub table: Table<Instance>,
    /// The planner of region `north`, for tests that change its mapping.
    pub planner: Arc<RegionPlanner>,
    mapping: Mutex<String>,
    server_quota: u64,
}

impl Deref for TestFacade {
    type Target = Facade;
    fn deref(&self) -> &Facade {
        &self.facade
    }
}

impl TestFacade {
    /// On an empty store and a new memory cloud.
    pub async fn new() -> Self {
        Self::builder().build().await
    }

    /// On an empty store and this cloud.
    pub async fn on(cloud: &MemoryCloud) -> Self {
        Self::builder().cloud(cloud).build().await
    }

    /// Begins with the defaults.
    pub fn builder() -> TestFacadeBuilder {
        TestFacadeBuilder {
            cloud: MemoryCloud::new(),
            provisioner: None,
            store: None,
            clock: None,
            catalog: None,
            mapping: MAPPING.to_owned(),
            keys: KEYS.to_owned(),
            server_quota: 1000,
            record_quota: 1000,
            scan_every: Duration::from_secs(2),
            instance_policy: ControllerPolicy::default(),
        }
    }

    /// A façade on this cloud whose instance `web` in network `net` is running.
    pub async fn running_instance(cloud: &MemoryCloud) -> (Self, NetworkId, InstanceId) {
        let facade = Self::on(cloud).await;
        let (network, id) = facade.launch_instance().await;
        (facade, network, id)
    }

    /// Runs a test on a façade on this cloud, while every loop runs.
    pub async fn run(cloud: &MemoryCloud, test: impl AsyncFnOnce(&Self)) {
        let facade = Self::on(cloud).await;
        facade.during(test(&facade)).await;
    }

    /// Like [`run`](Self::run), with instance `web` in network `net`, which is running.
    pub async fn run_with_instance(cloud: &MemoryCloud, test: impl AsyncFnOnce(&Self, InstanceId)) {
        let test = async |facade: &Self| {
            let (_, id) = facade.create_running().await;
            test(facade, id).await;
        };
        Self::run(cloud, test).await;
    }

    /// Creates instance `web` in network `net`, and runs every loop until it is running.
    pub async fn launch_instance(&self) -> (NetworkId, InstanceId) {
        self.during(self.create_running()).await
    }

    /// Creates instance `web` in network `net`, and waits until it is running. The loops must run meanwhile.
    pub async fn create_running(&self) -> (NetworkId, InstanceId) {
        let network = self.network("net").await;
        let id = self.create(network, "web").await.instance.id;
        self.until(id, is_running).await;
        (network, id)
    }

    /// As another process has it, over its own view of the store, with the same clock, catalog and cloud. Reads nothing.
    pub async fn reopen(&self, store: Arc<dyn Store>) -> Self {
        let mut builder = Self::builder()
            .cloud(&self.cloud)
            .store(store)
            .mapping(self.mapping())
            .server_quota(self.server_quota);
        builder.clock = Some(self.clock.clone());
        builder.catalog = Some(self.catalog.clone());
        builder.build().await
    }

    /// As [`reopen`](Self::reopen), with its own catalog and its own handle of the cloud.
    pub async fn reopen_with(
        &self,
        store: Arc<dyn Store>,
        provisioner: Arc<dyn InstanceProvisioner>,
    ) -> Self {
        let catalog = CatalogService::open(store.clone()).await.unwrap().0;
        let mut builder = Self::builder()
            .cloud(&self.cloud)
            .provisioner(provisioner)
            .mapping(self.mapping())
            .store(store);
        builder.clock = Some(self.clock.clone());
        builder.catalog = Some(Arc::new(catalog));
        builder.build().await
    }

    /// A service that has no access to machines.
    pub fn without_machines(&self) -> Instances {
        let parts = InstanceDependencies::new(
            self.store.clone(),
            self.clock.clone(),
            self.dependencies.clone(),
            self.networks.clone(),
            self.catalog.clone(),
            self.ledger.clone(),
            self.servers.clone(),
            self.tenancy.clone(),
        );
        Instances::new(parts).unwrap()
    }

    /// The same façade, whose servers get their keys from this source of entropy.
    pub fn servers_with_key_entropy(&self, entropy: Arc<dyn Entropy>) -> Servers {
        let keyring = Arc::new(KEYS.parse().unwrap());
        let keys = ServerKeys::new(self.store.clone(), keyring, entropy).unwrap();
        let servers = Servers::new(
            self.store.clone(),
            self.clock.clone(),
            self.dependencies.clone(),
            SshKeys::OnePerServer(keys),
        );
        let verbs = self.cloud.provisioner().capabilities().verbs.clone();
        servers.unwrap().with_region(north(), verbs)
    }

    /// Region `north`.
    pub fn region(&self) -> &FacadeRegion {
        &self.regions[0]
    }

    /// The mapping file of region `north`.
    pub fn mapping(&self) -> String {
        let mapping = self.mapping.lock();
        mapping.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Loads another mapping file of region `north`.
    pub fn set_mapping(&self, text: &str) {
        self.planner.load(text).unwrap();
        let mut mapping = self.mapping.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone_into(&mut mapping);
    }

    /// Runs the controllers of instances and networks, and the loops of region `north`, until `work` is done. No snapshot is taken.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            result = work => result,
            () = self.instance_controller.run() => unreachable!("a controller runs until it is dropped"),
            () = self.network_controller.run() => unreachable!("a controller runs until it is dropped"),
            () = self.run_region() => unreachable!("a region runs until it is dropped"),
        }
    }

    /// Runs the controller and monitor of region `north` until `work` is done, and no controller of instances.
    pub async fn during_region<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            result = work => result,
            () = self.run_region() => unreachable!("a region runs until it is dropped"),
        }
    }

    /// Runs the controller and monitor of region `north`.
    pub async fn run_region(&self) {
        let region = self.region();
        tokio::join!(region.controller.run(), region.monitor.run());
    }
}

impl fmt::Debug for TestFacade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestFacade").finish_non_exhaustive()
    }
}
