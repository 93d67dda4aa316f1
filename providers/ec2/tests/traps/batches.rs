//! Batches: EC2 fails a whole call because of one id.

use std::num::NonZeroU32;

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceFilter, InstanceProvisioner as _,
};
use fleetwright_emulators::ec2::Capacity;

use crate::{alive, emulated::Ec2Harness, wait_for_state};

fn count(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

#[tokio::test]
async fn trap_14_unknown_id_does_not_stop_other_terminations() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let launched = ec2
        .launch_instances(&harness.config(), count(7))
        .await
        .unwrap();
    let mut ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    ids.insert(3, harness.unknown_id());
    let results = ec2.terminate_instances(&ids).await;
    for (index, result) in results.into_iter().enumerate() {
        match index {
            3 => assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound),
            _ => result.unwrap(),
        }
    }
    for id in ids.iter().filter(|id| **id != harness.unknown_id()) {
        wait_for_state(&*ec2, id, CloudInstanceState::Terminated).await;
    }
    assert_eq!(alive(&harness), 0);
}

#[tokio::test]
async fn trap_15_unknown_id_does_not_fail_other_descriptions() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let launched = ec2
        .launch_instances(&harness.config(), count(6))
        .await
        .unwrap();
    let mut ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    ids.push(harness.unknown_id());
    let mut results = ec2.describe_instances(&ids).await;
    let missing = results.pop().unwrap().unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    for (id, result) in ids.iter().zip(results) {
        assert_eq!(result.unwrap().id, *id);
    }
}

#[tokio::test]
async fn trap_17_batch_launch_is_all_or_nothing() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.capacity = vec![Capacity::of(2)]);
    let ec2 = harness.open().await;
    let error = ec2
        .launch_instances(&harness.config(), count(3))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    assert_eq!(alive(&harness), 0);
    let sent = harness.latest_call("RunInstances").parameters;
    assert_eq!(
        (sent["MinCount"].as_str(), sent["MaxCount"].as_str()),
        ("3", "3")
    );
}

#[tokio::test]
async fn trap_18_page_size_is_sent_with_lists_but_not_with_ids() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let launched = ec2
        .launch_instances(&harness.config(), count(12))
        .await
        .unwrap();
    let list = ec2.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(list.len(), 12);
    assert!(
        harness
            .latest_call("DescribeInstances")
            .parameters
            .contains_key("MaxResults")
    );
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    assert!(ec2.describe_instances(&ids).await.iter().all(Result::is_ok));
    assert!(
        !harness
            .latest_call("DescribeInstances")
            .parameters
            .contains_key("MaxResults")
    );
}
