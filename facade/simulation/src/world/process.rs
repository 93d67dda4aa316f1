//! One process with the whole façade, over a store and a cloud that outlive it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright::InstanceProvisioner;
use fleetwright_compute::{
    controller::{Controller as InstanceController, ControllerPolicy as InstancePolicy},
    networks::NetworkDeletionController,
    service::{InstanceDependencies, Instances, compute_principal},
};
use fleetwright_identity::Ledger;
use fleetwright_region::{
    catalog::CatalogService,
    controller::{self, Controller},
    launch_config::LaunchConfigs,
    machine::MachineAccess,
    mapping::RegionPlanner,
    monitor::{Limit, Monitor, OrphanPolicy, Policy},
    network::{Networks, SecurityGroups, SshAuthorities},
    secret::{ServerKeys, SshKeys},
    server::{DependencyChecker, Servers, TenantDependencies},
    snapshot::{SnapshotPolicy, Snapshots},
};
use fleetwright_store::Store;
use tokio::time::sleep;

use super::{SetupError, World};
use crate::{
    cloud::FaultyCloud,
    constants,
    mistake::{Mistake, MistakenCloud, MistakenDependencies, MistakenStore},
    rules::MIN_BACKOFF,
    store::{Actor, FaultyStore},
};

/// Encrypts the private keys of servers. A test key.
const KEYS: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// A process with all its parts.
#[derive(Debug)]
pub struct Process {
    /// The service that tenants call.
    pub instances: Instances,
    /// The service of networks.
    pub networks: Arc<Networks>,
    /// The catalog.
    pub catalog: Arc<CatalogService>,
    /// The service of servers, for operators.
    pub servers: Servers,
    instance_controller: InstanceController,
    network_controller: NetworkDeletionController,
    server_controller: Controller,
    monitor: Monitor,
    snapshot_controller: Snapshots,
}

impl Process {
    /// Runs all controllers until the future is dropped.
    pub(super) async fn run(&self) {
        let follow = async {
            loop {
                // A real process would log the error and continue.
                let _ = self.catalog.follow().await;
                sleep(Duration::from_secs(2)).await;
            }
        };
        tokio::select! {
            biased;
            () = self.instance_controller.run() => {}
            () = self.network_controller.run() => {}
            () = self.server_controller.run() => {}
            () = self.monitor.run() => {}
            () = self.snapshot_controller.run() => {}
            () = follow => {}
        }
    }
}

impl World<'_> {
    /// Starts a new process.
    pub(super) async fn start(&self) -> Result<Process, SetupError> {
        let (catalog, _) = CatalogService::open(self.store(Actor::Catalog)).await?;
        let catalog = Arc::new(catalog);
        let networks = self.networks(Actor::Service)?;
        let (service, instances) = (Actor::Service, Actor::InstanceController);
        let parts = InstanceDependencies::new(
            self.store(service),
            Arc::clone(&self.clock),
            self.dependencies(service, &catalog)?,
            Arc::clone(&networks),
            Arc::clone(&catalog),
            self.ledger(service)?,
            self.servers(service, &catalog)?,
        );
        let parts = parts.with_machines(self.machines(&catalog)?);
        let policy = self.instance_policy();
        let controller = InstanceController::new(
            self.store(instances),
            self.servers(instances, &catalog)?,
            self.ledger(instances)?,
            Arc::clone(&self.clock),
            compute_principal()?,
        )?;
        let network_controller = NetworkDeletionController::new(
            self.store(Actor::NetworkController),
            self.networks(Actor::NetworkController)?,
            Arc::clone(&self.clock),
            compute_principal()?,
        )?;
        Ok(Process {
            instances: Instances::new(parts)?,
            networks,
            servers: self.servers(Actor::Operator, &catalog)?,
            instance_controller: controller.with_policy(policy.clone()),
            network_controller: network_controller.with_policy(policy),
            server_controller: self.server_controller(&catalog)?,
            monitor: self.monitor()?,
            snapshot_controller: self.snapshot_controller(&catalog)?,
            catalog,
        })
    }

    fn store(&self, actor: Actor) -> Arc<dyn Store> {
        let inner = FaultyStore {
            actor,
            inner: self.store.clone(),
            journal: Arc::clone(&self.journal),
            rules: self.rules.clone(),
        };
        match self.mistake {
            Some(mistake) => Arc::new(MistakenStore { inner, mistake }),
            None => Arc::new(inner),
        }
    }

    fn cloud(&self, actor: Actor) -> Arc<dyn InstanceProvisioner> {
        let inner = Arc::new(FaultyCloud {
            actor,
            inner: Arc::new(self.cloud.provisioner()),
            journal: Arc::clone(&self.journal),
            oracle: self.oracle.clone(),
            rules: self.rules.clone(),
            clock: Arc::clone(&self.clock),
        });
        match self.mistake {
            Some(mistake) => Arc::new(MistakenCloud::new(inner, mistake, self.oracle.clone())),
            None => inner,
        }
    }

    fn networks(&self, actor: Actor) -> Result<Arc<Networks>, SetupError> {
        let regions = BTreeSet::from([constants::region()]);
        let networks = Networks::new(
            self.store(actor),
            regions,
            self.entropy.clone(),
            &fleetwright_compute::schema::references(),
        )?;
        Ok(Arc::new(networks))
    }

    fn dependencies(
        &self,
        actor: Actor,
        catalog: &Arc<CatalogService>,
    ) -> Result<Arc<dyn DependencyChecker>, SetupError> {
        let networks = self.networks(actor)?;
        let groups = SecurityGroups::new(
            self.store(actor),
            Arc::clone(&networks),
            self.entropy.clone(),
            &fleetwright_compute::schema::references(),
        )?;
        let authorities = SshAuthorities::new(
            self.store(actor),
            self.entropy.clone(),
            &fleetwright_compute::schema::references(),
        )?;
        let (groups, authorities) = (Arc::new(groups), Arc::new(authorities));
        let checker = TenantDependencies::new(networks, groups, authorities, Arc::clone(catalog));
        let inner = Arc::new(checker);
        Ok(match self.mistake {
            Some(mistake) if actor == Actor::Service => {
                Arc::new(MistakenDependencies { inner, mistake })
            }
            Some(_) | None => inner,
        })
    }

    fn keys(&self, actor: Actor) -> Result<SshKeys, SetupError> {
        let keyring = Arc::new(KEYS.parse()?);
        let keys = ServerKeys::new(self.store(actor), keyring, self.entropy.clone())?;
        Ok(SshKeys::OnePerServer(keys))
    }

    fn servers(&self, actor: Actor, catalog: &Arc<CatalogService>) -> Result<Servers, SetupError> {
        let (store, clock) = (self.store(actor), Arc::clone(&self.clock));
        let (checker, keys) = (self.dependencies(actor, catalog)?, self.keys(actor)?);
        let servers = Servers::new(store, clock, checker, keys)?;
        let configs = LaunchConfigs::new(
            self.store(actor),
            self.cloud(actor),
            Arc::new(self.planner(catalog)?),
        )?;
        Ok(servers
            .with_region(constants::region(), (*self.rules.verbs).clone())
            .with_launch_configs(constants::region(), configs))
    }

    fn ledger(&self, actor: Actor) -> Result<Ledger, SetupError> {
        Ok(Ledger::new(
            self.store(actor),
            Arc::new(constants::quota()),
        )?)
    }

    fn machines(&self, catalog: &Arc<CatalogService>) -> Result<MachineAccess, SetupError> {
        let (store, clock) = (self.store(Actor::Service), Arc::clone(&self.clock));
        let keys = self.keys(Actor::Service)?;
        let machines = MachineAccess::new(store, clock, Arc::clone(catalog), keys)?;
        Ok(machines.with_region(constants::region(), self.cloud(Actor::Service)))
    }

    fn instance_policy(&self) -> InstancePolicy {
        let mut policy = InstancePolicy::default();
        policy.max_backoff = Duration::from_secs(20);
        policy.refused_backoff = Duration::from_secs(30);
        policy.network_recheck = Duration::from_secs(30);
        policy
    }

    fn server_controller(&self, catalog: &Arc<CatalogService>) -> Result<Controller, SetupError> {
        let mut policy = controller::ControllerPolicy::default();
        policy.boot_timeout = Duration::from_secs(120);
        policy.termination_timeout = Duration::from_secs(30);
        policy.first_backoff = MIN_BACKOFF;
        policy.max_backoff = Duration::from_secs(20);
        policy.refused_backoff = Duration::from_secs(30);
        if self.mistake == Some(Mistake::BackoffIgnored) {
            policy.first_backoff = Duration::ZERO;
            policy.max_backoff = Duration::ZERO;
            policy.refused_backoff = Duration::ZERO;
        }
        let planner = self.planner(catalog)?;
        let controller = Controller::new(
            constants::region(),
            self.store(Actor::ServerController),
            self.cloud(Actor::ServerController),
            Arc::new(planner),
            Arc::clone(&self.clock),
        )?;
        Ok(controller.with_policy(policy))
    }

    fn planner(&self, catalog: &Arc<CatalogService>) -> Result<RegionPlanner, SetupError> {
        let mapping = self.rules.fixtures.mapping();
        Ok(RegionPlanner::new(Arc::clone(catalog), &mapping)?)
    }

    fn monitor(&self) -> Result<Monitor, SetupError> {
        let mut policy = Policy::default();
        policy.tick = Duration::from_secs(2);
        policy.stuck_after = Duration::from_secs(60);
        policy.orphan_age = Duration::from_secs(30);
        if self.mistake == Some(Mistake::TerminatePendingLaunches) {
            policy.orphan_age = Duration::ZERO;
        }
        policy.orphans = OrphanPolicy::Terminate;
        policy.limit = Limit::new(12, 50);
        policy.confirm_after = Duration::from_secs(10);
        let monitor = Monitor::new(
            constants::region(),
            self.store(Actor::Monitor),
            self.cloud(Actor::Monitor),
            Arc::clone(&self.clock),
        )?;
        Ok(monitor.with_policy(policy))
    }

    fn snapshot_controller(&self, catalog: &Arc<CatalogService>) -> Result<Snapshots, SetupError> {
        let mut rules = SnapshotPolicy::default();
        rules.max_backoff = Duration::from_secs(20);
        let images = Snapshots::new(
            constants::region(),
            self.store(Actor::SnapshotController),
            Arc::clone(catalog),
            self.cloud(Actor::SnapshotController),
            Arc::clone(&self.clock),
        )?;
        Ok(images.with_policy(rules))
    }
}
