//! A region as it is run, over a simulated cloud: from the two files to a running server and back to nothing.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod town;

use std::{sync::Arc, time::Duration};

use fleetwright::InstanceProvisioner;
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    controller::Controller,
    mapping::RegionPlanner,
    monitor::Monitor,
    network::{Deletion, IfUsed, RecordError},
    server::{Consent, Field, Health, Phase, Power, ServerError, ServerView, Way},
};

use town::{CATALOG, Town, flavor, north, server_id, spec, tenant, user, without};

fn mapping(group: impl std::fmt::Display) -> String {
    format!(
        r#"
        region = "north"
        provider = "memory"
        flavors = {{ small = "m1", large = "m4", arm = "a1" }}
        images = {{ debian = "img-7", rocky = "img-8" }}
        [networks.default]
        subnet = "net-1"
        [security-groups]
        {group} = "sg-1"
        "#
    )
}

struct Region {
    town: Town,
    controller: Controller,
    monitor: Monitor,
}

impl Region {
    /// With the region's own planner, as it is run.
    fn new(town: Town, cloud: &MemoryCloud, mapping: &str) -> Self {
        let planner = RegionPlanner::new(town.catalog.clone(), mapping).unwrap();
        let cloud: Arc<dyn InstanceProvisioner> = Arc::new(cloud.provisioner());
        let (store, clock) = (town.store.clone(), town.clock.clone());
        let planner = Arc::new(planner);
        let controller = Controller::new(
            north(),
            store.clone(),
            cloud.clone(),
            planner,
            clock.clone(),
        );
        let monitor = Monitor::new(north(), store, cloud, clock);
        Self {
            town,
            controller: controller.unwrap(),
            monitor: monitor.unwrap(),
        }
    }

    async fn during<T>(&self, story: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            told = story => told,
            () = self.controller.run() => panic!("a controller works until it is dropped"),
            () = self.monitor.run() => panic!("a monitor works until it is dropped"),
        }
    }

    async fn until(&self, phase: Phase) -> ServerView {
        let alice = user(tenant(1, 1));
        for _ in 0..900 {
            let view = self.town.servers.read(&alice, server_id(1)).await.unwrap();
            let settled = view.server.observed_generation == view.server.generation;
            if view.phase == phase && settled {
                return view;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let found = self.town.servers.read(&alice, server_id(1)).await;
        panic!("never {phase:?}: {found:#?}");
    }

    async fn until_gone(&self) {
        let alice = user(tenant(1, 1));
        for _ in 0..900 {
            let read = self.town.servers.read(&alice, server_id(1)).await;
            if let Err(ServerError::NotFound(_)) = read {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("never gone");
    }
}

#[tokio::test(start_paused = true)]
async fn from_two_files_to_a_running_server_and_back_to_nothing() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .read_lag(Duration::from_secs(2))
        .without(fleetwright::OptionalVerb::ResizeInstance)
        .build();
    let town = Town::new().await;
    let alice = user(tenant(1, 1));
    let mut wanted = spec(town.network("blue").await);
    let (network, group) = (wanted.network, town.group(wanted.network, "ssh").await);
    wanted.security_groups.insert(group);
    let verbs = cloud.provisioner().capabilities().verbs.clone();
    let mut region = Region::new(town, &cloud, &mapping(group));
    region.town.servers = region.town.servers.with_region(north(), verbs);
    let town = &region.town;

    let story = async {
        town.ensure(&alice, 1, &wanted).await.unwrap();
        let up = region.until(Phase::Running).await;
        assert_eq!(up.health, Health::Healthy, "{up:#?}");
        let truth = cloud.oracle().instances().remove(0);
        assert_eq!(truth.info.instance_type.unwrap().as_str(), "m1");
        let in_use = town.networks.delete(&alice, network, IfUsed::Refuse).await;
        assert!(
            matches!(in_use, Err(RecordError::InUse { .. })),
            "{in_use:?}"
        );

        // Another flavor takes another machine here, and that takes consent.
        wanted.flavor = flavor("large");
        let keep = Consent::KeepEverything;
        let asked = town.servers.set_spec(&alice, server_id(1), &wanted, keep);
        let needs = asked.await.unwrap_err();
        assert!(matches!(needs, ServerError::NeedsConsent { .. }), "{needs}");
        let plan = town.set(&alice, &wanted).await.unwrap();
        assert_eq!(plan.ways[&Field::Flavor], Way::Replace);
        let large = region.until(Phase::Running).await;
        let id = &large.server.instance.as_ref().unwrap().id;
        let truth = cloud.oracle().instance(id).unwrap();
        assert_eq!(truth.info.instance_type.unwrap().as_str(), "m4");

        let stop = town.servers.set_power(&alice, server_id(1), Power::Stopped);
        stop.await.unwrap();
        region.until(Phase::Stopped).await;

        // The network is asked to go with everything: it waits for the server, whose keeper deletes it.
        let going = town.networks.delete(&alice, network, IfUsed::DeleteFirst);
        assert_eq!(going.await.unwrap(), Deletion::Waiting);
        town.servers.delete(&alice, server_id(1)).await.unwrap();
        region.until_gone().await;
        let gone = town.networks.finish(&alice, network).await.unwrap();
        assert_eq!(gone, Deletion::Gone);
    };
    region.during(story).await;
    assert!(cloud.oracle().leftovers().is_nothing());
    for kind in ["server", "server-key", "network", "security-group"] {
        assert_eq!(town.count(kind).await, 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flavor_that_left_the_file_is_still_launched_for_whoever_has_it() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .build();
    let town = Town::new().await;
    let alice = user(tenant(1, 1));
    let wanted = spec(town.network("blue").await);
    let group = town.group(wanted.network, "ssh").await;
    let region = Region::new(town, &cloud, &mapping(group));
    let town = &region.town;
    let story = async {
        town.ensure(&alice, 1, &wanted).await.unwrap();
        let first = region.until(Phase::Running).await;
        let changes = town.catalog.load(&without(CATALOG, "small")).await.unwrap();
        let said: Vec<_> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            ["flavor small is retired: it is no longer in the file"]
        );

        let replaced = town.servers.request_replace(&alice, server_id(1)).await;
        replaced.unwrap();
        let second = region.until(Phase::Running).await;
        let machine = |view: &ServerView| view.server.instance.as_ref().unwrap().id.clone();
        assert_ne!(machine(&first), machine(&second));
        let truth = cloud.oracle().instance(&machine(&second)).unwrap();
        assert_eq!(truth.info.instance_type.unwrap().as_str(), "m1");

        let refused = town.ensure(&alice, 2, &wanted).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "flavor small is retired: choose one that is offered"
        );
        town.servers.delete(&alice, server_id(1)).await.unwrap();
        region.until_gone().await;
    };
    region.during(story).await;
    assert!(cloud.oracle().leftovers().is_nothing());
}
