//! What the tests of servers stand on: a region over any provisioner, a planner of fixed names, and a tenant.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{InstanceConfig, InstanceProvisioner};
use fleetwright_identity::{
    ActorName, OrganizationId, Permission, Principal, ProjectId, Resource, Verb,
};
use fleetwright_region::{
    controller::{Controller, Rules},
    ids::{FlavorId, ImageId, NetworkId, RegionId},
    mapping::{LaunchPlanner, LaunchSpec, Unplannable},
    monitor::{Monitor, Policy},
    schema,
    secret::SshKeys,
    server::{Anywhere, NewServer, Owner, ServerId, ServerSpec, ServerView, Servers},
};
use fleetwright_runtime::clock::{Clock, TokioClock};
use fleetwright_store::{MemoryStore, Schema, Store};
use uuid::Uuid;

/// Flavors and images by the names that a cloud has for them. Networks and groups are left to the cloud's defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) flavors: BTreeMap<String, String>,
    pub(crate) images: BTreeMap<String, String>,
}

impl Names {
    /// Each is called as it is here.
    pub(crate) fn same() -> Self {
        let same = |names: [&str; 2]| names.map(|name| (name.into(), name.into())).into();
        Self {
            flavors: same(["small", "large"]),
            images: same(["linux", "bsd"]),
        }
    }
}

impl LaunchPlanner for Names {
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, Unplannable> {
        let region = region();
        let flavor = self.flavors.get(spec.flavor.as_str());
        let image = self.images.get(spec.image.as_str());
        let flavor = flavor.ok_or_else(|| Unplannable::NoFlavor {
            flavor: spec.flavor.clone(),
            region: region.clone(),
        })?;
        let image = image.ok_or_else(|| Unplannable::NoImage {
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
        built.map_err(|source| Unplannable::Refused { region, source })
    }
}

pub(crate) fn region() -> RegionId {
    RegionId::new("here").unwrap()
}

pub(crate) fn tenant() -> (OrganizationId, ProjectId) {
    let [organization, project] = [1, 2].map(Uuid::from_u128);
    (organization.into(), project.into())
}

/// Whoever may do everything to servers.
pub(crate) fn somebody() -> Principal {
    let all = Verb::ALL.map(|verb| Permission::new(verb, Resource::Servers).unwrap());
    Principal::service(ActorName::new("tests").unwrap(), all)
}

pub(crate) fn spec() -> ServerSpec {
    let network = NetworkId::from_uuid(Uuid::from_u128(3));
    ServerSpec::new(
        FlavorId::new("small").unwrap(),
        ImageId::new("linux").unwrap(),
        network,
    )
}

pub(crate) fn server_id(number: u128) -> ServerId {
    ServerId::from_uuid(Uuid::from_u128(0x1000 + number))
}

pub(crate) fn new_server(number: u128) -> NewServer {
    let owner = Owner::new("instance", format!("i{number}"));
    NewServer::new(server_id(number), owner, region(), tenant(), spec())
}

pub(crate) fn store() -> Arc<dyn Store> {
    let schema = schema::add_kinds(Schema::builder()).build().unwrap();
    Arc::new(MemoryStore::new(schema))
}

/// A region: its service, its controller and its monitor, over a provisioner.
pub(crate) struct Region {
    pub(crate) servers: Servers,
    pub(crate) controller: Controller,
    pub(crate) monitor: Monitor,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cloud: Arc<dyn InstanceProvisioner>,
}

impl Region {
    pub(crate) fn new(cloud: Arc<dyn InstanceProvisioner>) -> Self {
        Self::with(cloud, store(), Names::same())
    }

    pub(crate) fn with(
        cloud: Arc<dyn InstanceProvisioner>,
        store: Arc<dyn Store>,
        names: Names,
    ) -> Self {
        let epoch = DateTime::<Utc>::from_timestamp(1_767_225_600, 0).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
        Self::reopened(cloud, store, names, clock)
    }

    /// As a new process opens it, with the calendar going on.
    pub(crate) fn reopened(
        cloud: Arc<dyn InstanceProvisioner>,
        store: Arc<dyn Store>,
        names: Names,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let verbs = cloud.capabilities().verbs.clone();
        // The catalog, networks and keys have their own tests: here servers stand anywhere.
        let ground = Arc::new(Anywhere);
        let (held, time) = (Arc::clone(&store), Arc::clone(&clock));
        let servers = Servers::new(held, time, ground, SshKeys::Without).unwrap();
        let planner = Arc::new(names);
        let controller = Controller::new(
            region(),
            Arc::clone(&store),
            Arc::clone(&cloud),
            planner,
            Arc::clone(&clock),
        );
        let monitor = Monitor::new(
            region(),
            Arc::clone(&store),
            Arc::clone(&cloud),
            Arc::clone(&clock),
        );
        let mut policy = Policy::default();
        policy.tick = Duration::from_secs(2);
        Self {
            servers: servers.with_region(region(), verbs),
            controller: controller.unwrap(),
            monitor: monitor.unwrap().with_policy(policy),
            store,
            clock,
            cloud,
        }
    }

    pub(crate) fn rules(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut rules = Rules::default();
        change(&mut rules);
        self.controller = self.controller.with_rules(rules);
        self
    }

    pub(crate) fn policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        let mut policy = Policy::default();
        policy.tick = Duration::from_secs(2);
        change(&mut policy);
        self.monitor = self.monitor.with_policy(policy);
        self
    }

    /// Lets controller and monitor work until `story` is over.
    pub(crate) async fn during<T>(&self, story: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            told = story => told,
            () = self.controller.run() => unreachable!("a controller works until it is dropped"),
            () = self.monitor.run() => unreachable!("a monitor works until it is dropped"),
        }
    }

    pub(crate) async fn read(&self, id: ServerId) -> ServerView {
        self.servers.read(&somebody(), id).await.unwrap()
    }

    /// Waits until a server is as wished, looking every half second, for a quarter of an hour at the most.
    pub(crate) async fn until(
        &self,
        id: ServerId,
        wish: impl Fn(&ServerView) -> bool,
    ) -> ServerView {
        for _ in 0..1800 {
            let view = self.read(id).await;
            if wish(&view) {
                return view;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        panic!("never came: {:#?}", self.read(id).await);
    }

    /// Waits until there is no record of a server any more.
    pub(crate) async fn until_gone(&self, id: ServerId) {
        for _ in 0..1800 {
            if self.servers.read(&somebody(), id).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        panic!("never went: {:#?}", self.read(id).await);
    }
}
