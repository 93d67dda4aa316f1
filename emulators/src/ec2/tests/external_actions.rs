//! External actions.

use super::{Fixture, all};
use crate::cloud::CloudEngine as _;
use crate::ec2::engine::external_action::ExternalAction;

fn act(fixture: &mut Fixture, text: &str) -> Vec<String> {
    fixture.engine.catch_up();
    let act: ExternalAction = serde_json::from_str(text).unwrap();
    fixture.engine.perform(act).unwrap()
}

#[test]
fn external_resources_exist_without_reads() {
    let mut fixture = Fixture::new();
    let ids = act(
        &mut fixture,
        r#"{"action":"launch_external","count":2,"tags":{"owner":"somebody"}}"#,
    );
    assert_eq!(ids.len(), 2);
    let volume = act(
        &mut fixture,
        r#"{"action":"create_external_volume","zone":"us-east-1a","gib":3}"#,
    );
    assert_eq!(fixture.engine.core.records_read, 0);
    let response =
        fixture.ok("DescribeInstances&Filter.1.Name=tag:owner&Filter.1.Value.1=somebody");
    assert_eq!(all(&response, "instanceId"), ids);
    let response = fixture.ok("DescribeVolumes&Filter.1.Name=status&Filter.1.Value.1=available");
    assert_eq!(all(&response, "volumeId"), volume);
    assert!(
        fixture
            .engine
            .instances
            .values()
            .all(|instance| instance.fixed.external)
    );
}

#[test]
fn guest_shutdown_follows_the_attribute() {
    let mut fixture = Fixture::new();
    let stops = fixture.launch_running("");
    let ends = fixture.launch_running("&InstanceInitiatedShutdownBehavior=terminate");
    for id in [&stops, &ends] {
        act(
            &mut fixture,
            &format!(r#"{{"action":"guest_shutdown","id":"{id}"}}"#),
        );
    }
    fixture.advance(100);
    assert_eq!(
        (fixture.state(&stops), fixture.state(&ends)),
        ("stopped", "terminated")
    );
    let response = fixture.ok("DescribeInstances&Filter.1.Name=state-reason-code&Filter.1.Value.1=Client.InstanceInitiatedShutdown");
    assert_eq!(all(&response, "instanceId").len(), 2);
    let again: ExternalAction =
        serde_json::from_str(&format!(r#"{{"action":"guest_shutdown","id":"{stops}"}}"#)).unwrap();
    assert_eq!(
        fixture.engine.perform(again).unwrap_err().code,
        "IncorrectInstanceState"
    );
}

#[test]
fn external_actor_stops_tags_interrupts_and_terminates() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("&DisableApiTermination=true");
    let spot = fixture.launch_running("&InstanceMarketOptions.MarketType=spot");
    act(
        &mut fixture,
        &format!(r#"{{"action":"set_tags","id":"{id}","tags":{{"a":"b"}}}}"#),
    );
    assert_eq!(all(&fixture.ok("DescribeTags"), "key"), ["a"]);
    act(&mut fixture, &format!(r#"{{"action":"stop","id":"{id}"}}"#));
    assert_eq!(fixture.state(&id), "stopping");
    act(
        &mut fixture,
        &format!(r#"{{"action":"terminate","id":"{id}"}}"#),
    );
    act(
        &mut fixture,
        &format!(r#"{{"action":"interrupt_spot","id":"{spot}"}}"#),
    );
    fixture.advance(100);
    assert_eq!(
        (fixture.state(&id), fixture.state(&spot)),
        ("terminated", "terminated")
    );
    let response = fixture.ok(&format!("DescribeInstances&InstanceId.1={spot}"));
    assert!(response.contains("<code>Server.SpotInstanceTermination</code>"));
}
