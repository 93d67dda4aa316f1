//! What others do, past the wire.

use super::{Lab, all};
use crate::cloud::CloudEngine as _;
use crate::ec2::engine::operator::ExternalAction;

fn act(lab: &mut Lab, text: &str) -> Vec<String> {
    lab.engine.catch_up();
    let act: ExternalAction = serde_json::from_str(text).unwrap();
    lab.engine.perform(act).unwrap()
}

#[test]
fn external_resources_exist_without_reads() {
    let mut lab = Lab::new();
    let ids = act(
        &mut lab,
        r#"{"action":"launch_external","count":2,"tags":{"owner":"somebody"}}"#,
    );
    assert_eq!(ids.len(), 2);
    let volume = act(
        &mut lab,
        r#"{"action":"create_external_volume","zone":"us-east-1a","gib":3}"#,
    );
    assert_eq!(lab.engine.core.records_read, 0);
    let reply = lab.ok("DescribeInstances&Filter.1.Name=tag:owner&Filter.1.Value.1=somebody");
    assert_eq!(all(&reply, "instanceId"), ids);
    let reply = lab.ok("DescribeVolumes&Filter.1.Name=status&Filter.1.Value.1=available");
    assert_eq!(all(&reply, "volumeId"), volume);
    assert!(
        lab.engine
            .instances
            .values()
            .all(|instance| instance.fixed.external)
    );
}

#[test]
fn guest_shutdown_follows_the_attribute() {
    let mut lab = Lab::new();
    let stops = lab.running("");
    let ends = lab.running("&InstanceInitiatedShutdownBehavior=terminate");
    for id in [&stops, &ends] {
        act(
            &mut lab,
            &format!(r#"{{"action":"guest_shutdown","id":"{id}"}}"#),
        );
    }
    lab.pass(100);
    assert_eq!(
        (lab.state(&stops), lab.state(&ends)),
        ("stopped", "terminated")
    );
    let reply = lab.ok("DescribeInstances&Filter.1.Name=state-reason-code&Filter.1.Value.1=Client.InstanceInitiatedShutdown");
    assert_eq!(all(&reply, "instanceId").len(), 2);
    let again: ExternalAction =
        serde_json::from_str(&format!(r#"{{"action":"guest_shutdown","id":"{stops}"}}"#)).unwrap();
    assert_eq!(
        lab.engine.perform(again).unwrap_err().code,
        "IncorrectInstanceState"
    );
}

#[test]
fn external_actor_stops_tags_interrupts_and_terminates() {
    let mut lab = Lab::new();
    let id = lab.running("&DisableApiTermination=true");
    let spot = lab.running("&InstanceMarketOptions.MarketType=spot");
    act(
        &mut lab,
        &format!(r#"{{"action":"set_tags","id":"{id}","tags":{{"a":"b"}}}}"#),
    );
    assert_eq!(all(&lab.ok("DescribeTags"), "key"), ["a"]);
    act(&mut lab, &format!(r#"{{"action":"stop","id":"{id}"}}"#));
    assert_eq!(lab.state(&id), "stopping");
    act(
        &mut lab,
        &format!(r#"{{"action":"terminate","id":"{id}"}}"#),
    );
    act(
        &mut lab,
        &format!(r#"{{"action":"interrupt_spot","id":"{spot}"}}"#),
    );
    lab.pass(100);
    assert_eq!(
        (lab.state(&id), lab.state(&spot)),
        ("terminated", "terminated")
    );
    let reply = lab.ok(&format!("DescribeInstances&InstanceId.1={spot}"));
    assert!(reply.contains("<code>Server.SpotInstanceTermination</code>"));
}
