//! A town with a cloud below it: what is asked of machines, and who makes images of them.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::{sync::Arc, time::Duration};

use fleetwright::InstanceProvisioner;
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    catalog::{CatalogKeeper, Image, ImageState},
    controller::Controller,
    machine::Machines,
    mapping::RegionPlanner,
    monitor::{Monitor, Policy},
    name::Name,
    secret::SshKeys,
    server::{Phase, ServerView},
    snapshot::{NewSnapshot, Snapshots},
};
use fleetwright_runtime::entropy::OsEntropy;
use fleetwright_store::Store;

use crate::town::{Town, image, memory, north, server_id, service, spec};

const MAPPING: &str = r#"
    region = "north"
    provider = "memory"
    flavors = { small = "m1", large = "m4", arm = "a1" }
    images = { debian = "img-7", rocky = "img-8" }
    [networks.default]
    subnet = "net-1"
"#;

/// The image that tests ask for.
pub(crate) const COPY: &str = "0b9c4a52-7d0f-4c1e-9f5e-3a2f6d1c8e77";

/// An image of the server that tests ask for, with tags of which some are the system's.
pub(crate) fn wish() -> NewSnapshot {
    let mut new = NewSnapshot::new(image(COPY), Name::new("golden").unwrap());
    new.description = Some("before the upgrade".to_owned());
    let tags = [
        ("team", "blue"),
        ("fleetwright:token", "forged"),
        ("fleetwright/server", "forged"),
        ("fleetwright-server", "forged"),
        ("Fleetwright-Image", "forged"),
    ];
    new.tags = tags.map(|(key, value)| (key.into(), value.into())).into();
    new
}

pub(crate) struct Yard {
    pub(crate) town: Town,
    pub(crate) cloud: Arc<dyn InstanceProvisioner>,
    pub(crate) controller: Controller,
    pub(crate) monitor: Monitor,
    pub(crate) machines: Machines,
    pub(crate) snapshots: Snapshots,
}

impl Yard {
    pub(crate) async fn new(cloud: &MemoryCloud) -> Self {
        Self::over(memory(), Arc::new(cloud.provisioner())).await
    }

    pub(crate) async fn over(store: Arc<dyn Store>, cloud: Arc<dyn InstanceProvisioner>) -> Self {
        let town = Town::over(store.clone(), Arc::new(OsEntropy)).await;
        let clock = town.clock.clone();
        let planner = Arc::new(RegionPlanner::new(town.catalog.clone(), MAPPING).unwrap());
        let (held, time) = (store.clone(), clock.clone());
        let controller = Controller::new(north(), held, cloud.clone(), planner, time);
        let monitor = Monitor::new(north(), store, cloud.clone(), clock);
        let mut policy = Policy::default();
        policy.tick = Duration::from_secs(2);
        let (machines, snapshots) = Self::reopened(&town, town.store.clone(), cloud.clone()).await;
        Self {
            town,
            cloud,
            controller: controller.unwrap(),
            monitor: monitor.unwrap().with_policy(policy),
            machines,
            snapshots,
        }
    }

    /// As another process has them: with its own store, its own handle of the cloud and its own catalog, in the same time.
    pub(crate) async fn reopened(
        town: &Town,
        store: Arc<dyn Store>,
        cloud: Arc<dyn InstanceProvisioner>,
    ) -> (Machines, Snapshots) {
        // The town's own keeper is the one that launches are planned with.
        let catalog = if Arc::ptr_eq(&store, &town.store) {
            town.catalog.clone()
        } else {
            Arc::new(CatalogKeeper::open(store.clone()).await.unwrap().0)
        };
        let keys = SshKeys::OnePerServer(town.keys.clone());
        let clock = town.clock.clone();
        let machines = Machines::new(store.clone(), clock.clone(), catalog.clone(), keys);
        let snapshots = Snapshots::new(north(), store, catalog, cloud.clone(), clock);
        let machines = machines.unwrap().with_region(north(), cloud);
        (machines, snapshots.unwrap())
    }

    /// Asks for the first server.
    pub(crate) async fn ensure(&self) {
        let network = self.town.network("blue").await;
        let asked = self.town.ensure(&service(), 1, &spec(network)).await;
        asked.unwrap();
    }

    /// Asks for the first server, and waits until it runs.
    pub(crate) async fn running(&self) -> ServerView {
        self.ensure().await;
        self.during(self.until(Phase::Running)).await
    }

    /// Lets the region work until `story` is over; not the images, which are made when a test says so.
    pub(crate) async fn during<T>(&self, story: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            told = story => told,
            () = self.controller.run() => panic!("a controller works until it is dropped"),
            () = self.monitor.run() => panic!("a monitor works until it is dropped"),
        }
    }

    pub(crate) async fn read(&self) -> ServerView {
        let who = service();
        let read = self.town.servers.read(&who, server_id(1));
        read.await.unwrap()
    }

    pub(crate) async fn until(&self, phase: Phase) -> ServerView {
        for _ in 0..900 {
            let view = self.read().await;
            let settled = view.server.observed_generation == view.server.generation;
            if view.phase == phase && (settled || phase == Phase::Replacing) {
                return view;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("never {phase:?}: {:#?}", self.read().await);
    }

    /// The image, as the town's catalog has it once it has looked.
    pub(crate) async fn copy(&self) -> Image {
        self.town.catalog.refresh().await.unwrap();
        let found = self.town.catalog.image(&service(), &image(COPY));
        found.unwrap()
    }

    pub(crate) async fn until_copy(&self, state: ImageState) -> Image {
        for _ in 0..3600 {
            let found = self.copy().await;
            if found.state == state {
                return found;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("never {state}: {:#?}", self.copy().await);
    }
}
