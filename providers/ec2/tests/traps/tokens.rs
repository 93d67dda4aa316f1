//! Client tokens, which EC2 keeps by zone and compares by its own rules; and empty tag lists.

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceProvisioner as _, TagChange, UserData, Zone,
};
use fleetwright_emulators::ec2::{Action, Fault, FaultRule, Phase};

use crate::{alive, config_with_token, emulated::Ec2Harness, launch_error, wait_for_state};

#[tokio::test]
async fn trap_08_token_fits_64_characters_and_other_parameters_are_a_conflict() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let mut config = config_with_token(&harness, &"long-".repeat(25));
    config.user_data = Some(UserData::new("one").unwrap());
    harness.open().await.launch_instance(&config).await.unwrap();
    let sent = &harness.latest_call("RunInstances").parameters["ClientToken"];
    assert!(sent.len() <= 64 && sent.is_ascii(), "{sent}");
    config.user_data = Some(UserData::new("two").unwrap());
    let error = launch_error(&harness, &config).await;
    assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn trap_09_same_token_in_another_zone_is_a_conflict() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let mut config = config_with_token(&harness, "t-1");
    config.placement.zone = Some(Zone::new("us-east-1a").unwrap());
    harness.open().await.launch_instance(&config).await.unwrap();
    for zone in ["us-east-1b", "us-east-1c"] {
        config.placement.zone = Some(Zone::new(zone).unwrap());
        let error = launch_error(&harness, &config).await;
        assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
    }
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn trap_10_token_of_a_terminated_instance_is_spent() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let (ec2, config) = (harness.open().await, config_with_token(&harness, "t-1"));
    let id = ec2.launch_instance(&config).await.unwrap().id;
    ec2.terminate_instance(&id).await.unwrap();
    wait_for_state(&*ec2, &id, CloudInstanceState::Terminated).await;
    let error = launch_error(&harness, &config).await;
    assert_eq!(error.kind(), ErrorKind::TokenSpent, "{error}");
    assert_eq!(alive(&harness), 0);
}

#[tokio::test]
async fn trap_11_every_attempt_sends_the_same_client_token() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let lost = Fault::Lost {
        phase: Phase::After,
    };
    harness
        .emulator()
        .add_fault(FaultRule::nth(Action::RunInstances, 1, lost));
    let (ec2, config) = (harness.open().await, config_with_token(&harness, "t-1"));
    ec2.launch_instance(&config).await.unwrap_err();
    let first = harness.latest_call("RunInstances").parameters["ClientToken"].clone();
    // A new process, which knows only the caller's token.
    let replayed = harness.open().await.launch_instance(&config).await.unwrap();
    assert_eq!(
        harness.latest_call("RunInstances").parameters["ClientToken"],
        first
    );
    assert_eq!(
        harness.emulator().oracle().instances[0].id,
        replayed.id.as_str()
    );
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn trap_12_second_termination_succeeds() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    for _ in 0..2 {
        ec2.terminate_instance(&id).await.unwrap();
    }
    wait_for_state(&*ec2, &id, CloudInstanceState::Terminated).await;
    ec2.terminate_instance(&id).await.unwrap();
}

#[tokio::test]
async fn trap_13_empty_tag_list_is_not_sent() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let mut config = harness.config();
    config.tags.insert("a", "1").unwrap();
    let id = ec2.launch_instance(&config).await.unwrap().id;
    ec2.update_tags(&id, &TagChange::new().remove("a").unwrap())
        .await
        .unwrap();
    ec2.update_tags(&id, &TagChange::new().set("b", "2").unwrap())
        .await
        .unwrap();
    ec2.update_tags(&id, &TagChange::new()).await.unwrap();
    let calls = harness.emulator().oracle().calls;
    assert_eq!((calls["DeleteTags"], calls["CreateTags"]), (1, 1));
}
