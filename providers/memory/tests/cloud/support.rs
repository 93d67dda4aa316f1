//! Shared helpers: configs, time and the oracle.

use std::{future::Future, num::NonZeroU32, time::Duration};

use fleetwright::{
    CloudInstanceState, ConfigBuilder, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceProvisioner, LaunchRecord, LaunchToken, ProvisionError, Zone,
    wait::{self, WaitPolicy},
};
use fleetwright_memory::{
    MemoryCloud, MemoryCloudBuilder, MemoryProvisioner, OracleInstance, Timing,
};

/// Longer than every transition.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const POLICY: WaitPolicy = WaitPolicy::within(Duration::from_secs(600)).jitter_seed(1);

pub(crate) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

pub(crate) fn token(text: &str) -> LaunchToken {
    LaunchToken::new(text).unwrap()
}

pub(crate) fn zone(name: &str) -> Zone {
    Zone::new(name).unwrap()
}

/// Returns a builder for configs of the fleet `blue`.
pub(crate) fn blue() -> ConfigBuilder {
    InstanceConfig::builder("image-1", "small").tag("fleet", "blue")
}

/// Selects the fleet `blue`.
pub(crate) fn all_blue() -> InstanceFilter {
    InstanceFilter::tagged("fleet", "blue").unwrap()
}

/// Returns the basic config of the fleet `blue`.
pub(crate) fn plain() -> InstanceConfig {
    blue().build().unwrap()
}

pub(crate) fn with_token(token: &str) -> InstanceConfig {
    blue().launch_token(token).build().unwrap()
}

pub(crate) fn in_zone(name: &str) -> InstanceConfig {
    let mut config = plain();
    config.placement.zone = Some(zone(name));
    config
}

pub(crate) fn builder() -> MemoryCloudBuilder {
    MemoryCloud::builder().seed(1)
}

/// Builds a cloud in which every transition takes a second.
pub(crate) fn brisk() -> MemoryCloudBuilder {
    builder().timing(Timing::all(seconds(1)))
}

pub(crate) fn open(builder: MemoryCloudBuilder) -> (MemoryCloud, MemoryProvisioner) {
    let cloud = builder.build();
    let provisioner = cloud.provisioner();
    (cloud, provisioner)
}

/// Lets virtual time pass.
pub(crate) async fn pass(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Runs `test` on a separate runtime with virtual time, for property tests.
pub(crate) fn block_on_paused<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

pub(crate) async fn wait_for(
    provisioner: &MemoryProvisioner,
    id: &InstanceId,
    goal: CloudInstanceState,
) {
    let ids = std::slice::from_ref(id);
    wait::for_state(provisioner, ids, goal, &POLICY)
        .await
        .unwrap();
}

/// Launches an instance and waits until it is running.
pub(crate) async fn running(provisioner: &MemoryProvisioner) -> InstanceInfo {
    let info = provisioner.launch_instance(&plain()).await.unwrap();
    wait_for(provisioner, &info.id, CloudInstanceState::Running).await;
    info
}

/// Launches an instance and waits until it is stopped.
pub(crate) async fn stopped(provisioner: &MemoryProvisioner) -> InstanceInfo {
    let info = running(provisioner).await;
    provisioner.stop_instance(&info.id).await.unwrap();
    wait_for(provisioner, &info.id, CloudInstanceState::Stopped).await;
    info
}

pub(crate) async fn state(provisioner: &MemoryProvisioner, id: &InstanceId) -> CloudInstanceState {
    provisioner.describe_instance(id).await.unwrap().state
}

pub(crate) fn truth(cloud: &MemoryCloud, id: &InstanceId) -> OracleInstance {
    cloud.oracle().instance(id).unwrap()
}

pub(crate) fn ids(infos: &[InstanceInfo]) -> Vec<InstanceId> {
    infos.iter().map(|info| info.id.clone()).collect()
}

/// Returns the instances of a launch that was found.
pub(crate) fn found(record: LaunchRecord) -> Vec<InstanceInfo> {
    match record {
        LaunchRecord::Found(found) => found,
        LaunchRecord::Terminated(_) | LaunchRecord::NotFound => panic!("{record:?}"),
    }
}

/// Returns the instances of a terminated launch.
pub(crate) fn terminated_instances(record: LaunchRecord) -> Vec<InstanceInfo> {
    match record {
        LaunchRecord::Terminated(instances) => instances,
        LaunchRecord::Found(_) | LaunchRecord::NotFound => panic!("{record:?}"),
    }
}

/// The ids of all instances that are not terminated, in the order of launch.
pub(crate) fn existing_ids(cloud: &MemoryCloud) -> Vec<InstanceId> {
    cloud.oracle().leftovers().instances
}

/// Launches `config` until one launch is refused. Returns the number of instances and the error.
pub(crate) async fn fill(
    provisioner: &MemoryProvisioner,
    config: &InstanceConfig,
) -> (u32, ProvisionError) {
    for number in 0.. {
        if let Err(error) = provisioner.launch_instance(config).await {
            return (number, error);
        }
    }
    unreachable!("a launch is refused before the numbers overflow")
}
