//! Eventual consistency: reads that trail behind, and calls that do not find what was just
//! launched.

use super::{Lab, all};
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

fn lagging() -> Lab {
    let mut lab = Lab::with(|knobs| knobs.lag.reads = Duration::from_secs(1));
    lab.pass(10_000);
    lab
}

#[test]
fn stale_read_may_miss_a_new_instance() {
    let mut lab = lagging();
    let id = lab.launch(1, "&ClientToken=t").remove(0);
    let by_id = format!("DescribeInstances&InstanceId.1={id}");
    assert_eq!(
        lab.call_as(&by_id, &STALE).unwrap_err().code,
        "InvalidInstanceID.NotFound"
    );
    let by_token = "DescribeInstances&Filter.1.Name=client-token&Filter.1.Value.1=t";
    assert_eq!(
        all(&lab.call_as(by_token, &STALE).unwrap(), "instanceId"),
        [""; 0]
    );
    lab.pass(1_000);
    assert_eq!(
        all(&lab.call_as(&by_id, &STALE).unwrap(), "instanceId"),
        [id.as_str()]
    );
    assert_eq!(
        all(&lab.call_as(by_token, &STALE).unwrap(), "instanceId"),
        [id.as_str()]
    );
}

#[test]
fn stale_read_may_return_older_state_and_tags() {
    let mut lab = lagging();
    let id = lab.running("");
    lab.pass(5_000);
    lab.ok(&format!(
        "CreateTags&ResourceId.1={id}&Tag.1.Key=a&Tag.1.Value=1"
    ));
    lab.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    let reply = lab
        .call_as(&format!("DescribeInstances&InstanceId.1={id}"), &STALE)
        .unwrap();
    assert_eq!(
        (all(&reply, "name"), all(&reply, "key")),
        (vec!["running".into()], vec![])
    );
    let running = "DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=running";
    assert_eq!(
        all(&lab.call_as(running, &STALE).unwrap(), "instanceId"),
        [id.as_str()]
    );
    let tags = "DescribeTags";
    assert_eq!(
        all(&lab.call_as(tags, &STALE).unwrap(), "resourceId"),
        [""; 0]
    );
    lab.pass(1_000);
    let reply = lab
        .call_as(&format!("DescribeInstances&InstanceId.1={id}"), &STALE)
        .unwrap();
    assert_eq!(
        (all(&reply, "name"), all(&reply, "key")),
        (vec!["shutting-down".into()], vec!["a".into()])
    );
    assert_eq!(
        all(&lab.call_as(running, &STALE).unwrap(), "instanceId"),
        [""; 0]
    );
    assert_eq!(all(&lab.call_as(tags, &STALE).unwrap(), "resourceId"), [id]);
}

#[test]
fn reads_return_random_times_of_the_window() {
    let mut lab = lagging();
    let id = lab.launch(1, "").remove(0);
    lab.pass(500);
    let call = format!("DescribeInstances&InstanceId.1={id}");
    let seen: Vec<bool> = (0..200).map(|_| lab.call(&call).is_ok()).collect();
    assert!(seen.contains(&true) && seen.contains(&false));
}

#[test]
fn versions_that_no_read_can_see_are_dropped() {
    let mut lab = lagging();
    let id = lab.running("");
    for number in 0..50 {
        lab.ok(&format!(
            "CreateTags&ResourceId.1={id}&Tag.1.Key=a&Tag.1.Value={number}"
        ));
        lab.pass(100);
    }
    assert!(lab.engine.instance(&id).unwrap().versions.iter().count() <= 12);
    lab.pass(1_000);
    assert_eq!(lab.engine.instance(&id).unwrap().versions.iter().count(), 1);
}

#[test]
fn new_instance_may_not_be_found_by_id_but_always_by_token() {
    let mut lab = Lab::with(|knobs| knobs.lag.writes = Duration::from_secs(3600));
    let id = lab.launch(1, "&ClientToken=t").remove(0);
    for call in [
        format!("TerminateInstances&InstanceId.1={id}"),
        format!("CreateTags&ResourceId.1={id}&Tag.1.Key=a"),
        format!("ModifyInstanceAttribute&InstanceId={id}&DisableApiTermination.Value=true"),
    ] {
        assert_eq!(lab.code(&call), "InvalidInstanceID.NotFound", "{call}");
    }
    assert_eq!(lab.launch(1, "&ClientToken=t"), [id.as_str()]);
    lab.pass(3600 * 1000);
    lab.ok(&format!("TerminateInstances&InstanceId.1={id}"));
}

#[test]
fn no_lag_means_no_random_draw() {
    let mut lab = Lab::new();
    let id = lab.running("");
    let reply = lab
        .call_as(&format!("DescribeInstances&InstanceId.1={id}"), &STALE)
        .unwrap();
    assert_eq!(all(&reply, "name"), ["running"]);
}
