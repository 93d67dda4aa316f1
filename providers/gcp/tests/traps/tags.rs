//! Changes of tags: exact, within Compute Engine's limits, with the right effect.

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{Failure, Fault, FaultRule, Method, Phase};
use fleetwright_gcp::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceProvisioner, Reboot, TagChange,
};

use crate::{emulated::GcpHarness, wait_for_state};

fn ends_with(method: Method, code: &str) -> FaultRule {
    let errors = vec![Failure::new(code, "no")];
    FaultRule::nth(method, 1, Fault::OperationError { errors })
}

#[tokio::test]
async fn tag_change_is_repeated_after_a_late_conflict() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let late = ends_with(Method::InstancesSetLabels, "CONDITION_NOT_MET");
    harness.emulator().add_fault(late);
    let change = TagChange::new().set("b", "2").unwrap();
    gcp.update_tags(&id, &change).await.unwrap();
    assert_eq!(harness.only_instance().labels["b"], "2");
}

#[tokio::test]
async fn tag_change_with_unknown_end_is_not_a_success() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let change = TagChange::new().set("b", "2").unwrap();
    let emulator = harness.emulator();
    emulator.add_fault(ends_with(Method::InstancesSetLabels, "INTERNAL_ERROR"));
    let phase = Phase::Before;
    let broken = Fault::ServerError { phase };
    emulator.add_fault(FaultRule::nth(Method::ZoneOperationsWait, 1, broken));
    gcp.update_tags(&id, &change).await.unwrap_err();
    emulator.clear_faults();
    let expired = FaultRule::always(Method::ZoneOperationsWait, Fault::OperationExpired);
    emulator.add_fault(expired);
    let error = gcp.update_tags(&id, &change).await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    emulator.clear_faults();
    gcp.update_tags(&id, &change).await.unwrap();
    assert_eq!(harness.only_instance().labels["b"], "2");
}

#[tokio::test]
async fn tag_change_that_fails_halfway_has_unknown_effect() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let refused = FaultRule::always(Method::InstancesSetMetadata, Fault::Forbidden);
    harness.emulator().add_fault(refused);
    let change = TagChange::new().set("b", "2").unwrap();
    let change = change.set("Team", "Blue").unwrap();
    let error = gcp.update_tags(&id, &change).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
    assert_eq!(harness.only_instance().labels["b"], "2", "it is there");
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
}

#[tokio::test]
async fn launch_tag_overrides_a_configured_label() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut launch = GcpHarness::launch_config();
    launch.labels = [("team".to_owned(), "blue".to_owned())].into();
    let gcp = harness.open_with(launch).await;
    let mut config = harness.config();
    config.tags.insert("team", "Zürich").unwrap();
    gcp.launch_instance(&config).await.unwrap();
    let filter = InstanceFilter::tagged("team", "Zürich").unwrap();
    let found = gcp.list_instances(&filter).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].tags.get("team"), Some("Zürich"));
}

#[tokio::test]
async fn all_tags_can_be_changed_at_the_label_limit() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let mut config = harness.config();
    let room = gcp.capabilities().tags.max_tags - config.tags.len();
    let mut change = TagChange::new();
    for at in 0..room {
        config.tags.insert(format!("Key {at}"), "Old").unwrap();
        change = change.set(format!("Key {at}"), "New").unwrap();
    }
    let id = gcp.launch_instance(&config).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    gcp.update_tags(&id, &change).await.unwrap();
    let filter = InstanceFilter::tagged("Key 7", "New").unwrap();
    let found = gcp.list_instances(&filter).await.unwrap();
    assert_eq!(found[0].tags, change.apply(&config.tags).unwrap());
}

#[tokio::test]
async fn reboot_fails_with_its_operation() {
    let harness = GcpHarness::with_knobs(|_| {}).wait_for_launch();
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let late = ends_with(Method::InstancesReset, "INTERNAL_ERROR");
    harness.emulator().add_fault(late);
    gcp.reboot_instance(&id, Reboot::Hard).await.unwrap_err();
    gcp.reboot_instance(&id, Reboot::Hard).await.unwrap();
}
