//! Zones that do not respond, configured or not: no other zone is affected.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
};

use fleetwright_contract_tests::Harness as _;
use fleetwright_gcp::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceFilter, InstanceId, InstanceProvisioner, LaunchRecord,
};
use fleetwright_provider_testkit::canned_responses::CannedResponse;

use crate::{
    HOUR, alive, config_with_token,
    emulated::{GcpHarness, ZONES},
    serve, wait_for_state,
};

/// Launches one running instance in each configured zone.
async fn one_in_each(harness: &GcpHarness, gcp: &dyn InstanceProvisioner) -> Vec<InstanceId> {
    let mut ids = Vec::new();
    for zone in ZONES {
        let mut config = config_with_token(harness, zone);
        config.placement.zone = Some(zone.parse().unwrap());
        let id = gcp.launch_instance(&config).await.unwrap().id;
        wait_for_state(gcp, &id, CloudInstanceState::Running).await;
        ids.push(id);
    }
    ids
}

fn disconnect(harness: &GcpHarness, zone: &str) {
    let mut knobs = harness.emulator().knobs();
    knobs.unreachable_zones.insert(zone.to_owned());
    harness.emulator().set_knobs(knobs);
}

#[tokio::test]
async fn unconfigured_zone_affects_nothing() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let ids = one_in_each(&harness, &*gcp).await;
    disconnect(&harness, "europe-west1-b");
    for result in gcp.describe_instances(&ids).await {
        assert_eq!(result.unwrap().state, CloudInstanceState::Running);
    }
    let config = config_with_token(&harness, "t-1");
    let token = config.launch_token.as_ref().unwrap();
    assert_eq!(
        gcp.find_launch(token).await.unwrap(),
        LaunchRecord::NotFound
    );
    let launched = gcp.launch_instance(&config).await.unwrap();
    assert_eq!(gcp.launch_instance(&config).await.unwrap().id, launched.id);
    for result in gcp.terminate_instances(&ids).await {
        result.unwrap();
    }
    for id in &ids {
        wait_for_state(&*gcp, id, CloudInstanceState::Terminated).await;
    }
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn unreachable_zone_does_not_affect_other_zones() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let ids = one_in_each(&harness, &*gcp).await;
    disconnect(&harness, ZONES[1]);
    let seen = gcp.describe_instances(&ids).await;
    assert_eq!(seen[0].as_ref().unwrap().state, CloudInstanceState::Running);
    let error = seen[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let terminated = gcp.terminate_instances(&ids).await;
    assert!(terminated[0].is_ok(), "{terminated:?}");
    let error = terminated[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    // Whether the zone has an instance of a token is unknown.
    let config = config_with_token(&harness, ZONES[1]);
    let token = config.launch_token.as_ref().unwrap();
    let error = gcp.find_launch(token).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    gcp.launch_instance(&config).await.unwrap_err();
}

#[tokio::test]
async fn same_name_in_another_zone_is_another_instance() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    let foreign_server = id.as_str().replace(ZONES[0], ZONES[1]);
    let (stem, _) = foreign_server.rsplit_once('/').unwrap();
    let foreign_server = InstanceId::new(format!("{stem}/7")).unwrap();
    let results = gcp.describe_instances(&[id, foreign_server]).await;
    let error = results[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn repeated_id_is_changed_once() {
    let harness = GcpHarness::with_knobs(|knobs| {
        knobs.timing.delete = HOUR;
        knobs.repeated_deletes = 0;
    });
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let twice = gcp.terminate_instances(&[id.clone(), id]).await;
    assert!(
        twice.len() == 2 && twice.iter().all(Result::is_ok),
        "{twice:?}"
    );
    assert_eq!(harness.call_count("instances.delete"), 1);
}

/// A project whose zone b does not respond: lists of all zones are incomplete and name it.
fn partial(path: &str) -> CannedResponse {
    let unseen = r#""unreachables":["projects/fleet-1/zones/us-central1-b"]"#;
    if path.contains("/aggregated/instances") {
        return CannedResponse::ok(format!("{{\"items\":{{}},{unseen}}}"));
    }
    if path.contains("/aggregated/operations") {
        return CannedResponse::ok(format!(
            r#"{{"items":{{"zones/us-central1-a":{{"operations":[{{"name":"operation-1",
            "operationType":"insert","status":"DONE","endTime":"2020-01-02T03:04:05.678-07:00",
            "targetId":"1"}},{{"name":"operation-2","operationType":"insert","status":"DONE",
            "endTime":"2020-01-02T03:04:05.678-07:00","targetId":"2"}}]}}}},{unseen}}}"#
        ));
    }
    if path.contains("/zones/us-central1-b/") {
        let body = r#"{"error":{"code":503,"message":"unreachable"}}"#.to_owned();
        return CannedResponse {
            status: "503 Service Unavailable",
            headers: String::new(),
            body,
        };
    }
    if path.contains("/operations") {
        return CannedResponse::ok("{}");
    }
    CannedResponse {
        status: "404 Not Found",
        headers: String::new(),
        body: r#"{"error":{"code":404,"message":"nothing"}}"#.to_owned(),
    }
}

#[tokio::test]
async fn incomplete_list_proves_nothing_about_the_missing_zone() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = GcpHarness::open_at(&serve(partial), harness.options()).await;
    let ids = [(ZONES[0], 1), (ZONES[1], 2)]
        .map(|(zone, number)| format!("gce://fleet-1/{zone}/fw-{number}/{number}"))
        .map(|id| InstanceId::new(id).unwrap());
    let results = gcp.describe_instances(&ids).await;
    let error = results[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn incomplete_operations_do_not_free_a_token() {
    let harness = GcpHarness::with_knobs(|_| {});
    let respond = |path: &str| {
        if path.contains("/instances") {
            return CannedResponse::ok("{}");
        }
        partial(path)
    };
    let mut options = harness.options();
    options.remember_spent_tokens = true;
    let gcp = GcpHarness::open_at(&serve(respond), options).await;
    let token = "t-1".parse().unwrap();
    let error = gcp.find_launch(&token).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn list_by_long_names_has_a_short_url() {
    static LONGEST: AtomicUsize = AtomicUsize::new(0);
    let harness = GcpHarness::with_knobs(|_| {});
    let respond = |path: &str| {
        LONGEST.fetch_max(path.len(), Ordering::Relaxed);
        CannedResponse::ok("{}")
    };
    let gcp = GcpHarness::open_at(&serve(respond), harness.options()).await;
    let long = "n".repeat(55);
    let ids: Vec<_> = (1..=170)
        .map(|at| format!("gce://fleet-1/{}/{long}-{at}/{at}", ZONES[0]))
        .map(|id| InstanceId::new(id).unwrap())
        .collect();
    for result in gcp.describe_instances(&ids).await {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound);
    }
    let longest = LONGEST.load(Ordering::Relaxed);
    assert!((4000..7000).contains(&longest), "{longest} bytes");
}

#[tokio::test]
async fn malformed_instance_in_an_unconfigured_zone_is_ignored() {
    let harness = GcpHarness::with_knobs(|_| {});
    let respond = |_: &str| {
        CannedResponse::ok(
            r#"{"items":{"zones/europe-west1-b":{"instances":[{"name":"odd","zone":
            "https://www.googleapis.com/compute/v1/projects/fleet-1/zones/europe-west1-b"}]}}}"#,
        )
    };
    let gcp = GcpHarness::open_at(&serve(respond), harness.options()).await;
    let listed = gcp.list_instances(&InstanceFilter::new()).await.unwrap();
    assert!(listed.is_empty(), "{listed:?}");
}

#[tokio::test]
async fn page_size_is_limited_to_the_maximum() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.page_size = NonZeroUsize::MAX;
    let launch = GcpHarness::launch_config();
    let gcp = harness
        .open_with_options(launch.clone(), options.clone())
        .await;
    gcp.list_instances(&InstanceFilter::new()).await.unwrap();
    options.page_size = NonZeroUsize::new(501).unwrap();
    let gcp = harness.open_with_options(launch, options).await;
    gcp.list_instances(&InstanceFilter::new()).await.unwrap();
}
