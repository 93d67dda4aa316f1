//! Faults that need their own scenario: crash, hang, failed boot, unknown state.

use fleetwright::{
    CloudInstanceState::{Pending, Running, Terminated},
    ErrorKind, InstanceProvisioner as _,
};
use fleetwright_memory::{Fault, Phase, Rule, WireCall};
use tokio::time::timeout;

use crate::{
    calls::{self, send},
    support::{
        LONG, all_blue, brisk, existing_ids, found, ids, open, pass, plain, running, seconds,
        terminated_instances, token, truth, with_token,
    },
};

const PHASES: [Phase; 2] = [Phase::Before, Phase::After];

#[tokio::test(start_paused = true)]
async fn crashed_handle_never_returns_and_other_handles_work() {
    let (cloud, provisioner) = open(brisk().latency(seconds(2)));
    let id = running(&provisioner).await.id;
    cloud
        .faults()
        .add(Rule::nth(WireCall::Stop, 1, Fault::Crash(Phase::Before)));
    // A call that is in transit when the process dies does not arrive either.
    let late = async {
        pass(seconds(1) / 2).await;
        timeout(LONG, provisioner.terminate_instance(&id)).await
    };
    let stop = timeout(LONG, provisioner.stop_instance(&id));
    let (late, stopped) = tokio::join!(late, stop);
    assert!(late.is_err() && stopped.is_err());
    let calls = cloud.oracle().total_calls();
    for call in calls::ALL {
        assert!(timeout(LONG, send(call, &provisioner, &id)).await.is_err());
    }
    assert_eq!(
        cloud.oracle().total_calls(),
        calls,
        "a crashed process sends no calls"
    );
    assert_eq!(existing_ids(&cloud), std::slice::from_ref(&id));
    cloud.provisioner().terminate_instance(&id).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn response_does_not_reach_a_crashed_process() {
    let (cloud, provisioner) = open(brisk().latency(seconds(4)));
    cloud.faults().add(Rule::nth(
        WireCall::FindLaunch,
        1,
        Fault::Crash(Phase::After),
    ));
    let token = token("t");
    let find = timeout(LONG, provisioner.find_launch(&token));
    let launch = async {
        pass(seconds(1)).await;
        timeout(LONG, provisioner.launch_instance(&plain())).await
    };
    let describe = async {
        let unknown = fleetwright::InstanceId::new("i-unknown").unwrap();
        timeout(LONG, provisioner.describe_instance(&unknown)).await
    };
    // The cloud handles the describe at the same time as the find, before the crash.
    let (describe, find, launch) = futures_util::future::join3(describe, find, launch).await;
    assert!(describe.is_err() && find.is_err() && launch.is_err());
    assert!(cloud.oracle().leftovers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn hanging_call_does_not_block_other_calls() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    for phase in PHASES {
        cloud
            .faults()
            .add(Rule::nth(WireCall::Describe, 1, Fault::Hang(phase)));
        let hanging = timeout(LONG, provisioner.describe_instance(&id));
        let (hanging, other) =
            tokio::join!(hanging, async { provisioner.describe_instance(&id).await });
        assert!(hanging.is_err());
        assert_eq!(other.unwrap().state, Running);
    }
    assert_eq!(cloud.faults().unused_rules(), []);
}

#[tokio::test(start_paused = true)]
async fn failed_boot_terminates_the_instance_with_the_native_reason() {
    let (cloud, provisioner) = open(brisk());
    let fails = Fault::FailsLate {
        code: "SpotReclaimed".into(),
        message: "try later".into(),
    };
    cloud.faults().add(Rule::nth(WireCall::Launch, 1, fails));
    let info = provisioner.launch_instance(&with_token("t")).await.unwrap();
    assert_eq!(info.state, Pending);
    // A replay while the instance is pending does not prevent the failure.
    assert_eq!(
        provisioner.launch_instance(&with_token("t")).await.unwrap(),
        info
    );
    pass(seconds(1)).await;
    let status = provisioner.describe_instance(&info.id).await.unwrap();
    assert_eq!(status.state, Terminated);
    assert_eq!(
        status.state_reason.as_deref(),
        Some("SpotReclaimed: try later")
    );
    assert!(cloud.oracle().leftovers().is_empty());
    let record = provisioner.find_launch(&token("t")).await.unwrap();
    assert_eq!(
        terminated_instances(record)[0].state_reason,
        status.state_reason
    );
    let error = provisioner
        .launch_instance(&with_token("t"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokenSpent);
    // The fault applied to one launch only.
    running(&provisioner).await;
}

#[tokio::test(start_paused = true)]
async fn unknown_state_is_pending_with_its_native_name_in_every_response() {
    let (cloud, provisioner) = open(brisk());
    let name = "DEFROSTING";
    for call in [
        WireCall::Launch,
        WireCall::Start,
        WireCall::Describe,
        WireCall::ListPage,
        WireCall::FindLaunch,
    ] {
        cloud
            .faults()
            .add(Rule::nth(call, 1, Fault::UnknownState(name.into())));
    }
    let check = |state, native: &Option<String>| {
        assert_eq!((state, native.as_deref()), (Pending, Some(name)));
    };
    let info = provisioner.launch_instance(&with_token("t")).await.unwrap();
    check(info.state, &info.native_state);
    assert_eq!(
        truth(&cloud, &info.id).info.native_state.as_deref(),
        Some("PROVISIONING")
    );
    pass(seconds(1)).await;
    let status = provisioner.describe_instance(&info.id).await.unwrap();
    check(status.state, &status.native_state);
    let listed = provisioner.list_instances(&all_blue()).await.unwrap();
    check(listed[0].state, &listed[0].native_state);
    let record = provisioner.find_launch(&token("t")).await.unwrap();
    let found = found(record);
    check(found[0].state, &found[0].native_state);
    let started = provisioner.start_instance(&info.id).await.unwrap();
    check(started.state, &started.native_state);
    assert_eq!(cloud.faults().unused_rules(), []);
    let listed = provisioner.list_instances(&all_blue()).await.unwrap();
    assert_eq!((ids(&listed), listed[0].state), (vec![info.id], Running));
}

#[test]
fn wire_call_names_are_unique_and_match_display() {
    let mut names = std::collections::BTreeSet::new();
    for call in WireCall::ALL {
        assert!(names.insert(call.as_str()), "{call}");
        assert_eq!(
            (call.to_string(), String::from(call)),
            (call.as_str().into(), call.as_str().into())
        );
        assert_eq!(format!("{call:>16}"), format!("{:>16}", call.as_str()));
    }
    assert_eq!(WireCall::ListPage.as_str(), "list_page");
}

#[tokio::test(start_paused = true)]
async fn request_ids_are_unique() {
    let (cloud, provisioner) = open(brisk());
    cloud
        .faults()
        .add(Rule::always(WireCall::Launch, Fault::Lost(Phase::Before)));
    let unknown = fleetwright::InstanceId::new("i-unknown").unwrap();
    let mut errors = Vec::new();
    for _ in 0..3 {
        errors.push(provisioner.launch_instance(&plain()).await.unwrap_err());
        errors.push(provisioner.describe_instance(&unknown).await.unwrap_err());
    }
    let ids: Vec<_> = errors
        .iter()
        .map(|error| error.request_id().unwrap())
        .collect();
    assert_eq!(ids, ["req-1", "req-2", "req-3", "req-4", "req-5", "req-6"]);
    assert_eq!(
        cloud.oracle().call_count(WireCall::Launch),
        3,
        "lost calls count"
    );
    assert_eq!(cloud.oracle().total_calls(), 6);
}
