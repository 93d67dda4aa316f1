//! The lifecycle of servers on the memory cloud.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright::UserData;
use fleetwright_facade_testkit::{TestRegion, bare_server, server_admin};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::server::{MAX_USER_DATA_BYTES, Phase, ServerView};

#[tokio::test(start_paused = true)]
async fn server_lifecycle_on_the_memory_cloud() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .read_lag(Duration::from_secs(3))
        .build();
    let region = TestRegion::new(Arc::new(cloud.provisioner()));
    fleetwright_facade_testkit::lifecycle::run_server_lifecycle(&region).await;
    assert!(cloud.oracle().leftovers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn largest_user_data_can_be_launched() {
    let mut builder = MemoryCloud::builder();
    builder = builder.latency(Duration::from_millis(20));
    let cloud = builder.build();
    let region = TestRegion::new(Arc::new(cloud.provisioner()));
    let mut new = bare_server(1);
    // The limit of this cloud. A record accepts twice as much and contains it four times.
    let script = |bytes: usize| UserData::new(format!("{:x<bytes$}", "#!/bin/sh\n")).unwrap();
    let data = script(16 * 1024);
    new.spec.user_data = Some(data.clone());
    let principal = server_admin();
    region.servers.ensure(&principal, &new).await.unwrap();
    let is_running = |view: &ServerView| view.phase == Phase::Running;
    region.during(region.until(new.id, is_running)).await;
    let truth = cloud.oracle().instances().remove(0);
    assert_eq!(truth.user_data, Some(data));
    // A record at the limit fits, whatever its cloud accepts.
    let mut server = region.read(new.id).await.server;
    let data = Some(script(MAX_USER_DATA_BYTES));
    server.spec.user_data.clone_from(&data);
    let launch = server.launch.as_mut().unwrap();
    launch.spec.user_data.clone_from(&data);
    launch.config.user_data.clone_from(&data);
    server.machine.as_mut().unwrap().applied.user_data = data;
    let json = serde_json::to_string(&server).unwrap();
    assert!(json.len() < fleetwright_store::limits::MAX_VALUE_BYTES * 3 / 4);
}
