//! Launch settings, and EC2's defaults for those that a launch does not set.

use std::{collections::BTreeSet, num::NonZeroU32};

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::{
    Ec2LaunchConfig, ExtraVolume,
    fleetwright::{
        CloudInstanceState, ErrorKind, InstanceProvisioner as _, PublicAddress, UserData,
    },
};

use crate::{alive, emulated::Ec2Harness, wait_for_state};

#[tokio::test]
async fn trap_35_user_data_limit_counts_raw_bytes_and_data_is_encoded_once() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let (ec2, mut config) = (harness.open().await, harness.config());
    let most = vec![0xff_u8; 16_384];
    config.user_data = Some(UserData::new(&most).unwrap());
    ec2.launch_instance(&config).await.unwrap();
    assert_eq!(
        harness.emulator().oracle().instances[0].user_data.as_ref(),
        Some(&most)
    );
    let before = harness.emulator().oracle().calls;
    config.user_data = Some(UserData::new(vec![b'x'; 16_385]).unwrap());
    let error = ec2.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(
        harness.emulator().oracle().calls,
        before,
        "nothing was sent"
    );
}

#[tokio::test]
async fn trap_36_launch_tags_every_resource_within_the_limits() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let (ec2, mut config) = (harness.open().await, harness.config());
    for at in 0..49 {
        config.tags.insert(format!("k-{at}"), "v").unwrap();
    }
    let id = ec2.launch_instance(&config).await.unwrap().id;
    let oracle = harness.emulator().oracle();
    let tagged = |tags: &std::collections::BTreeMap<String, String>| tags.contains_key("k-48");
    assert!(oracle.volumes.iter().all(|volume| tagged(&volume.tags)));
    assert!(
        oracle
            .network_interfaces
            .iter()
            .all(|card| tagged(&card.tags))
    );
    let sent = harness.latest_call("RunInstances").parameters;
    let kinds: Vec<_> = sent
        .iter()
        .filter(|(key, _)| key.ends_with("ResourceType"))
        .map(|(_, kind)| kind)
        .collect();
    assert_eq!(
        kinds.iter().collect::<BTreeSet<_>>().len(),
        kinds.len(),
        "{kinds:?}"
    );
    config.tags.insert("one-more", "v").unwrap();
    assert_eq!(
        ec2.launch_instance(&config).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
    let mut reserved = harness.config();
    reserved.tags.insert("aws:mine", "v").unwrap();
    assert_eq!(
        ec2.launch_instance(&reserved).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
    ec2.terminate_instance(&id).await.unwrap();
}

#[tokio::test]
async fn trap_37_disk_size_changes_the_root_disk_of_the_image() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let (ec2, mut config) = (harness.open().await, harness.config());
    // Its root device has an unusual name and 30 GiB.
    config.image = harness.other_image().unwrap();
    config.disk_size_gb = NonZeroU32::new(40);
    ec2.launch_instance(&config).await.unwrap();
    let oracle = harness.emulator().oracle();
    let sizes: Vec<_> = oracle.volumes.iter().map(|volume| volume.gib).collect();
    assert_eq!(sizes, [40]);
    ec2.launch_instance(&config).await.unwrap();
    assert_eq!(
        harness.emulator().oracle().calls["DescribeImages"],
        1,
        "each image is read once"
    );
    config.disk_size_gb = NonZeroU32::new(20);
    let error = ec2.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(alive(&harness), 2);
}

#[tokio::test]
async fn trap_38_extra_volumes_are_deleted_with_the_instance() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let mut launch = Ec2LaunchConfig::new();
    launch.extra_volumes = vec![ExtraVolume::new("/dev/sdf", 9)];
    let ec2 = harness.open_with(launch).await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    assert_eq!(harness.emulator().oracle().volumes.len(), 2);
    ec2.terminate_instance(&id).await.unwrap();
    wait_for_state(&ec2, &id, CloudInstanceState::Terminated).await;
    let oracle = harness.emulator().oracle();
    assert!(
        oracle.volumes.is_empty() && oracle.network_interfaces.is_empty(),
        "{oracle:?}"
    );
}

#[tokio::test]
async fn trap_39_public_address_setting_is_sent_with_one_network_interface() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let (ec2, mut config) = (harness.open().await, harness.config());
    config.placement.public_address = Some(PublicAddress::Absent);
    let id = ec2.launch_instance(&config).await.unwrap().id;
    assert_eq!(
        wait_for_state(&*ec2, &id, CloudInstanceState::Running)
            .await
            .public_ip,
        None
    );
    let sent = harness.latest_call("RunInstances").parameters;
    assert!(
        sent.keys()
            .any(|key| key.starts_with("NetworkInterface.1.")),
        "{sent:?}"
    );
    assert!(
        !sent.contains_key("SubnetId")
            && !sent.keys().any(|key| key.starts_with("SecurityGroupId"))
    );
}
