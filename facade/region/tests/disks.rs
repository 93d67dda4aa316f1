//! A resize to a flavor with a larger disk says that the disk keeps its size, and what it takes to get the larger one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::sync::Arc;

use fleetwright::{InstanceConfig, InstanceProvisioner as _};
use fleetwright_facade_testkit::{NamePlanner, TestRegion, north, server_admin, server_id};
use fleetwright_memory::{MemoryCloud, WireCall};
use fleetwright_region::{
    controller::Controller,
    ids::FlavorId,
    mapping::{LaunchPlanner, LaunchSpec, PlanError},
    server::{ConditionKind, Consent, Phase, ServerView},
};

/// Flavor `small` has a disk of 20 GiB, `large` one of 40 GiB.
#[derive(Debug)]
struct DiskPlanner(NamePlanner);

impl LaunchPlanner for DiskPlanner {
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, PlanError> {
        let mut config = self.0.plan(spec)?;
        let size = if spec.flavor.as_str() == "large" {
            40
        } else {
            20
        };
        config.disk_size_gb = std::num::NonZeroU32::new(size);
        Ok(config)
    }
}

fn settled(view: &ServerView) -> bool {
    view.phase == Phase::Running && view.server.observed_generation == view.server.generation
}

async fn set_flavor(region: &TestRegion, flavor: &str) -> ServerView {
    let (admin, id) = (server_admin(), server_id(1));
    let mut spec = region.read(id).await.server.spec;
    spec.flavor = FlavorId::new(flavor).unwrap();
    let changed = region
        .servers
        .set_spec(&admin, id, &spec, Consent::KeepEverything);
    changed.await.unwrap();
    region.until(id, settled).await
}

#[tokio::test(start_paused = true)]
async fn larger_disk_of_a_flavor_is_a_condition_until_the_next_launch() {
    let cloud = MemoryCloud::new();
    let mut region = TestRegion::new(Arc::new(cloud.provisioner()));
    region.controller = Controller::new(
        north(),
        Arc::clone(&region.store),
        Arc::clone(&region.cloud),
        Arc::new(DiskPlanner(NamePlanner::identity())),
        Arc::clone(&region.clock),
    )
    .unwrap();
    let (admin, id) = (server_admin(), region.create(1).await);
    region
        .during(async {
            let view = region.until(id, settled).await;
            assert!(view.server.conditions.is_empty());
            let view = set_flavor(&region, "large").await;
            let machine = view.server.machine.as_ref().unwrap().id.clone();
            let condition = view.server.condition(ConditionKind::NextLaunch).unwrap();
            for part in [
                "was not resized",
                "20 GiB",
                "40 GiB",
                "replacement",
                "deletes the data",
            ] {
                assert!(condition.message.contains(part), "{condition:?}");
            }
            let status = region.cloud.describe_instance(&machine).await;
            assert!(status.is_ok(), "the machine is the same");
            // A flavor with the disk that the machine has needs nothing.
            let view = set_flavor(&region, "small").await;
            assert!(view.server.conditions.is_empty(), "{view:#?}");
            let view = set_flavor(&region, "large").await;
            assert!(view.server.condition(ConditionKind::NextLaunch).is_some());
            region.servers.request_replace(&admin, id).await.unwrap();
            let replaced = |view: &ServerView| {
                let now = view.server.machine.as_ref();
                settled(view) && now.is_some_and(|now| now.id != machine)
            };
            let view = region.until(id, replaced).await;
            assert!(view.server.conditions.is_empty(), "{view:#?}");
        })
        .await;
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 2);
}
