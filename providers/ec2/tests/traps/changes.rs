//! Tags of disks and cards, batches of starts, lists, images and console output.

use std::time::Duration;

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceFilter, InstanceProvisioner as _, NetworkId,
    RetryAdvice, SnapshotRequest, TagChange, Zone,
};
use fleetwright_emulators::ec2::{Action, Fault, FaultRule, Phase};

use crate::{alive, emulated::Ec2Harness, launch_error, wait_for_state};

#[tokio::test]
async fn trap_51_zone_beside_a_subnet_of_another_zone_is_refused() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let mut config = harness.config();
    config.placement.network = Some(NetworkId::new("subnet-00000000000000001").unwrap());
    config.placement.zone = Some(Zone::new("us-east-1b").unwrap());
    let error = launch_error(&harness, &config).await;
    assert_eq!(
        (error.kind(), error.retry()),
        (ErrorKind::Invalid, RetryAdvice::Never),
        "{error}"
    );
    assert!(error.to_string().contains("us-east-1a"), "{error}");
    assert_eq!(alive(&harness), 0);
    config.placement.zone = Some(Zone::new("us-east-1a").unwrap());
    let launched = harness.open().await.launch_instance(&config).await.unwrap();
    assert_eq!(launched.placement.zone, config.placement.zone);
}

#[tokio::test]
async fn trap_52_tags_change_on_disks_and_cards_too() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let (ec2, mut config) = (harness.open().await, harness.config());
    config.tags.insert("old", "1").unwrap();
    let id = ec2.launch_instance(&config).await.unwrap().id;
    let change = TagChange::new().set("new", "2").unwrap();
    let change = change.remove("old").unwrap();
    ec2.update_tags(&id, &change).await.unwrap();
    let oracle = harness.emulator().oracle();
    let instance = &oracle.instances[0].tags;
    let volumes = oracle.volumes.iter().map(|volume| &volume.tags);
    let cards = oracle.network_interfaces.iter().map(|card| &card.tags);
    let all: Vec<_> = volumes.chain(cards).chain([instance]).collect();
    assert_eq!(all.len(), 3, "{oracle:?}");
    for tags in all {
        assert_eq!(tags.get("new").map(String::as_str), Some("2"), "{tags:?}");
        assert!(!tags.contains_key("old"), "{tags:?}");
        assert!(tags.contains_key("fleetwright:config"), "{tags:?}");
    }
}

#[tokio::test]
async fn trap_52_full_set_of_tags_can_be_replaced() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let (ec2, mut config) = (harness.open().await, harness.config());
    let free = 49 - config.tags.len();
    let mut change = TagChange::new();
    for number in 0..free {
        config.tags.insert(format!("old-{number}"), "1").unwrap();
        change = change.remove(format!("old-{number}")).unwrap();
        change = change.set(format!("new-{number}"), "2").unwrap();
    }
    let id = ec2.launch_instance(&config).await.unwrap().id;
    ec2.update_tags(&id, &change).await.unwrap();
    let tags = &harness.emulator().oracle().instances[0].tags;
    let new = tags.keys().filter(|key| key.starts_with("new-")).count();
    assert_eq!(new, free, "{tags:?}");
}

#[tokio::test]
async fn trap_53_batch_of_starts_reads_past_the_state_from_before() {
    let harness = Ec2Harness::new();
    let ec2 = harness.open().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(ec2.launch_instance(&harness.config()).await.unwrap().id);
    }
    for id in &ids {
        wait_for_state(&*ec2, id, CloudInstanceState::Running).await;
    }
    for stopped in ec2.stop_instances(&ids).await {
        stopped.unwrap();
    }
    for id in &ids {
        wait_for_state(&*ec2, id, CloudInstanceState::Stopped).await;
    }
    for started in ec2.start_instances(&ids).await {
        let state = started.unwrap().state;
        let after = [CloudInstanceState::Pending, CloudInstanceState::Running];
        assert!(after.contains(&state), "{state:?}");
    }
}

#[tokio::test]
async fn trap_54_console_output_has_several_lines_of_base64() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*ec2, &id, CloudInstanceState::Running).await;
    for _ in 0..4 {
        let reboot = fleetwright_ec2::fleetwright::Reboot::Soft;
        ec2.reboot_instance(&id, reboot).await.unwrap();
    }
    // One line, EC2's lines, and lines that cut base64's groups of four characters.
    for length in [0, 76, 7] {
        let mut knobs = harness.emulator().knobs();
        knobs.console_line_length = length;
        harness.emulator().set_knobs(knobs);
        let text = ec2.console_output(&id).await.unwrap().text;
        let events: Vec<_> = text
            .lines()
            .filter_map(|line| line.split_once("] "))
            .map(|(_, event)| event)
            .collect();
        let rebooted = "rebooted";
        let expected = ["booted", rebooted, rebooted, rebooted, rebooted];
        assert_eq!(events, expected, "lines of {length}: {text}");
    }
}

#[tokio::test]
async fn trap_55_lists_do_not_read_terminated_instances() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.timing.terminate = Duration::ZERO);
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    ec2.terminate_instance(&id).await.unwrap();
    wait_for_state(&*ec2, &id, CloudInstanceState::Terminated).await;
    assert!(
        ec2.list_instances(&InstanceFilter::new())
            .await
            .unwrap()
            .is_empty()
    );
    let sent = harness.latest_call("DescribeInstances").parameters;
    let named = sent.iter().any(|(_, value)| value == "instance-state-name");
    assert!(named, "{sent:?}");
    assert!(
        !sent.iter().any(|(_, value)| value == "terminated"),
        "{sent:?}"
    );
}

#[tokio::test]
async fn trap_56_image_name_that_exists_is_looked_up_again() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*ec2, &id, CloudInstanceState::Running).await;
    let request = SnapshotRequest::new("golden").unwrap();
    // The first one has looked for the image, and is delayed before it creates one. Meanwhile the second one looks and creates.
    let pause = Fault::Delay {
        phase: Phase::Before,
        by: Duration::from_secs(1),
    };
    let emulator = harness.emulator();
    emulator.add_fault(FaultRule::nth(Action::CreateImage, 1, pause));
    let second = async {
        while !emulator.unused_faults().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let second = harness.open().await;
        second.snapshot_image(&id, &request).await
    };
    let (one, other) = tokio::join!(ec2.snapshot_image(&id, &request), second);
    assert_eq!(one.unwrap(), other.unwrap());
    let calls = emulator.calls();
    let refused: Vec<_> = calls
        .iter()
        .filter_map(|call| call.code.as_deref())
        .collect();
    assert_eq!(refused, ["InvalidAMIName.Duplicate"]);
    assert_eq!(harness.call_count("CreateImage"), 2);
    // A name that no image has, although EC2 says so.
    let refused = Fault::Refused {
        status: 400,
        code: "InvalidAMIName.Duplicate".to_owned(),
        message: "AMI name other is already in use".to_owned(),
    };
    let rule = FaultRule::nth(Action::CreateImage, 1, refused);
    emulator.add_fault(rule);
    let other = SnapshotRequest::new("other").unwrap();
    let error = ec2.snapshot_image(&id, &other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}
