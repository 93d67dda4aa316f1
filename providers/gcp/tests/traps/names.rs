//! Names, labels and metadata, each with its own alphabet.

use std::collections::BTreeMap;

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{ExternalAction, Fault, FaultRule, Method};
use fleetwright_gcp::{
    UserDataAs,
    fleetwright::{
        CloudInstanceState, ErrorKind, InstanceFilter, InstanceProvisioner as _, TagChange,
        UserData, Zone,
    },
};

use crate::{
    alive, config_with_token,
    emulated::{GcpHarness, PROJECT, ZONES, path_of},
    wait_for_state,
};

#[tokio::test]
async fn trap_10_names_are_lowercase_and_short_for_any_token() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    for token in ["CAPITALS&(symbols)", &"long-".repeat(25), "9"] {
        gcp.launch_instance(&config_with_token(&harness, token))
            .await
            .unwrap();
    }
    gcp.launch_instance(&harness.config()).await.unwrap();
    for truth in harness.emulator().oracle().instances {
        let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let name = truth.name;
        assert!(name.len() <= 63 && name.chars().all(inside), "{name}");
        assert!(name.starts_with("fw-"), "{name}");
    }
    assert_eq!(alive(&harness), 4);
}

#[tokio::test]
async fn trap_11_names_are_searched_in_every_zone() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut config = config_with_token(&harness, "t-1");
    config.placement.zone = Some(Zone::new(ZONES[1]).unwrap());
    let launched = harness.open().await.launch_instance(&config).await.unwrap();
    // Another process, which does not know the zone.
    let gcp = harness.open().await;
    let record = gcp
        .find_launch(config.launch_token.as_ref().unwrap())
        .await
        .unwrap();
    assert!(
        format!("{record:?}").contains(launched.id.as_str()),
        "{record:?}"
    );
    config.placement.zone = Some(Zone::new(ZONES[0]).unwrap());
    let error = gcp.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn trap_12_id_contains_everything_that_a_call_needs() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut config = harness.config();
    config.placement.zone = Some(Zone::new(ZONES[1]).unwrap());
    let id = harness
        .open()
        .await
        .launch_instance(&config)
        .await
        .unwrap()
        .id;
    let truth = harness.only_instance();
    let expected = format!("gce://{PROJECT}/{}/{}/{}", ZONES[1], truth.name, truth.id);
    assert_eq!(id.as_str(), expected);
    harness.open().await.terminate_instance(&id).await.unwrap();
    wait_for_state(&*harness.open().await, &id, CloudInstanceState::Terminated).await;
    // Calls use the number: another instance of the same name is not affected.
    let external = ExternalAction::LaunchExternal {
        project: PROJECT.to_owned(),
        zone: Some(ZONES[1].to_owned()),
        name: Some(truth.name),
        machine_type: None,
        count: 1,
        labels: BTreeMap::new(),
        metadata: BTreeMap::new(),
    };
    harness.emulator().perform_external(external).unwrap();
    let gcp = harness.open().await;
    gcp.terminate_instance(&id).await.unwrap();
    let status = gcp.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Terminated);
    assert_eq!(
        gcp.stop_instance(&id).await.unwrap_err().kind(),
        ErrorKind::WrongState
    );
    let status = harness.only_instance().status;
    let booting_or_running = ["PROVISIONING", "STAGING", "RUNNING"];
    assert!(
        booting_or_running.iter().any(|one| status == *one),
        "{status}"
    );
}

#[tokio::test]
async fn trap_13_zones_and_types_are_converted_from_urls_to_names() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let listed = gcp
        .list_instances(&InstanceFilter::new())
        .await
        .unwrap()
        .remove(0);
    assert_eq!(listed.placement.zone.unwrap().as_str(), ZONES[0]);
    assert_eq!(listed.instance_type.unwrap().as_str(), "e2-micro");
    // The zone of a listed instance works for every call.
    gcp.stop_instance(&listed.id).await.unwrap();
    let mut config = harness.config();
    let url = "https://www.googleapis.com/compute/v1/projects/fleet-1/zones/us-central1-a";
    config.placement.zone = Some(Zone::new(url).unwrap());
    let error = gcp.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn trap_14_tags_that_are_not_labels_are_kept_and_found() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let mut config = harness.config();
    let odd = [
        ("ManagedBy", "The Kit"),
        ("plain-key", "plain_value-1"),
        ("empty", ""),
        ("emoji 🚀", "Zürich / Genève"),
        ("goog-like", "x"),
        ("fwx-like", "y"),
        ("UPPER", "lower"),
        ("upper", "lower"),
    ];
    for (key, value) in odd {
        config.tags.insert(key, value).unwrap();
    }
    gcp.launch_instance(&config).await.unwrap();
    let truth = harness.only_instance();
    assert_eq!(truth.labels["plain-key"], "plain_value-1");
    let managed = truth
        .labels
        .iter()
        .find(|(key, _)| key.starts_with("fwx-managedby-"));
    assert_eq!(managed.unwrap().1, "the-kit", "a person can find it");
    for (key, value) in odd {
        let found = gcp
            .list_instances(&InstanceFilter::tagged(key, value).unwrap())
            .await;
        assert_eq!(found.unwrap()[0].tags, config.tags, "{key}");
        let filter = harness.latest_call("instances.aggregatedList").parameters["filter"].clone();
        assert!(
            filter.starts_with("(labels."),
            "selected on the server: {filter}"
        );
        let other = InstanceFilter::tagged(key, "another").unwrap();
        assert!(
            gcp.list_instances(&other).await.unwrap().is_empty(),
            "{key}"
        );
    }
}

#[tokio::test]
async fn trap_16_replacing_labels_keeps_those_of_others() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let mut config = harness.config();
    config.tags.insert("a", "1").unwrap();
    let id = gcp.launch_instance(&config).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let mut labels = harness.only_instance().labels;
    labels.insert("by-hand".to_owned(), "yes".to_owned());
    let instance = path_of(&id);
    harness
        .emulator()
        .perform_external(ExternalAction::SetLabels { instance, labels })
        .unwrap();
    // The first attempt is refused because its fingerprint is old.
    let stale = Fault::Refused {
        status: 412,
        code: "conditionNotMet".to_owned(),
        message: "Labels fingerprint either invalid or resource labels have changed".to_owned(),
    };
    harness
        .emulator()
        .add_fault(FaultRule::nth(Method::InstancesSetLabels, 1, stale));
    let change = TagChange::new().set("b", "2").unwrap().remove("a").unwrap();
    gcp.update_tags(&id, &change).await.unwrap();
    assert_eq!(harness.call_count("instances.setLabels"), 2);
    let labels = harness.only_instance().labels;
    let kept: Vec<_> = labels
        .iter()
        .map(|(key, value)| (&**key, &**value))
        .collect();
    assert_eq!(kept, [("b", "2"), ("by-hand", "yes")]);
}

#[tokio::test]
async fn trap_18_user_data_with_any_bytes_is_transported() {
    for (bytes, encoding) in [
        (&b"#cloud-config\nhostname: z\xc3\xbcrich\n"[..], None),
        (b"\x1f\x8b\x08\x00binary\xff", Some("base64")),
    ] {
        let harness = GcpHarness::with_knobs(|_| {});
        let mut config = harness.config();
        config.user_data = Some(UserData::new(bytes).unwrap());
        harness.open().await.launch_instance(&config).await.unwrap();
        let metadata = harness.only_instance().metadata;
        assert_eq!(
            metadata.get("user-data-encoding").map(String::as_str),
            encoding
        );
        if encoding.is_none() {
            assert_eq!(metadata["user-data"].as_bytes(), bytes);
        }
    }
    let harness = GcpHarness::with_knobs(|_| {});
    let mut config = harness.config();
    config.user_data = Some(UserData::new(vec![0_u8; 192 * 1024 + 1]).unwrap());
    let error = harness
        .open()
        .await
        .launch_instance(&config)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    config.user_data = Some(UserData::new(vec![0_u8; 192 * 1024]).unwrap());
    harness.open().await.launch_instance(&config).await.unwrap();
}

#[tokio::test]
async fn trap_19_startup_script_is_used_only_if_configured() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut launch = GcpHarness::launch_config();
    launch.user_data = UserDataAs::StartupScript;
    let gcp = harness.open_with(launch).await;
    let mut config = harness.config();
    config.user_data = Some(UserData::new("#!/bin/sh\n").unwrap());
    gcp.launch_instance(&config).await.unwrap();
    let metadata = harness.only_instance().metadata;
    assert_eq!(metadata["startup-script"], "#!/bin/sh\n");
    assert!(!metadata.contains_key("user-data"));
    config.user_data = Some(UserData::new(b"\x1f\x8b").unwrap());
    let error = gcp.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn trap_40_disks_are_deleted_with_their_instance() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut launch = GcpHarness::launch_config();
    launch.local_ssds = 2;
    let gcp = harness.open_with(launch).await;
    let mut config = harness.config();
    config.instance_type = "n2-standard-2".parse().unwrap();
    let id = gcp.launch_instance(&config).await.unwrap().id;
    let oracle = harness.emulator().oracle();
    assert!(
        oracle.disks.iter().all(|disk| disk.auto_delete),
        "{:?}",
        oracle.disks
    );
    assert!(!oracle.instances[0].deletion_protection);
    gcp.terminate_instance(&id).await.unwrap();
    wait_for_state(&gcp, &id, CloudInstanceState::Terminated).await;
    assert!(harness.emulator().oracle().disks.is_empty());
}
