//! Launches that EC2 accepts and terminates before they run, under the fallback layer.

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceProvisioner as _, LaunchRecord,
};
use fleetwright_emulators::ec2::{Knobs, LateFailure};
use fleetwright_provider_testkit::{
    emulated::{READ_LAG, parse_name},
    late_shortage::LateShortage,
};

use crate::{alive, config_with_token, emulated::Ec2Harness, wait_for_state};

const ZONES: [&str; 2] = ["us-east-1a", "us-east-1b"];

/// Lets launches in the first zone fail late.
fn fail_late(knobs: &mut Knobs, code: &str) {
    let mut late = LateFailure::new(code, "the launch failed");
    late.zone = Some(ZONES[0].to_owned());
    knobs.late_failures = vec![late];
}

#[tokio::test]
async fn trap_59_late_shortage_moves_to_the_next_zone_whatever_crashes() {
    let harness = Ec2Harness::with_knobs(|knobs| {
        fail_late(knobs, "Server.InsufficientInstanceCapacity");
    });
    LateShortage::new(&harness, ZONES).check().await;
}

#[tokio::test]
async fn trap_59_late_shortage_moves_on_although_reads_are_stale() {
    for seed in 0..8 {
        let harness = Ec2Harness::with_knobs(|knobs| {
            fail_late(knobs, "Server.InsufficientInstanceCapacity");
            (knobs.lag.reads, knobs.lag.writes) = (READ_LAG, READ_LAG);
            knobs.seed = seed;
        });
        let shortage = LateShortage::new(&harness, ZONES);
        shortage.check_without_crash(&format!("seed {seed}")).await;
    }
}

/// EC2 keeps the client token of a launch that failed late, so a replay needs the next one.
#[tokio::test]
async fn trap_59_late_failure_leaves_its_token_free() {
    let harness = Ec2Harness::with_knobs(|knobs| fail_late(knobs, "Client.VolumeLimitExceeded"));
    let mut config = config_with_token(&harness, "t-1");
    config.placement.zone = Some(parse_name(ZONES[0]));
    let ec2 = harness.open().await;
    let token = config.launch_token.clone().unwrap();
    for _ in 0..2 {
        let failed = ec2.launch_instance(&config).await.unwrap().id;
        let status = wait_for_state(&*ec2, &failed, CloudInstanceState::Terminated).await;
        let failure = status.launch_failure.expect("the launch failed");
        assert_eq!(failure.kind, ErrorKind::Quota);
        let record = harness.open().await.find_launch(&token).await.unwrap();
        assert_eq!(record, LaunchRecord::NotFound);
    }
    let mut knobs = harness.emulator().knobs();
    knobs.late_failures.clear();
    harness.emulator().set_knobs(knobs);
    // A new handle does not know which client tokens are used up.
    let launched = harness.open().await.launch_instance(&config).await.unwrap();
    let again = ec2.launch_instance(&config).await.unwrap();
    assert_eq!((again.id, alive(&harness)), (launched.id.clone(), 1));
    // A token whose instance was terminated is spent, although earlier launches of it failed.
    ec2.terminate_instance(&launched.id).await.unwrap();
    let error = ec2.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokenSpent, "{error}");
}
