//! A bulk insert has its own names and its own failures.

use std::{collections::BTreeSet, num::NonZeroU32};

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{Capacity, Fault, FaultRule, Method, Phase};
use fleetwright_gcp::fleetwright::{CloudInstanceState, ErrorKind, InstanceProvisioner as _};

use crate::{alive, config_with_token, emulated::GcpHarness, wait_for_state};

const FIVE: NonZeroU32 = NonZeroU32::new(5).unwrap();

#[tokio::test]
async fn trap_38_batch_is_one_bulk_insert_with_bare_types() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut launch = GcpHarness::launch_config();
    launch.disk_type = Some("pd-balanced".to_owned());
    launch.local_ssds = 1;
    let gcp = harness.open_with(launch).await;
    let config = config_with_token(&harness, "bulk");
    let launched = gcp.launch_instances(&config, FIVE).await.unwrap();
    let ids: BTreeSet<_> = launched.iter().map(|info| info.id.clone()).collect();
    assert_eq!((ids.len(), alive(&harness)), (5, 5));
    assert_eq!(harness.call_count("instances.insert"), 1);
    assert_eq!(harness.call_count("instances.bulkInsert"), 1);
    let replay = gcp.launch_instances(&config, FIVE).await.unwrap();
    let same: BTreeSet<_> = replay.iter().map(|info| info.id.clone()).collect();
    assert_eq!((same, alive(&harness)), (ids, 5));
}

#[tokio::test]
async fn trap_38_partial_bulk_insert_returns_survivors_and_the_reason() {
    let harness = GcpHarness::with_knobs(|knobs| knobs.capacity = vec![Capacity::of(3)]);
    let gcp = harness.open().await;
    let config = config_with_token(&harness, "partly");
    let error = gcp.launch_instances(&config, FIVE).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    assert_eq!(error.survivors().len(), 3, "{error}");
    assert_eq!(alive(&harness), 3, "Compute Engine removes nothing");
    let mut knobs = harness.emulator().knobs();
    knobs.capacity = Vec::new();
    harness.emulator().set_knobs(knobs);
    let launched = gcp.launch_instances(&config, FIVE).await.unwrap();
    let ids: BTreeSet<_> = launched.iter().map(|info| info.id.clone()).collect();
    assert_eq!((ids.len(), alive(&harness)), (5, 5));
    for id in &ids {
        wait_for_state(&*gcp, id, CloudInstanceState::Running).await;
    }
}

#[tokio::test]
async fn trap_38_lost_response_of_a_bulk_insert_launches_nothing_twice() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let config = config_with_token(&harness, "lost");
    let lost = FaultRule::nth(
        Method::InstancesBulkInsert,
        1,
        Fault::Lost {
            phase: Phase::After,
        },
    );
    harness.emulator().add_fault(lost);
    let error = gcp.launch_instances(&config, FIVE).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(alive(&harness), 5);
    let launched = gcp.launch_instances(&config, FIVE).await.unwrap();
    assert_eq!((launched.len(), alive(&harness)), (5, 5));
}
