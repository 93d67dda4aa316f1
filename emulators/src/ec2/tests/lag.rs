//! Eventual consistency: reads that lag behind, and calls that do not find new instances.

use super::{Fixture, all};
use crate::{cloud::inject::CallContext, ec2::engine::ReadLag};
use std::time::Duration;

const STALE: CallContext = CallContext {
    request_id: String::new(),
    read_lag: ReadLag::Maximum,
    page_fault: crate::ec2::engine::page::PageFault::None,
    state: None,
    planned_failures: Vec::new(),
    operation_expired: false,
};

fn lagging() -> Fixture {
    let mut fixture = Fixture::with(|knobs| knobs.lag.reads = Duration::from_secs(1));
    fixture.advance(10_000);
    fixture
}

#[test]
fn stale_read_may_miss_a_new_instance() {
    let mut fixture = lagging();
    let id = fixture.launch(1, "&ClientToken=t").remove(0);
    let by_id = format!("DescribeInstances&InstanceId.1={id}");
    assert_eq!(
        fixture.call_with_context(&by_id, &STALE).unwrap_err().code,
        "InvalidInstanceID.NotFound"
    );
    let by_token = "DescribeInstances&Filter.1.Name=client-token&Filter.1.Value.1=t";
    assert_eq!(
        all(
            &fixture.call_with_context(by_token, &STALE).unwrap(),
            "instanceId"
        ),
        [""; 0]
    );
    fixture.advance(1_000);
    assert_eq!(
        all(
            &fixture.call_with_context(&by_id, &STALE).unwrap(),
            "instanceId"
        ),
        [id.as_str()]
    );
    assert_eq!(
        all(
            &fixture.call_with_context(by_token, &STALE).unwrap(),
            "instanceId"
        ),
        [id.as_str()]
    );
}

#[test]
fn stale_read_may_return_older_state_and_tags() {
    let mut fixture = lagging();
    let id = fixture.launch_running("");
    fixture.advance(5_000);
    fixture.ok(&format!(
        "CreateTags&ResourceId.1={id}&Tag.1.Key=a&Tag.1.Value=1"
    ));
    fixture.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    let response = fixture
        .call_with_context(&format!("DescribeInstances&InstanceId.1={id}"), &STALE)
        .unwrap();
    assert_eq!(
        (all(&response, "name"), all(&response, "key")),
        (vec!["running".into()], vec![])
    );
    let running = "DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=running";
    assert_eq!(
        all(
            &fixture.call_with_context(running, &STALE).unwrap(),
            "instanceId"
        ),
        [id.as_str()]
    );
    let tags = "DescribeTags";
    assert_eq!(
        all(
            &fixture.call_with_context(tags, &STALE).unwrap(),
            "resourceId"
        ),
        [""; 0]
    );
    fixture.advance(1_000);
    let response = fixture
        .call_with_context(&format!("DescribeInstances&InstanceId.1={id}"), &STALE)
        .unwrap();
    assert_eq!(
        (all(&response, "name"), all(&response, "key")),
        (vec!["shutting-down".into()], vec!["a".into()])
    );
    assert_eq!(
        all(
            &fixture.call_with_context(running, &STALE).unwrap(),
            "instanceId"
        ),
        [""; 0]
    );
    assert_eq!(
        all(
            &fixture.call_with_context(tags, &STALE).unwrap(),
            "resourceId"
        ),
        [id]
    );
}

#[test]
fn reads_return_random_times_of_the_window() {
    let mut fixture = lagging();
    let id = fixture.launch(1, "").remove(0);
    fixture.advance(500);
    let call = format!("DescribeInstances&InstanceId.1={id}");
    let found: Vec<bool> = (0..200).map(|_| fixture.call(&call).is_ok()).collect();
    assert!(found.contains(&true) && found.contains(&false));
}

#[test]
fn versions_that_no_read_can_see_are_dropped() {
    let mut fixture = lagging();
    let id = fixture.launch_running("");
    for number in 0..50 {
        fixture.ok(&format!(
            "CreateTags&ResourceId.1={id}&Tag.1.Key=a&Tag.1.Value={number}"
        ));
        fixture.advance(100);
    }
    assert!(
        fixture
            .engine
            .instance(&id)
            .unwrap()
            .versions
            .iter()
            .count()
            <= 12
    );
    fixture.advance(1_000);
    assert_eq!(
        fixture
            .engine
            .instance(&id)
            .unwrap()
            .versions
            .iter()
            .count(),
        1
    );
}

#[test]
fn new_instance_may_not_be_found_by_id_but_always_by_token() {
    let mut fixture = Fixture::with(|knobs| knobs.lag.writes = Duration::from_secs(3600));
    let id = fixture.launch(1, "&ClientToken=t").remove(0);
    for call in [
        format!("TerminateInstances&InstanceId.1={id}"),
        format!("CreateTags&ResourceId.1={id}&Tag.1.Key=a"),
        format!("ModifyInstanceAttribute&InstanceId={id}&DisableApiTermination.Value=true"),
    ] {
        assert_eq!(
            fixture.refusal_code(&call),
            "InvalidInstanceID.NotFound",
            "{call}"
        );
    }
    assert_eq!(fixture.launch(1, "&ClientToken=t"), [id.as_str()]);
    fixture.advance(3600 * 1000);
    fixture.ok(&format!("TerminateInstances&InstanceId.1={id}"));
}

#[test]
fn no_lag_means_no_random_draw() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let response = fixture
        .call_with_context(&format!("DescribeInstances&InstanceId.1={id}"), &STALE)
        .unwrap();
    assert_eq!(all(&response, "name"), ["running"]);
}
