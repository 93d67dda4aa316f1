//! The lifecycle from launch to purge: transitions take time, and resources are deleted at its end.

use std::time::Duration;

use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Stopping, Terminated, Terminating},
    ErrorKind, InstanceProvisioner as _, PublicAddress, RetryAdvice, SecurityGroupId,
};
use fleetwright_memory::{MemoryCloud, MemoryProvisioner, Timing};

use crate::support::{
    all_blue, blue, brisk, builder, existing_ids, many, open, pass, plain, seconds, state, stopped,
    truth,
};

const TICK: Duration = Duration::from_millis(1);

/// Checks that the state is `before` until just before `duration` has passed, and then `after`.
async fn assert_transition(
    provisioner: &MemoryProvisioner,
    id: &fleetwright::InstanceId,
    (before, duration, after): (CloudInstanceState, u64, CloudInstanceState),
) {
    pass(seconds(duration) - TICK).await;
    assert_eq!(state(provisioner, id).await, before);
    pass(TICK).await;
    assert_eq!(state(provisioner, id).await, after);
}

#[tokio::test(start_paused = true)]
async fn every_transition_takes_the_configured_time() {
    let mut timing = Timing::all(seconds(2));
    (timing.boot, timing.stop) = (seconds(11), seconds(7));
    (timing.terminate, timing.reimage) = (seconds(5), seconds(13));
    let (_, provisioner) = open(builder().timing(timing).terminated_visible(seconds(17)));
    let id = &provisioner.launch_instance(&plain()).await.unwrap().id;
    assert_transition(&provisioner, id, (Pending, 11, Running)).await;
    provisioner.stop_instance(id).await.unwrap();
    assert_transition(&provisioner, id, (Stopping, 7, Stopped)).await;
    let started = provisioner.start_instance(id).await.unwrap();
    assert_eq!((&started.id, started.state), (id, Pending));
    assert_transition(&provisioner, id, (Pending, 11, Running)).await;
    let image = fleetwright::ImageId::new("image-2").unwrap();
    provisioner.reimage_instance(id, &image).await.unwrap();
    assert_transition(&provisioner, id, (Pending, 13, Running)).await;
    provisioner.terminate_instance(id).await.unwrap();
    assert_transition(&provisioner, id, (Terminating, 5, Terminated)).await;
    pass(seconds(17) - TICK).await;
    assert_eq!(state(&provisioner, id).await, Terminated);
    pass(TICK).await;
    let error = provisioner.describe_instance(id).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.retry()),
        (ErrorKind::NotFound, RetryAdvice::Never)
    );
}

#[tokio::test(start_paused = true)]
async fn default_timing_is_as_documented() {
    let (_, provisioner) = open(MemoryCloud::builder());
    let id = &provisioner.launch_instance(&plain()).await.unwrap().id;
    assert_transition(&provisioner, id, (Pending, 5, Running)).await;
    provisioner.stop_instance(id).await.unwrap();
    assert_transition(&provisioner, id, (Stopping, 3, Stopped)).await;
    let image = fleetwright::ImageId::new("image-2").unwrap();
    provisioner.start_instance(id).await.unwrap();
    assert_transition(&provisioner, id, (Pending, 5, Running)).await;
    provisioner.reimage_instance(id, &image).await.unwrap();
    assert_transition(&provisioner, id, (Pending, 8, Running)).await;
    provisioner.terminate_instance(id).await.unwrap();
    assert_transition(&provisioner, id, (Terminating, 2, Terminated)).await;
}

#[tokio::test(start_paused = true)]
async fn launch_applies_the_config_exactly() {
    let (cloud, provisioner) = open(builder());
    let script = [0, 255, b'\n', 7, 128];
    let mut config = blue()
        .tag("Größe Ä", "")
        .tag("ManagedBy", " spaced  out ")
        .user_data(script)
        .disk_size_gb(33)
        .launch_token("t")
        .build()
        .unwrap();
    config.placement.zone = Some(crate::support::zone("mem-b"));
    config.placement.network = Some(fleetwright::NetworkId::new("net-7").unwrap());
    let groups = ["sg-1", "sg-2"].map(|name| SecurityGroupId::new(name).unwrap());
    config.placement.security_groups = groups.into();
    config.placement.public_address = Some(PublicAddress::Absent);
    config.placement.market = Some(fleetwright::Market::Spot);
    pass(seconds(90)).await;
    let info = provisioner.launch_instance(&config).await.unwrap();
    assert_eq!(info.tags, config.tags);
    assert_eq!(info.placement, config.placement);
    assert_eq!(info.public_ip, None);
    let launched = info.launch_time.unwrap().to_rfc3339();
    assert_eq!(launched, "2026-01-01T00:01:30+00:00");
    let listed = provisioner.list_instances(&all_blue()).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&info));
    let truth = truth(&cloud, &info.id);
    assert_eq!(truth.info, info);
    assert_eq!(truth.user_data, config.user_data);
    assert_eq!(truth.token, config.launch_token);
    let disk = truth.disk.unwrap();
    assert_eq!((disk.size_gb, &disk.instance), (many(33), &info.id));
    let status = provisioner.describe_instance(&info.id).await.unwrap();
    assert_eq!(status, info.into());
}

#[tokio::test(start_paused = true)]
async fn unset_fields_get_reported_defaults() {
    let (cloud, provisioner) = open(builder());
    let info = provisioner.launch_instance(&plain()).await.unwrap();
    let placement = &info.placement;
    assert_eq!(placement.zone.as_ref().unwrap().as_str(), "mem-a");
    assert_eq!(placement.network.as_ref().unwrap().as_str(), "net-default");
    let groups: Vec<_> = placement.security_groups.iter().collect();
    assert_eq!(groups[0].as_str(), "sg-default");
    assert_eq!(groups.len(), 1);
    assert_eq!(placement.public_address, Some(PublicAddress::Assigned));
    assert_eq!(placement.market, Some(fleetwright::Market::OnDemand));
    assert_eq!(
        (info.state_reason, info.native_state),
        (None, Some("PROVISIONING".into()))
    );
    let truth = truth(&cloud, &info.id);
    assert_eq!((truth.token, truth.user_data), (None, None));
    assert_eq!(truth.disk.unwrap().size_gb, many(8));
}

#[tokio::test(start_paused = true)]
async fn every_state_has_a_reason() {
    let (cloud, provisioner) = open(brisk());
    let info = stopped(&provisioner).await;
    let id = &info.id;
    let mut reasons = Vec::new();
    let mut note = || {
        let info = truth(&cloud, id).info;
        reasons.push((info.native_state.unwrap(), info.state_reason.unwrap()));
    };
    note();
    provisioner.start_instance(id).await.unwrap();
    note();
    pass(seconds(1)).await;
    note();
    provisioner.stop_instance(id).await.unwrap();
    note();
    provisioner.terminate_instance(id).await.unwrap();
    note();
    pass(seconds(1)).await;
    note();
    let lines: Vec<_> = reasons.iter().map(|(s, r)| format!("{s} {r}")).collect();
    assert_eq!(
        lines,
        [
            "HALTED stopped",
            "PROVISIONING started",
            "ACTIVE running",
            "HALTING stopped on request",
            "DELETING terminated on request",
            "DELETED terminated",
        ]
    );
    assert_eq!(existing_ids(&cloud), []);
}

#[tokio::test(start_paused = true)]
async fn public_addresses_on_request_are_assigned_only_on_request() {
    let (_, provisioner) = open(brisk().public_addresses_on_request());
    let silent = provisioner.launch_instance(&plain()).await.unwrap();
    assert_eq!(silent.public_ip, None);
    assert_eq!(silent.placement.public_address, Some(PublicAddress::Absent));
    let mut with_address = plain();
    with_address.placement.public_address = Some(PublicAddress::Assigned);
    let with_address = provisioner.launch_instance(&with_address).await.unwrap();
    assert!(with_address.public_ip.is_some());
}
