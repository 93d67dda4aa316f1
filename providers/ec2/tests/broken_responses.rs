//! Responses that cannot be understood: typed errors, and never a panic or an endless loop.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use emulated::Ec2Harness;
use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceProvisioner as _, TagChange,
};
use fleetwright_emulators::ec2::{Action, Fault, FaultRule};
use fleetwright_provider_testkit::broken_responses::{
    ChangeOperations, check_broken_responses, check_repeated_page_token,
};

#[tokio::test]
async fn broken_responses_are_typed_errors() {
    let operations = ChangeOperations {
        launch: Action::RunInstances,
        stop: Action::StopInstances,
        terminate: Action::TerminateInstances,
        stop_reads_first: false,
        has_body: true,
    };
    check_broken_responses(|| Ec2Harness::with_knobs(|_| {}), operations).await;
}

#[tokio::test]
async fn repeated_page_token_is_an_error() {
    check_repeated_page_token(&Ec2Harness::with_knobs(|_| {}), Action::DescribeInstances).await;
}

#[tokio::test]
async fn unknown_state_is_pending() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    let state = "hibernated".to_owned();
    harness
        .emulator()
        .add_fault(FaultRule::always_any(Fault::UnknownState { state }));
    let status = ec2.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Pending);
    assert_eq!(status.native_state.as_deref(), Some("hibernated"));
}

#[tokio::test]
async fn refused_second_call_of_a_tag_change_has_an_unknown_effect() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let mut config = harness.config();
    config.tags.insert("a", "1").unwrap();
    let id = ec2.launch_instance(&config).await.unwrap().id;
    let set = TagChange::new().set("b", "2").unwrap();
    let remove = TagChange::new().remove("a").unwrap();
    let both = set.clone().remove("a").unwrap();
    for (action, change, effect) in [
        (Action::CreateTags, set, Effect::None),
        (Action::DeleteTags, remove, Effect::None),
        (Action::CreateTags, both.clone(), Effect::None),
        (Action::DeleteTags, both, Effect::Unknown),
    ] {
        let refused = FaultRule::nth(action, 1, Fault::Forbidden);
        harness.emulator().clear_faults();
        harness.emulator().add_fault(refused);
        let error = ec2.update_tags(&id, &change).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
        assert_eq!(error.effect(), effect, "{error}");
    }
    // The new tag was set before the old one was to be removed.
    let tags = &harness.emulator().oracle().instances[0].tags;
    assert!(tags.contains_key("a") && tags.contains_key("b"), "{tags:?}");
}
