//! The eight cases of the seed's contract on the memory backend.

use std::time::Duration;

use fleetwright::{
    CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated, Terminating},
    InstanceConfig, InstanceFilter, InstanceProvisioner as _, InstanceProvisionerExt as _,
    InvalidValue,
    wait::WaitPolicy,
};
use fleetwright_memory::{MemoryCloud, MemoryProvisioner};

const POLICY: WaitPolicy = WaitPolicy::within(Duration::from_secs(60));

fn handle() -> MemoryProvisioner {
    MemoryCloud::builder().seed(1).build().provisioner()
}

fn config() -> Result<InstanceConfig, InvalidValue> {
    InstanceConfig::builder("image-1", "small")
        .tag("ManagedBy", "contract")
        .tag("fleet-id", "blue")
        .build()
}

#[tokio::test(start_paused = true)]
async fn launch_returns_valid_info() {
    let (provisioner, config) = (handle(), config().unwrap());
    let info = provisioner.launch_instance(&config).await.unwrap();
    assert!(!info.id.as_str().is_empty());
    assert!(matches!(info.state, Pending | Running));
    assert_eq!(info.tags, config.tags);
    assert_eq!(info.image, Some(config.image));
    assert_eq!(info.instance_type, Some(config.instance_type));
}

#[tokio::test(start_paused = true)]
async fn describe_after_launch_tells_the_same_instance() {
    let provisioner = handle();
    let info = provisioner
        .launch_instance(&config().unwrap())
        .await
        .unwrap();
    let status = provisioner.describe_instance(&info.id).await.unwrap();
    assert_eq!(status.id, info.id);
    assert!(matches!(status.state, Pending | Running));
}

#[tokio::test(start_paused = true)]
async fn a_terminated_instance_is_described_as_such() {
    let provisioner = handle();
    let info = provisioner
        .launch_instance(&config().unwrap())
        .await
        .unwrap();
    provisioner.terminate_instance(&info.id).await.unwrap();
    let status = provisioner.describe_instance(&info.id).await.unwrap();
    assert!(matches!(status.state, Terminating | Terminated));
}

#[tokio::test(start_paused = true)]
async fn terminating_twice_succeeds() {
    let provisioner = handle();
    let info = provisioner
        .launch_instance(&config().unwrap())
        .await
        .unwrap();
    provisioner.terminate_instance(&info.id).await.unwrap();
    provisioner.terminate_instance(&info.id).await.unwrap();
    provisioner
        .terminate_and_wait(&info.id, &POLICY)
        .await
        .unwrap();
    provisioner.terminate_instance(&info.id).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_list_with_the_same_tags_contains_the_instance() {
    let (provisioner, config) = (handle(), config().unwrap());
    let info = provisioner.launch_instance(&config).await.unwrap();
    let mut filter = InstanceFilter::new();
    filter.tags = config.tags;
    let list = provisioner.list_instances(&filter).await.unwrap();
    assert!(list.iter().any(|listed| listed.id == info.id));
}

#[tokio::test(start_paused = true)]
async fn a_list_with_other_tags_is_empty() {
    let provisioner = handle();
    provisioner
        .launch_instance(&config().unwrap())
        .await
        .unwrap();
    let filter = InstanceFilter::tagged("fleet-id", "green").unwrap();
    assert_eq!(provisioner.list_instances(&filter).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn an_empty_config_cannot_be_launched() {
    for (image, instance_type, field) in [
        ("", "small", "image"),
        ("image-1", "", "instance type"),
        ("", "", "image"),
    ] {
        let error = InstanceConfig::builder(image, instance_type).build();
        assert_eq!(error.unwrap_err().field(), field);
    }
}

#[tokio::test(start_paused = true)]
async fn stop_then_start_gives_the_same_instance() {
    let provisioner = handle();
    let info = provisioner
        .launch_and_wait(&config().unwrap(), &POLICY)
        .await
        .unwrap();
    provisioner.stop_instance(&info.id).await.unwrap();
    let status = provisioner.describe_instance(&info.id).await.unwrap();
    assert!(matches!(status.state, Stopping | Stopped));
    provisioner.stop_and_wait(&info.id, &POLICY).await.unwrap();
    let started = provisioner.start_instance(&info.id).await.unwrap();
    assert_eq!(started.id, info.id);
}
