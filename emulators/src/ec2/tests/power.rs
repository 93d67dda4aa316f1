//! Start, stop, reboot, terminate: states before and after, and batches that are all or nothing.

use super::{Fixture, all, id_parameters};
use crate::ec2::knobs::RequiredTag;

fn call_on(action: &str, id: &str) -> String {
    format!("{action}&InstanceId.1={id}")
}

/// Returns the states before and after, as the response has them.
fn states(response: &str) -> (String, String) {
    let names = all(response, "name");
    (names[1].clone(), names[0].clone())
}

#[test]
fn lifecycle_from_launch_to_expiry() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let expected = |before: &str, after: &str| (before.to_owned(), after.to_owned());
    assert_eq!(
        states(&fixture.ok(&call_on("StopInstances", &id))),
        expected("running", "stopping")
    );
    fixture.advance(100);
    assert_eq!(
        states(&fixture.ok(&call_on("StopInstances", &id))),
        expected("stopped", "stopped")
    );
    assert_eq!(
        states(&fixture.ok(&call_on("StartInstances", &id))),
        expected("stopped", "pending")
    );
    assert_eq!(
        states(&fixture.ok(&call_on("StartInstances", &id))),
        expected("pending", "pending")
    );
    fixture.advance(100);
    assert_eq!(
        states(&fixture.ok(&call_on("StartInstances", &id))),
        expected("running", "running")
    );
    assert_eq!(
        all(&fixture.ok(&call_on("RebootInstances", &id)), "return"),
        ["true"]
    );
    assert_eq!(
        states(&fixture.ok(&call_on("TerminateInstances", &id))),
        expected("running", "shutting-down")
    );
    assert_eq!(
        states(&fixture.ok(&call_on("TerminateInstances", &id))),
        expected("shutting-down", "shutting-down")
    );
    fixture.advance(100);
    assert_eq!(
        states(&fixture.ok(&call_on("TerminateInstances", &id))),
        expected("terminated", "terminated")
    );
    fixture.advance(3_599_999);
    assert_eq!(
        all(&fixture.ok(&call_on("DescribeInstances", &id)), "name"),
        ["terminated"]
    );
    fixture.advance(1);
    assert_eq!(
        fixture.refusal_code(&call_on("DescribeInstances", &id)),
        "InvalidInstanceID.NotFound"
    );
    assert_eq!(
        fixture.refusal_code(&call_on("TerminateInstances", &id)),
        "InvalidInstanceID.NotFound"
    );
}

#[test]
fn every_command_in_every_state() {
    let codes = |prepare: &dyn Fn(&mut Fixture) -> String| {
        [
            "StopInstances",
            "StartInstances",
            "RebootInstances",
            "TerminateInstances",
        ]
        .map(|action| {
            let mut fixture = Fixture::new();
            let id = prepare(&mut fixture);
            fixture
                .call(&call_on(action, &id))
                .map_or_else(|refusal| refusal.code.into_owned(), |_| "ok".to_owned())
        })
    };
    let wrong = "IncorrectInstanceState";
    assert_eq!(
        codes(&|fixture| fixture.launch(1, "").remove(0)),
        [wrong, "ok", wrong, "ok"]
    );
    assert_eq!(codes(&|fixture| fixture.launch_running("")), ["ok"; 4]);
    let stopping = |fixture: &mut Fixture| {
        let id = fixture.launch_running("");
        fixture.ok(&call_on("StopInstances", &id));
        id
    };
    assert_eq!(codes(&stopping), ["ok", wrong, wrong, "ok"]);
    let stopped = |fixture: &mut Fixture| {
        let id = stopping(fixture);
        fixture.advance(100);
        id
    };
    assert_eq!(codes(&stopped), ["ok", "ok", wrong, "ok"]);
    let ending = |fixture: &mut Fixture| {
        let id = fixture.launch_running("");
        fixture.ok(&call_on("TerminateInstances", &id));
        id
    };
    assert_eq!(codes(&ending), [wrong, wrong, wrong, "ok"]);
    let ended = |fixture: &mut Fixture| {
        let id = ending(fixture);
        fixture.advance(100);
        id
    };
    assert_eq!(codes(&ended), [wrong, wrong, wrong, "ok"]);
}

#[test]
fn one_invalid_id_fails_the_batch() {
    let mut fixture = Fixture::new();
    let mut ids = fixture.launch(2, "");
    fixture.advance(100);
    ids.push("i-00000000000000bad".to_owned());
    for action in ["StopInstances", "RebootInstances", "TerminateInstances"] {
        assert_eq!(
            fixture.refusal_code(&format!("{action}{}", id_parameters(&ids))),
            "InvalidInstanceID.NotFound",
            "{action}"
        );
    }
    ids[2] = "web-1".to_owned();
    assert_eq!(
        fixture.refusal_code(&format!("TerminateInstances{}", id_parameters(&ids))),
        "InvalidInstanceID.Malformed"
    );
    assert_eq!(
        (fixture.state(&ids[0]), fixture.state(&ids[1])),
        ("running", "running")
    );
    assert_eq!(
        fixture.refusal_code("TerminateInstances"),
        "MissingParameter"
    );
    // If one instance is in a wrong state, the others stay unchanged.
    ids[2] = fixture.launch(1, "").remove(0);
    assert_eq!(
        fixture.refusal_code(&format!("StopInstances{}", id_parameters(&ids))),
        "IncorrectInstanceState"
    );
    assert_eq!(fixture.state(&ids[0]), "running");
}

#[test]
fn duplicate_id_is_one_instance() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let response = fixture.ok(&format!(
        "TerminateInstances&InstanceId.1={id}&InstanceId.2={id}"
    ));
    assert_eq!(all(&response, "instanceId"), [id]);
}

#[test]
fn protected_instance_protects_its_zone_only() {
    let mut fixture = Fixture::new();
    let protected =
        fixture.launch_running("&DisableApiTermination=true&Placement.AvailabilityZone=us-east-1a");
    let same_zone = fixture.launch_running("&Placement.AvailabilityZone=us-east-1a");
    let other_zone = fixture.launch_running("&Placement.AvailabilityZone=us-east-1b");
    let ids = [protected.clone(), same_zone.clone(), other_zone.clone()];
    assert_eq!(
        fixture.refusal_code(&format!("TerminateInstances{}", id_parameters(&ids))),
        "OperationNotPermitted"
    );
    assert_eq!(
        (fixture.state(&protected), fixture.state(&same_zone)),
        ("running", "running")
    );
    assert_eq!(fixture.state(&other_zone), "shutting-down");
    fixture.ok(&format!(
        "ModifyInstanceAttribute&InstanceId={protected}&DisableApiTermination.Value=false"
    ));
    fixture.ok(&call_on("TerminateInstances", &protected));
}

#[test]
fn one_time_spot_instance_cannot_be_stopped() {
    let mut fixture = Fixture::new();
    let spot = "&InstanceMarketOptions.MarketType=spot";
    let id = fixture.launch_running(spot);
    assert_eq!(
        fixture.refusal_code(&call_on("StopInstances", &id)),
        "UnsupportedOperation"
    );
    let id = fixture.launch_running(&format!(
        "{spot}&InstanceMarketOptions.SpotOptions.SpotInstanceType=persistent"
    ));
    fixture.ok(&call_on("StopInstances", &id));
}

#[test]
fn stopped_instance_has_no_public_address_and_starts_with_another() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let returned = |fixture: &mut Fixture, name: &str| {
        all(&fixture.ok(&call_on("DescribeInstances", &id)), name)
    };
    let (public, private) = (
        returned(&mut fixture, "ipAddress"),
        returned(&mut fixture, "privateIpAddress"),
    );
    fixture.ok(&call_on("StopInstances", &id));
    assert_eq!(returned(&mut fixture, "ipAddress"), [""; 0]);
    fixture.advance(1500);
    fixture.ok(&call_on("StartInstances", &id));
    fixture.advance(100);
    assert_ne!(returned(&mut fixture, "ipAddress"), public);
    assert_eq!(returned(&mut fixture, "privateIpAddress"), private);
    // In whole seconds, as EC2 has it.
    assert_eq!(
        returned(&mut fixture, "launchTime"),
        ["2026-01-01T00:00:01.000Z"]
    );
}

#[test]
fn terminate_preempts_a_stop_and_a_boot() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    fixture.ok(&call_on("StopInstances", &id));
    fixture.advance(50);
    fixture.ok(&call_on("TerminateInstances", &id));
    fixture.advance(50);
    assert_eq!(fixture.state(&id), "shutting-down");
    fixture.advance(50);
    assert_eq!(fixture.state(&id), "terminated");
    let id = fixture.launch(1, "").remove(0);
    fixture.ok(&call_on("TerminateInstances", &id));
    fixture.advance(100);
    assert_eq!(fixture.state(&id), "terminated");
}

#[test]
fn dry_run_changes_nothing() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    for action in [
        "StopInstances",
        "StartInstances",
        "RebootInstances",
        "TerminateInstances",
    ] {
        assert_eq!(
            fixture.refusal_code(&format!("{}&DryRun=true", call_on(action, &id))),
            "DryRunOperation"
        );
    }
    assert_eq!(fixture.state(&id), "running");
    assert_eq!(
        fixture.refusal_code(&format!("{}&Hibernate=true", call_on("StopInstances", &id))),
        "UnsupportedHibernationConfiguration"
    );
}

#[test]
fn one_id_without_the_required_tag_refuses_the_whole_call() {
    let tag = "&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=fleet&\
               TagSpecification.1.Tag.1.Value=";
    let mut fixture = Fixture::with(|knobs| {
        knobs.required_tag = Some(RequiredTag::new("fleet", "blue"));
    });
    let ours = fixture.launch_running(&format!("{tag}blue"));
    let theirs = fixture.launch_running(&format!("{tag}green"));
    let unknown = "i-0fffffffffffffff0".to_owned();
    for other in [&theirs, &unknown] {
        for action in [
            "StopInstances",
            "StartInstances",
            "RebootInstances",
            "TerminateInstances",
        ] {
            let call = format!("{action}{}", id_parameters(&[ours.clone(), other.clone()]));
            assert_eq!(fixture.refusal_code(&call), "UnauthorizedOperation");
        }
        assert_eq!(fixture.state(&ours), "running");
    }
    let malformed = call_on("TerminateInstances", "i-x");
    assert_eq!(
        fixture.refusal_code(&malformed),
        "InvalidInstanceID.Malformed"
    );
    fixture.ok(&call_on("TerminateInstances", &ours));
    fixture.ok(&call_on("TerminateInstances", &ours));
    fixture.advance(100);
    // A terminated instance has lost its tags.
    let again = call_on("TerminateInstances", &ours);
    assert_eq!(fixture.refusal_code(&again), "UnauthorizedOperation");
}
