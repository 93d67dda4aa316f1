//! A region of bare servers: its service, controller and monitor over any provisioner, without catalog, networks and keys.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{InstanceConfig, InstanceProvisioner};
use fleetwright_region::{
    account::ConfirmedAccount,
    controller::{Controller, ControllerPolicy},
    ids::NetworkId,
    mapping::{LaunchPlanner, LaunchSpec, PlanError},
    monitor::{Monitor, Policy},
    secret::SshKeys,
    server::{NewServer, NoDependencyCheck, ServerId, ServerView, Servers},
};
use fleetwright_runtime::clock::{Clock, TokioClock};
use fleetwright_store::Store;
use uuid::Uuid;

use crate::{advance_until, memory_store, new_server, north, server_admin, server_spec};

/// The request for a server in a network that no record has.
pub fn bare_server(number: u128) -> NewServer {
    let network = NetworkId::from_uuid(Uuid::from_u128(3));
    new_server(number, server_spec(network))
}

/// Plans launches by a table of names. Networks and groups are left to the cloud's defaults.
#[derive(Clone, Debug, Default)]
pub struct NamePlanner {
    /// The cloud's instance types by flavor.
    pub flavors: BTreeMap<String, String>,
    /// The cloud's images by image.
    pub images: BTreeMap<String, String>,
}

impl NamePlanner {
    /// The cloud calls flavors and images as the catalog does.
    pub fn identity() -> Self {
        let same = |names: [&str; 2]| names.map(|name| (name.into(), name.into())).into();
        Self {
            flavors: same(["small", "large"]),
            images: same(["debian", "rocky"]),
        }
    }
}

impl LaunchPlanner for NamePlanner {
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, PlanError> {
        let region = north();
        let flavor = self.flavors.get(spec.flavor.as_str());
        let image = self.images.get(spec.image.as_str());
        let flavor = flavor.ok_or_else(|| PlanError::NoFlavor {
            flavor: spec.flavor.clone(),
            region: region.clone(),
        })?;
        let image = image.ok_or_else(|| PlanError::NoImage {
            image: spec.image.clone(),
            region: region.clone(),
        })?;
        let mut builder = InstanceConfig::builder(image, flavor)
            .tags(&spec.tags)
            .launch_token(&spec.token);
        if let Some(data) = &spec.user_data {
            builder = builder.user_data(data.as_bytes());
        }
        let built = builder.build();
        built.map_err(|source| PlanError::Refused { region, source })
    }
}

/// Region `north`: its service, its controller and its monitor, over a provisioner. The monitor scans every two seconds.
pub struct TestRegion {
    /// The service.
    pub servers: Servers,
    /// The controller.
    pub controller: Controller,
    /// The monitor.
    pub monitor: Monitor,
    /// The store of all three.
    pub store: Arc<dyn Store>,
    /// The clock of all three.
    pub clock: Arc<dyn Clock>,
    /// The cloud.
    pub cloud: Arc<dyn InstanceProvisioner>,
}

impl TestRegion {
    /// On an empty store in memory, with the same names at the cloud.
    pub fn new(cloud: Arc<dyn InstanceProvisioner>) -> Self {
        Self::with(cloud, memory_store(), NamePlanner::identity())
    }

    /// On a store, with other names at the cloud.
    pub fn with(
        cloud: Arc<dyn InstanceProvisioner>,
        store: Arc<dyn Store>,
        names: NamePlanner,
    ) -> Self {
        let epoch = DateTime::<Utc>::from_timestamp(1_767_225_600, 0).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
        Self::reopened(cloud, store, names, clock)
    }

    /// As another process opens it, on the same clock.
    pub fn reopened(
        cloud: Arc<dyn InstanceProvisioner>,
        store: Arc<dyn Store>,
        names: NamePlanner,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let verbs = cloud.capabilities().verbs.clone();
        // Catalog, networks and keys have their own tests: here nothing is checked.
        let dependencies = Arc::new(NoDependencyCheck);
        let servers = Servers::new(
            Arc::clone(&store),
            Arc::clone(&clock),
            dependencies,
            SshKeys::Disabled,
        );
        let planner = Arc::new(names);
        let controller = Controller::new(
            north(),
            Arc::clone(&store),
            Arc::clone(&cloud),
            planner,
            Arc::clone(&clock),
        );
        let monitor = Monitor::new(
            north(),
            Arc::clone(&store),
            Arc::clone(&cloud),
            Arc::clone(&clock),
        );
        let mut policy = Policy::default();
        policy.tick = Duration::from_secs(2);
        let confirmed = ConfirmedAccount::default();
        let monitor = monitor.unwrap().with_policy(policy);
        Self {
            servers: servers.unwrap().with_region(north(), verbs),
            controller: controller.unwrap().with_confirmed_account(&confirmed),
            monitor: monitor.with_confirmed_account(&confirmed),
            store,
            clock,
            cloud,
        }
    }

    /// With a changed policy of the controller.
    #[must_use]
    pub fn rules(mut self, change: impl FnOnce(&mut ControllerPolicy)) -> Self {
        let mut rules = ControllerPolicy::default();
        change(&mut rules);
        self.controller = self.controller.with_policy(rules);
        self
    }

    /// With a changed policy of the monitor.
    #[must_use]
    pub fn policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        let mut policy = Policy::default();
        policy.tick = Duration::from_secs(2);
        change(&mut policy);
        self.monitor = self.monitor.with_policy(policy);
        self
    }

    /// Runs controller and monitor until `work` is done.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            result = work => result,
            () = self.controller.run() => unreachable!("a controller runs until it is dropped"),
            () = self.monitor.run() => unreachable!("a monitor runs until it is dropped"),
        }
    }

    /// Creates server `number`, and returns its id.
    pub async fn create(&self, number: u128) -> ServerId {
        let new = bare_server(number);
        let created = self.servers.ensure(&server_admin(), &new).await;
        created.unwrap().server.id
    }

    /// Reads a server.
    pub async fn read(&self, id: ServerId) -> ServerView {
        self.servers.read(&server_admin(), id).await.unwrap()
    }

    /// Waits until a server fulfils a condition, and returns it. The loops must run meanwhile.
    pub async fn until(&self, id: ServerId, condition: impl Fn(&ServerView) -> bool) -> ServerView {
        let read = async || Some(self.read(id).await).filter(&condition);
        advance_until("a server's condition", read).await
    }

    /// Waits until a server's record is gone. The loops must run meanwhile.
    pub async fn until_gone(&self, id: ServerId) {
        let read = async || self.servers.read(&server_admin(), id).await.err();
        advance_until("the end of a server", read).await;
    }
}

impl fmt::Debug for TestRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestRegion").finish_non_exhaustive()
    }
}
