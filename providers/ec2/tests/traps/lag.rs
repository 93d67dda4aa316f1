//! Reads that lag for longer than a call waits. AWS promises no bound and advises to repeat reads for minutes
//! ("Eventual consistency in the Amazon EC2 API").

use std::time::Duration;

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::{
    Ec2LaunchConfig, Ec2Options, Ec2Provisioner,
    fleetwright::{
        CloudInstanceState, Effect, ErrorKind, InstanceProvisioner as _, Reboot, RetryAdvice,
    },
};
use fleetwright_emulators::ec2::{Capacity, Fault, FaultRule, Knobs};
use fleetwright_provider_testkit::emulated::READ_LAG;

use crate::{alive, config_with_token, emulated::Ec2Harness, wait_for_state};

/// Longer than any test: a call that waits for it never returns.
const HOUR: Duration = Duration::from_secs(3600);

fn other_options() -> Ec2LaunchConfig {
    let mut launch = Ec2LaunchConfig::new();
    launch.metadata.hop_limit = 3;
    launch
}

/// Opens a handle whose window is an hour and whose calls wait for [`READ_LAG`].
async fn open(harness: &Ec2Harness, launch: Ec2LaunchConfig) -> Ec2Provisioner {
    let mut options = harness.options();
    (options.consistency_window, options.usual_lag) = (HOUR, READ_LAG);
    harness.open_with_options(launch, options).await
}

fn set_knobs(harness: &Ec2Harness, change: impl FnOnce(&mut Knobs)) {
    let mut knobs = harness.emulator().knobs();
    change(&mut knobs);
    harness.emulator().set_knobs(knobs);
}

#[test]
fn trap_58_absence_is_proved_after_minutes() {
    let options = Ec2Options::default();
    assert_eq!(options.consistency_window, Duration::from_secs(300));
    assert!(options.usual_lag < options.consistency_window);
}

#[tokio::test]
async fn trap_58_call_does_not_wait_for_the_whole_window() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = open(&harness, Ec2LaunchConfig::new()).await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&ec2, &id, CloudInstanceState::Running).await;
    ec2.stop_instance(&id).await.unwrap();
    wait_for_state(&ec2, &id, CloudInstanceState::Stopped).await;
    let error = ec2.reboot_instance(&id, Reboot::Soft).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongState, "{error}");
    // A launch of this handle that no read shows: worth another read soon, for as long as the window.
    let stale = FaultRule::always_any(Fault::StaleRead);
    harness.emulator().add_fault(stale);
    set_knobs(&harness, |knobs| knobs.lag.reads = HOUR);
    let hidden = ec2.launch_instance(&harness.config()).await.unwrap().id;
    let error = ec2.describe_instance(&hidden).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.retry()),
        (ErrorKind::NotFound, RetryAdvice::After(READ_LAG)),
        "{error}"
    );
}

/// EC2 has the client token with other parameters, and no read shows why: a launch of another handle, or one
/// that was refused. Only the window distinguishes them.
#[tokio::test]
async fn trap_58_launch_that_reads_do_not_show_is_not_repeated() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let config = config_with_token(&harness, "t-1");
    let stale = FaultRule::always_any(Fault::StaleRead);
    harness.emulator().add_fault(stale);
    set_knobs(&harness, |knobs| knobs.lag.reads = HOUR);
    let first = open(&harness, Ec2LaunchConfig::new()).await;
    let first = first.launch_instance(&config).await.unwrap();
    let second = open(&harness, other_options()).await;
    for _ in 0..2 {
        let error = second.launch_instance(&config).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect(), error.retry()),
            (
                ErrorKind::Conflict,
                Effect::None,
                RetryAdvice::After(READ_LAG)
            ),
            "{error}"
        );
        assert_eq!(alive(&harness), 1);
    }
    harness.emulator().clear_faults();
    set_knobs(&harness, |knobs| knobs.lag.reads = Duration::ZERO);
    let shown = second.launch_instance(&config).await.unwrap();
    assert_eq!((shown.id, alive(&harness)), (first.id, 1));
}

#[tokio::test]
async fn trap_58_refused_launch_is_repeated_once_absence_is_proved() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.capacity = vec![Capacity::of(0)]);
    let config = config_with_token(&harness, "t-1");
    let refused = harness.open().await.launch_instance(&config).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Capacity);
    set_knobs(&harness, |knobs| knobs.capacity.clear());
    let mut options = harness.options();
    (options.consistency_window, options.usual_lag) = (READ_LAG * 4, READ_LAG);
    let ec2 = harness.open_with_options(other_options(), options).await;
    let mut conflicts = 0;
    let launched = loop {
        match ec2.launch_instance(&config).await {
            Ok(launched) => break launched,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                conflicts += 1;
            }
        }
    };
    assert!(conflicts > 0, "a call waits only for the usual lag");
    let replayed = harness.open().await.launch_instance(&config).await.unwrap();
    assert_eq!((replayed.id, alive(&harness)), (launched.id, 1));
}
