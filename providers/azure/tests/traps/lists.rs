//! Lists: filtered by this crate, joined by ids in any letter case, with addresses from few calls.

use std::num::NonZeroU32;

use fleetwright_azure::fleetwright::{
    InstanceFilter, InstanceProvisioner as _, OptionalVerb, TagChange,
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{ExternalAction, Fault, FaultRule, Operation};

use crate::{
    config_with_token,
    emulated::{AzureHarness, SUBSCRIPTION, find_vm, path_of},
    running,
};

#[tokio::test]
async fn trap_40_lists_are_filtered_by_tag_and_ids_match_in_any_case() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let mut config = harness.config();
    config.tags.insert("fleet", "Blue").unwrap();
    let id = azure.launch_instance(&config).await.unwrap().id;
    for tags in [[("fleet", "blue")], [("Fleet-2", "Blue")]] {
        let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let act = ExternalAction::CreateExternal {
            prefix: None,
            count: 1,
            tags: tags.into(),
            subscription: Some(SUBSCRIPTION.to_owned()),
            resource_group: None,
            size: None,
        };
        harness.emulator().perform_external(act).unwrap();
    }
    let filter = InstanceFilter::tagged("fleet", "Blue").unwrap();
    let listed = azure.list_instances(&filter).await.unwrap();
    assert_eq!(
        listed.iter().map(|info| &info.id).collect::<Vec<_>>(),
        [&id]
    );
    // The same group in another letter case gives the same ids.
    let mut launch = AzureHarness::launch_config();
    launch.resource_group = "RG".to_owned();
    launch.subscription = SUBSCRIPTION.to_uppercase();
    let upper_case = harness.open_with(launch).await;
    let listed = upper_case.list_instances(&filter).await.unwrap();
    assert_eq!(
        listed.iter().map(|info| &info.id).collect::<Vec<_>>(),
        [&id]
    );
    assert_eq!(upper_case.describe_instance(&id).await.unwrap().id, id);
}

#[tokio::test]
async fn trap_41_tag_change_keeps_other_tags_and_marks() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let mut config = config_with_token(&harness, "t-1");
    for (key, value) in [("Team", "Blue"), ("gone", "soon"), ("Größe", "")] {
        config.tags.insert(key, value).unwrap();
    }
    let id = azure.launch_instance(&config).await.unwrap().id;
    crate::wait_for_state(
        &*azure,
        &id,
        fleetwright_azure::fleetwright::CloudInstanceState::Running,
    )
    .await;
    assert!(azure.capabilities().supports(OptionalVerb::UpdateTags));
    let change = TagChange::new()
        .set("new", "a/b?")
        .unwrap()
        .remove("gone")
        .unwrap();
    azure.update_tags(&id, &change).await.unwrap();
    let tags = harness.only_instance().tags;
    let ours = tags
        .keys()
        .filter(|key| key.starts_with("fleetwright:"))
        .count();
    assert_eq!((tags.len(), ours), (5, 2), "{tags:?}");
    assert_eq!(
        (tags["Team"].as_str(), tags["new"].as_str()),
        ("Blue", "a/b?")
    );
    // It still belongs to the token.
    let azure = harness.open().await;
    assert_eq!(azure.launch_instance(&config).await.unwrap().id, id);
    for odd in ["a/b", "TEAM", "azure-x"] {
        let change = TagChange::new().set(odd, "x").unwrap();
        let error = azure.update_tags(&id, &change).await.unwrap_err();
        assert!(error.to_string().contains("tag"), "{odd}: {error}");
    }
    let mut twice = harness.config();
    twice.tags.insert("Owner", "a").unwrap();
    twice.tags.insert("owner", "b").unwrap();
    let before = harness.call_count("VirtualMachines_CreateOrUpdate");
    azure.launch_instance(&twice).await.unwrap_err();
    assert_eq!(harness.call_count("VirtualMachines_CreateOrUpdate"), before);
}

#[tokio::test]
async fn trap_46_addresses_need_no_call_per_machine() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    let thirty = NonZeroU32::new(30).unwrap();
    azure.launch_instances(&config, thirty).await.unwrap();
    let alone = running(&harness, &*azure).await;
    let truth = find_vm(&harness, &alone).unwrap();
    let azure = harness.open().await;
    let before: u64 = harness.emulator().oracle().calls.values().sum();
    let watched = harness.call_count("VirtualMachines_ListAll");
    let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
    let after: u64 = harness.emulator().oracle().calls.values().sum();
    let watched = harness.call_count("VirtualMachines_ListAll") - watched - 1;
    assert_eq!(listed.len(), 31);
    assert_eq!(after - before - watched, 4);
    let info = listed
        .iter()
        .find(|info| path_of(&info.id) == path_of(&alone));
    let info = info.unwrap();
    assert_eq!(info.private_ip, truth.private_ip.map(Into::into));
    assert_eq!(info.public_ip, truth.public_ip.map(Into::into));
    assert!(info.mac_address.is_some());
}

#[tokio::test]
async fn tags_can_be_replaced_at_the_tag_limit() {
    let harness = AzureHarness::with_knobs(|_| {});
    let mut launch = AzureHarness::launch_config();
    launch.tags = [("site", "x"), ("team", "y")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    let azure = harness.open_with(launch).await;
    let mut config = harness.config();
    let most = azure.capabilities().tags.max_tags;
    for number in 0..most {
        config.tags.insert(format!("k-{number}"), "").unwrap();
    }
    let id = azure.launch_instance(&config).await.unwrap().id;
    let running = fleetwright_azure::fleetwright::CloudInstanceState::Running;
    crate::wait_for_state(&azure, &id, running).await;
    let change = TagChange::new().set("k-0", "changed").unwrap();
    azure.update_tags(&id, &change).await.unwrap();
    assert_eq!(harness.only_instance().tags["k-0"], "changed");
    for (odd, full) in [("one-more", true), ("SITE", false)] {
        let mut change = TagChange::new().set(odd, "").unwrap();
        if !full {
            change = change.remove("k-1").unwrap();
        }
        let error = azure.update_tags(&id, &change).await.unwrap_err();
        assert!(error.to_string().contains("tag"), "{odd}: {error}");
    }
}

#[tokio::test]
async fn tag_change_is_sent_although_a_stale_read_shows_it() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let id = running(&harness, &*azure).await;
    let mut knobs = harness.emulator().knobs();
    knobs.lag.reads = std::time::Duration::from_secs(10);
    harness.emulator().set_knobs(knobs);
    let set = |value: &str| TagChange::new().set("colour", value).unwrap();
    // Reads may lag by ten seconds, but not by an hour.
    harness.emulator().advance(crate::HOUR);
    azure.update_tags(&id, &set("blue")).await.unwrap();
    harness.emulator().advance(crate::HOUR);
    azure.update_tags(&id, &set("red")).await.unwrap();
    for nth in 1..=2 {
        let get = Operation::VirtualMachinesGet;
        let stale = FaultRule::nth(get, nth, Fault::StaleRead);
        harness.emulator().add_fault(stale);
    }
    let again = azure.update_tags(&id, &set("blue")).await;
    let tags = harness.only_instance().tags;
    assert!(again.is_err() || tags["colour"] == "blue", "{tags:?}");
}
