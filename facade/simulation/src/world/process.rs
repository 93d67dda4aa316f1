//! One process with the whole façade, over a store and a cloud that outlive it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright::InstanceProvisioner;
use fleetwright_compute::{
    controller::{Controller as InstanceController, ControllerPolicy as InstancePolicy},
    networks::NetworkDeletionController,
    service::{InstanceDependencies, Instances, compute_principal},
};
use fleetwright_identity::{Ledger, Tenancy};
use fleetwright_region::{
    catalog::CatalogService,
    controller::{self, Controller},
    launch_config::LaunchConfigs,
    machine::MachineAccess,
    mapping::{LaunchPlanner, RegionPlanner},
    monitor::{Limit, Monitor, OrphanPolicy, Policy},
    network::{Networks, SecurityGroups, SshAuthorities},
    secret::{SealedStore, ServerKeys, SshKeys},
    server::{DependencyChecker, Servers, TenantDependencies},
    snapshot::{SnapshotPolicy, Snapshots},
};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::Store;
use tokio::time::sleep;

use super::{SetupError, World};
use crate::{
    cloud::FaultyCloud,
    constants,
    environment::Environment,
    fault::{FaultKind, FaultPoint},
    life::Life,
    mistake::{Mistake, MistakenCloud, MistakenDependencies, MistakenStore},
    rules::MIN_BACKOFF,
    scenario::UserDataAtRest,
    store::{Actor, FaultyStore},
};

/// A process with all its parts.
#[derive(Debug)]
pub struct Process {
    /// Its life.
    pub life: Arc<Life>,
    /// The service that tenants call.
    pub instances: Instances,
    /// The service of networks.
    pub networks: Arc<Networks>,
    /// The catalog.
    pub catalog: Arc<CatalogService>,
    /// The planner of launches, whose mapping operators load.
    pub planner: Arc<RegionPlanner>,
    /// Its environment.
    pub environment: Arc<Environment>,
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
            let mut keeps = self.environment.keeps_catalog.subscribe();
            loop {
                // The sender lives as long as the environment. A real process would log an error of the catalog and continue.
                let _ = keeps.wait_for(|keeps| !keeps).await;
                tokio::select! {
                    biased;
                    _ = keeps.wait_for(|keeps| *keeps) => {}
                    _ = self.catalog.follow() => {}
                }
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
    pub(super) async fn start(&self, life: &Arc<Life>) -> Result<Process, SetupError> {
        let environment = &self.environments[life.number];
        let starting = Starting {
            world: self,
            life,
            environment,
        };
        starting.start().await
    }
}

/// A process that is being assembled.
#[derive(Clone, Copy)]
struct Starting<'s> {
    world: &'s World<'s>,
    life: &'s Arc<Life>,
    environment: &'s Arc<Environment>,
}

impl Starting<'_> {
    async fn start(&self) -> Result<Process, SetupError> {
        let (catalog, _) = CatalogService::open(self.store(Actor::Catalog)).await?;
        let catalog = Arc::new(catalog);
        let planner = self.planner(&catalog).await?;
        let networks = self.networks(Actor::Service)?;
        let (service, instances) = (Actor::Service, Actor::InstanceController);
        let parts = InstanceDependencies::new(
            self.store(service),
            self.clock(),
            self.dependencies(service, &catalog)?,
            Arc::clone(&networks),
            Arc::clone(&catalog),
            self.ledger(service)?,
            self.servers(service, &catalog, &planner)?,
            self.tenancy(service)?,
        );
        catalog.set_tenancy(self.tenancy(Actor::Catalog)?);
        let parts = parts.with_machines(self.machines(&catalog)?);
        let policy = self.instance_policy();
        let controller = InstanceController::new(
            self.store(instances),
            self.servers(instances, &catalog, &planner)?,
            self.ledger(instances)?,
            self.clock(),
            compute_principal()?,
        )?;
        let network_controller = NetworkDeletionController::new(
            self.store(Actor::NetworkController),
            self.networks(Actor::NetworkController)?,
            self.clock(),
            compute_principal()?,
        )?;
        Ok(Process {
            life: Arc::clone(self.life),
            instances: Instances::new(parts)?,
            networks,
            servers: self.servers(Actor::Operator, &catalog, &planner)?,
            instance_controller: controller.with_policy(policy.clone()),
            network_controller: network_controller
                .with_audit(self.tenancy(Actor::NetworkController)?.audit().clone())
                .with_policy(policy),
            server_controller: self.server_controller(&planner)?,
            monitor: self.monitor()?,
            snapshot_controller: self.snapshot_controller(&catalog)?,
            catalog,
            planner,
            environment: Arc::clone(self.environment),
        })
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.environment.clock) as Arc<dyn Clock>
    }

    fn store(&self, actor: Actor) -> Arc<dyn Store> {
        let inner = FaultyStore {
            actor,
            life: Arc::clone(self.life),
            inner: self.world.store.clone(),
            journal: Arc::clone(&self.world.journal),
            rules: self.world.rules.clone(),
        };
        let store: Arc<dyn Store> = match self.world.mistake {
            Some(mistake) => Arc::new(MistakenStore { inner, mistake }),
            None => Arc::new(inner),
        };
        match self.world.scenario.user_data {
            UserDataAtRest::Sealed => self.sealed(store),
            UserDataAtRest::Clear => store,
        }
    }

    /// Seals the user data in a store, as a service does.
    fn sealed(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let keyring = Arc::clone(&self.world.rules.keyring);
        let entropy = Arc::clone(&self.world.entropy);
        let forgotten = match self.world.mistake {
            Some(Mistake::UserDataInClear) => "/launch/config/user_data",
            Some(_) | None => "",
        };
        let fields = fleetwright_compute::schema::sealed_fields();
        let fields = fields.filter(|field| field.pointer != forgotten);
        Arc::new(SealedStore::new(store, Some(keyring), entropy, fields))
    }

    fn cloud(&self, actor: Actor) -> Arc<dyn InstanceProvisioner> {
        let inner = Arc::new(FaultyCloud {
            actor,
            life: Arc::clone(self.life),
            accounts: self.world.oracle.accounts(),
            environment: Arc::clone(self.environment),
            journal: Arc::clone(&self.world.journal),
            oracle: self.world.oracle.clone(),
            rules: self.world.rules.clone(),
        });
        match self.world.mistake {
            Some(mistake) => Arc::new(MistakenCloud::new(
                inner,
                mistake,
                self.world.oracle.clone(),
            )),
            None => inner,
        }
    }

    fn networks(&self, actor: Actor) -> Result<Arc<Networks>, SetupError> {
        let regions = BTreeSet::from([constants::region()]);
        let networks = Networks::new(
            self.store(actor),
            regions,
            self.world.entropy.clone(),
            &fleetwright_compute::schema::references(),
        )?;
        let networks = networks.with_ledger(self.ledger(actor)?);
        Ok(Arc::new(networks.with_tenancy(self.tenancy(actor)?)))
    }

    fn tenancy(&self, actor: Actor) -> Result<Tenancy, SetupError> {
        let entropy = self.world.entropy.clone();
        Ok(constants::tenancy(
            self.store(actor),
            self.clock(),
            entropy,
        )?)
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
            self.world.entropy.clone(),
            &fleetwright_compute::schema::references(),
        )?;
        let authorities = SshAuthorities::new(
            self.store(actor),
            self.world.entropy.clone(),
            &fleetwright_compute::schema::references(),
        )?;
        let (groups, authorities) = (Arc::new(groups), Arc::new(authorities));
        let checker = TenantDependencies::new(networks, groups, authorities, Arc::clone(catalog));
        let inner = Arc::new(checker);
        Ok(match self.world.mistake {
            Some(mistake) if actor == Actor::Service => {
                Arc::new(MistakenDependencies { inner, mistake })
            }
            Some(_) | None => inner,
        })
    }

    fn keys(&self, actor: Actor) -> Result<SshKeys, SetupError> {
        let keyring = Arc::clone(&self.world.rules.keyring);
        let keys = ServerKeys::new(self.store(actor), keyring, self.world.entropy.clone())?;
        Ok(SshKeys::OnePerServer(keys))
    }

    fn servers(
        &self,
        actor: Actor,
        catalog: &Arc<CatalogService>,
        planner: &Arc<RegionPlanner>,
    ) -> Result<Servers, SetupError> {
        let (store, clock) = (self.store(actor), self.clock());
        let (checker, keys) = (self.dependencies(actor, catalog)?, self.keys(actor)?);
        let servers = Servers::new(store, clock, checker, keys)?;
        let configs = LaunchConfigs::new(
            self.store(actor),
            self.cloud(actor),
            Arc::clone(planner) as Arc<dyn LaunchPlanner>,
        )?;
        Ok(servers
            .with_region(constants::region(), (*self.world.rules.verbs).clone())
            .with_launch_configs(constants::region(), configs))
    }

    fn ledger(&self, actor: Actor) -> Result<Ledger, SetupError> {
        Ok(Ledger::new(
            self.store(actor),
            Arc::new(constants::quota()),
        )?)
    }

    fn machines(&self, catalog: &Arc<CatalogService>) -> Result<MachineAccess, SetupError> {
        let (store, clock) = (self.store(Actor::Service), self.clock());
        let keys = self.keys(Actor::Service)?;
        let machines = MachineAccess::new(store, clock, Arc::clone(catalog), keys)?;
        let machines = machines.with_ledger(self.ledger(Actor::Service)?);
        Ok(machines.with_region(constants::region(), self.cloud(Actor::Service)))
    }

    fn instance_policy(&self) -> InstancePolicy {
        let mut policy = InstancePolicy::default();
        policy.max_backoff = Duration::from_secs(20);
        policy.refused_backoff = Duration::from_secs(30);
        policy.network_recheck = Duration::from_secs(30);
        policy
    }

    /// Reads the mapping file.
    async fn planner(
        &self,
        catalog: &Arc<CatalogService>,
    ) -> Result<Arc<RegionPlanner>, SetupError> {
        let read = self.world.journal.next_fault(FaultPoint::ReadMapping);
        match read {
            Some(FaultKind::CrashBefore | FaultKind::CrashAfter) => {
                self.world.journal.crash(self.life).await;
            }
            Some(FaultKind::Error | FaultKind::LostRequest | FaultKind::LostResponse) => {
                return Err("the mapping file cannot be read".into());
            }
            None => {}
        }
        let mapping = self.environment.mapping();
        let text = mapping.text(&self.world.rules.fixtures);
        let planner = RegionPlanner::new(Arc::clone(catalog), &text)?;
        self.environment.set_loaded(mapping);
        Ok(Arc::new(planner))
    }

    fn server_controller(&self, planner: &Arc<RegionPlanner>) -> Result<Controller, SetupError> {
        let mut policy = controller::ControllerPolicy::default();
        policy.boot_timeout = Duration::from_secs(120);
        policy.termination_timeout = Duration::from_secs(30);
        policy.launch_timeout = Duration::from_secs(20);
        policy.first_backoff = MIN_BACKOFF;
        policy.max_backoff = Duration::from_secs(20);
        policy.refused_backoff = Duration::from_secs(30);
        if self.world.mistake == Some(Mistake::BackoffIgnored) {
            policy.first_backoff = Duration::ZERO;
            policy.max_backoff = Duration::ZERO;
            policy.refused_backoff = Duration::ZERO;
        }
        let controller = Controller::new(
            constants::region(),
            self.store(Actor::ServerController),
            self.cloud(Actor::ServerController),
            Arc::clone(planner) as Arc<dyn LaunchPlanner>,
            self.clock(),
        )?;
        Ok(controller.with_policy(policy))
    }

    fn monitor(&self) -> Result<Monitor, SetupError> {
        let mut policy = Policy::default();
        policy.tick = constants::TICK;
        policy.stuck_after = Duration::from_secs(60);
        policy.orphan_age = Duration::from_secs(30);
        if self.world.mistake == Some(Mistake::TerminatePendingLaunches) {
            policy.orphan_age = Duration::ZERO;
        }
        policy.orphans = OrphanPolicy::Terminate;
        policy.limit = Limit::new(12, 50);
        policy.confirm_after = Duration::from_secs(10);
        let monitor = Monitor::new(
            constants::region(),
            self.store(Actor::Monitor),
            self.cloud(Actor::Monitor),
            self.clock(),
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
            self.clock(),
        )?;
        let images = images
            .with_ledger(self.ledger(Actor::SnapshotController)?)
            .with_references(&fleetwright_compute::schema::references());
        Ok(images.with_policy(rules))
    }
}
