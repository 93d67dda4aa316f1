//! Start, stop, reboot, terminate: states before and after, and batches that are all or nothing.

use super::{Lab, all, named};

fn on(action: &str, id: &str) -> String {
    format!("{action}&InstanceId.1={id}")
}

/// The states before and after, as a reply tells them.
fn states(reply: &str) -> (String, String) {
    let names = all(reply, "name");
    (names[1].clone(), names[0].clone())
}

#[test]
fn lifecycle_from_launch_to_expiry() {
    let mut lab = Lab::new();
    let id = lab.running("");
    let tell = |before: &str, after: &str| (before.to_owned(), after.to_owned());
    assert_eq!(
        states(&lab.ok(&on("StopInstances", &id))),
        tell("running", "stopping")
    );
    lab.pass(100);
    assert_eq!(
        states(&lab.ok(&on("StopInstances", &id))),
        tell("stopped", "stopped")
    );
    assert_eq!(
        states(&lab.ok(&on("StartInstances", &id))),
        tell("stopped", "pending")
    );
    assert_eq!(
        states(&lab.ok(&on("StartInstances", &id))),
        tell("pending", "pending")
    );
    lab.pass(100);
    assert_eq!(
        states(&lab.ok(&on("StartInstances", &id))),
        tell("running", "running")
    );
    assert_eq!(
        all(&lab.ok(&on("RebootInstances", &id)), "return"),
        ["true"]
    );
    assert_eq!(
        states(&lab.ok(&on("TerminateInstances", &id))),
        tell("running", "shutting-down")
    );
    assert_eq!(
        states(&lab.ok(&on("TerminateInstances", &id))),
        tell("shutting-down", "shutting-down")
    );
    lab.pass(100);
    assert_eq!(
        states(&lab.ok(&on("TerminateInstances", &id))),
        tell("terminated", "terminated")
    );
    lab.pass(3_599_999);
    assert_eq!(
        all(&lab.ok(&on("DescribeInstances", &id)), "name"),
        ["terminated"]
    );
    lab.pass(1);
    assert_eq!(
        lab.code(&on("DescribeInstances", &id)),
        "InvalidInstanceID.NotFound"
    );
    assert_eq!(
        lab.code(&on("TerminateInstances", &id)),
        "InvalidInstanceID.NotFound"
    );
}

#[test]
fn every_command_in_every_state() {
    let codes = |prepare: &dyn Fn(&mut Lab) -> String| {
        [
            "StopInstances",
            "StartInstances",
            "RebootInstances",
            "TerminateInstances",
        ]
        .map(|action| {
            let mut lab = Lab::new();
            let id = prepare(&mut lab);
            lab.call(&on(action, &id))
                .map_or_else(|refusal| refusal.code.into_owned(), |_| "ok".to_owned())
        })
    };
    let wrong = "IncorrectInstanceState";
    assert_eq!(
        codes(&|lab| lab.launch(1, "").remove(0)),
        [wrong, "ok", wrong, "ok"]
    );
    assert_eq!(codes(&|lab| lab.running("")), ["ok"; 4]);
    let stopping = |lab: &mut Lab| {
        let id = lab.running("");
        lab.ok(&on("StopInstances", &id));
        id
    };
    assert_eq!(codes(&stopping), ["ok", wrong, wrong, "ok"]);
    let stopped = |lab: &mut Lab| {
        let id = stopping(lab);
        lab.pass(100);
        id
    };
    assert_eq!(codes(&stopped), ["ok", "ok", wrong, "ok"]);
    let ending = |lab: &mut Lab| {
        let id = lab.running("");
        lab.ok(&on("TerminateInstances", &id));
        id
    };
    assert_eq!(codes(&ending), [wrong, wrong, wrong, "ok"]);
    let ended = |lab: &mut Lab| {
        let id = ending(lab);
        lab.pass(100);
        id
    };
    assert_eq!(codes(&ended), [wrong, wrong, wrong, "ok"]);
}

#[test]
fn one_bad_id_fails_the_batch() {
    let mut lab = Lab::new();
    let mut ids = lab.launch(2, "");
    lab.pass(100);
    ids.push("i-00000000000000bad".to_owned());
    for action in ["StopInstances", "RebootInstances", "TerminateInstances"] {
        assert_eq!(
            lab.code(&format!("{action}{}", named(&ids))),
            "InvalidInstanceID.NotFound",
            "{action}"
        );
    }
    ids[2] = "web-1".to_owned();
    assert_eq!(
        lab.code(&format!("TerminateInstances{}", named(&ids))),
        "InvalidInstanceID.Malformed"
    );
    assert_eq!(
        (lab.state(&ids[0]), lab.state(&ids[1])),
        ("running", "running")
    );
    assert_eq!(lab.code("TerminateInstances"), "MissingParameter");
    // A wrong state of one spares the others, too.
    ids[2] = lab.launch(1, "").remove(0);
    assert_eq!(
        lab.code(&format!("StopInstances{}", named(&ids))),
        "IncorrectInstanceState"
    );
    assert_eq!(lab.state(&ids[0]), "running");
}

#[test]
fn duplicate_id_is_one_instance() {
    let mut lab = Lab::new();
    let id = lab.running("");
    let reply = lab.ok(&format!(
        "TerminateInstances&InstanceId.1={id}&InstanceId.2={id}"
    ));
    assert_eq!(all(&reply, "instanceId"), [id]);
}

#[test]
fn protected_instance_protects_its_zone_only() {
    let mut lab = Lab::new();
    let protected =
        lab.running("&DisableApiTermination=true&Placement.AvailabilityZone=us-east-1a");
    let beside = lab.running("&Placement.AvailabilityZone=us-east-1a");
    let elsewhere = lab.running("&Placement.AvailabilityZone=us-east-1b");
    let ids = [protected.clone(), beside.clone(), elsewhere.clone()];
    assert_eq!(
        lab.code(&format!("TerminateInstances{}", named(&ids))),
        "OperationNotPermitted"
    );
    assert_eq!(
        (lab.state(&protected), lab.state(&beside)),
        ("running", "running")
    );
    assert_eq!(lab.state(&elsewhere), "shutting-down");
    lab.ok(&format!(
        "ModifyInstanceAttribute&InstanceId={protected}&DisableApiTermination.Value=false"
    ));
    lab.ok(&on("TerminateInstances", &protected));
}

#[test]
fn one_time_spot_instance_cannot_be_stopped() {
    let mut lab = Lab::new();
    let spot = "&InstanceMarketOptions.MarketType=spot";
    let id = lab.running(spot);
    assert_eq!(lab.code(&on("StopInstances", &id)), "UnsupportedOperation");
    let id = lab.running(&format!(
        "{spot}&InstanceMarketOptions.SpotOptions.SpotInstanceType=persistent"
    ));
    lab.ok(&on("StopInstances", &id));
}

#[test]
fn a_stopped_instance_has_no_public_address_and_starts_with_another() {
    let mut lab = Lab::new();
    let id = lab.running("");
    let shown = |lab: &mut Lab, name: &str| all(&lab.ok(&on("DescribeInstances", &id)), name);
    let (public, private) = (
        shown(&mut lab, "ipAddress"),
        shown(&mut lab, "privateIpAddress"),
    );
    lab.ok(&on("StopInstances", &id));
    assert_eq!(shown(&mut lab, "ipAddress"), [""; 0]);
    lab.pass(100);
    lab.ok(&on("StartInstances", &id));
    lab.pass(100);
    assert_ne!(shown(&mut lab, "ipAddress"), public);
    assert_eq!(shown(&mut lab, "privateIpAddress"), private);
    assert_eq!(shown(&mut lab, "launchTime"), ["2026-01-01T00:00:00.200Z"]);
}

#[test]
fn terminate_preempts_a_stop_and_a_boot() {
    let mut lab = Lab::new();
    let id = lab.running("");
    lab.ok(&on("StopInstances", &id));
    lab.pass(50);
    lab.ok(&on("TerminateInstances", &id));
    lab.pass(50);
    assert_eq!(lab.state(&id), "shutting-down");
    lab.pass(50);
    assert_eq!(lab.state(&id), "terminated");
    let id = lab.launch(1, "").remove(0);
    lab.ok(&on("TerminateInstances", &id));
    lab.pass(100);
    assert_eq!(lab.state(&id), "terminated");
}

#[test]
fn dry_run_changes_nothing() {
    let mut lab = Lab::new();
    let id = lab.running("");
    for action in [
        "StopInstances",
        "StartInstances",
        "RebootInstances",
        "TerminateInstances",
    ] {
        assert_eq!(
            lab.code(&format!("{}&DryRun=true", on(action, &id))),
            "DryRunOperation"
        );
    }
    assert_eq!(lab.state(&id), "running");
    assert_eq!(
        lab.code(&format!("{}&Hibernate=true", on("StopInstances", &id))),
        "UnsupportedHibernationConfiguration"
    );
}
