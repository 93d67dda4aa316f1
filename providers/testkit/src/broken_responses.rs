//! Responses that cannot be understood must become typed errors, and never a panic or an endless loop.
//!
//! Owns the checks that are the same for every cloud. A check panics with what it found.
#![allow(clippy::expect_used, clippy::panic, reason = "tests may panic")]

use std::{num::NonZeroU32, time::Duration};

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceFilter, InstanceId,
    InstanceProvisioner, InstanceStatus, LaunchToken, ProvisionError, Result,
    wait::{self, WaitPolicy},
};
use fleetwright_contract_tests::Harness;
use fleetwright_emulators::{Cloud, Fault, FaultRule, Phase};

use crate::emulated::{EmulatedAccount, EmulatedHarness};

/// The native operations of changes, and how their responses differ between clouds.
#[derive(Clone, Copy, Debug)]
pub struct ChangeOperations<O> {
    /// The operation of a launch.
    pub launch: O,
    /// The operation of a stop.
    pub stop: O,
    /// The operation of a termination.
    pub terminate: O,
    /// Whether a stop reads the instance before it changes anything.
    pub stop_reads_first: bool,
    /// Whether responses to a stop and a termination have a body that can be truncated.
    pub has_body: bool,
}

/// Checks that a truncated, malformed, reset or lost response is a typed error: without effect for reads, and with
/// an unknown effect for changes. `new_harness` creates a harness whose reads are not stale.
pub async fn check_broken_responses<A: EmulatedAccount>(
    new_harness: impl Fn() -> EmulatedHarness<A>,
    operations: ChangeOperations<<A::Cloud as Cloud>::Operation>,
) {
    let lost = Fault::Lost {
        phase: Phase::After,
    };
    for fault in [Fault::Truncated, Fault::Malformed, Fault::Reset, lost] {
        let harness = new_harness();
        let (cloud, emulator) = (harness.open().await, harness.emulator());
        let launched = cloud.launch_instance(&harness.config()).await;
        let id = launched.expect("a launch").id;
        // A pending instance would refuse the stop before its response could break.
        wait_for_state(&*cloud, &id, CloudInstanceState::Running).await;
        let token = LaunchToken::new("t-1").expect("a token");
        emulator.add_fault(FaultRule::always_any(fault.clone()));
        let mut reads = vec![
            cloud.describe_instance(&id).await.map(drop),
            cloud.list_instances(&InstanceFilter::new()).await.map(drop),
            cloud.find_launch(&token).await.map(drop),
            cloud.console_output(&id).await.map(drop),
        ];
        if operations.stop_reads_first {
            reads.push(cloud.stop_instance(&id).await);
        }
        for (index, result) in reads.into_iter().enumerate() {
            check_error(&fault, &format!("read {index}"), result, Effect::None);
        }
        emulator.clear_faults();
        let inject = |operation| emulator.add_fault(FaultRule::always(operation, fault.clone()));
        inject(operations.launch);
        let launched = cloud.launch_instance(&harness.config()).await;
        check_error(&fault, "launch", launched.map(drop), Effect::Unknown);
        if matches!(fault, Fault::Truncated) && !operations.has_body {
            continue;
        }
        inject(operations.stop);
        inject(operations.terminate);
        let stopped = cloud.stop_instance(&id).await;
        check_error(&fault, "stop", stopped, Effect::Unknown);
        let terminated = cloud.terminate_instance(&id).await;
        check_error(&fault, "terminate", terminated, Effect::Unknown);
    }
}

fn check_error(fault: &Fault, call: &str, result: Result<()>, effect: Effect) {
    let Err(error) = result else {
        panic!("{fault:?}: {call} succeeded")
    };
    let kinds = [
        ErrorKind::Unexpected,
        ErrorKind::Unavailable,
        ErrorKind::Timeout,
    ];
    assert!(kinds.contains(&error.kind()), "{fault:?}: {call}: {error}");
    assert_eq!(error.effect(), effect, "{fault:?}: {call}: {error}");
}

/// Checks that a page whose token leads back to the same page is an error, for a list and for the instances of a
/// launch token. `list` is the native operation of both.
pub async fn check_repeated_page_token<A: EmulatedAccount>(
    harness: &EmulatedHarness<A>,
    list: <A::Cloud as Cloud>::Operation,
) {
    let (cloud, emulator) = (harness.open().await, harness.emulator());
    let config = config_with_token(harness, "t-1");
    let count = NonZeroU32::new(12).expect("twelve");
    let launched = cloud.launch_instances(&config, count).await;
    launched.expect("a launch");
    let token = config.launch_token.expect("a token");
    let inject = || {
        emulator.clear_faults();
        emulator.add_fault(FaultRule::nth(list, 2, Fault::RepeatedToken));
    };
    inject();
    let listed = cloud.list_instances(&InstanceFilter::new()).await;
    check_unexpected("list", &listed.map(drop));
    inject();
    let found = cloud.find_launch(&token).await;
    check_unexpected("find launch", &found.map(drop));
}

fn check_unexpected(call: &str, result: &Result<()>) {
    let kind = result.as_ref().map_err(ProvisionError::kind);
    assert_eq!(kind, Err(ErrorKind::Unexpected), "{call}: {result:?}");
}

/// Waits up to a minute until an instance is in a state.
pub async fn wait_for_state(
    cloud: &dyn InstanceProvisioner,
    id: &InstanceId,
    state: CloudInstanceState,
) -> InstanceStatus {
    let delay = Duration::from_millis(10);
    let policy = WaitPolicy::within(Duration::from_secs(60)).delays(delay, delay * 4);
    let reached = wait::for_state(cloud, std::slice::from_ref(id), state, &policy).await;
    reached.expect("the state is reached").remove(0)
}

/// Returns the harness's config with a launch token.
pub fn config_with_token(harness: &impl Harness, token: &str) -> InstanceConfig {
    let mut config = harness.config();
    config.launch_token = Some(LaunchToken::new(token).expect("a token"));
    config
}
