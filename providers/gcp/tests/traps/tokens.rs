//! Tokens: failed attempts, concurrent launches, and secrets in errors.

use std::{net::TcpListener, num::NonZeroU32, time::Duration};

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{Capacity, Fault, FaultRule, Method, Phase};
use fleetwright_gcp::fleetwright::{
    Effect, ErrorKind, InstanceProvisioner as _, LaunchRecord, RetryAdvice, UserData,
};
use fleetwright_provider_testkit::canned_responses::CannedResponse;

use crate::{alive, config_with_token, emulated::GcpHarness, launch_twin, serve};

#[tokio::test]
async fn token_is_free_after_any_number_of_failed_attempts() {
    let harness =
        GcpHarness::with_knobs(|knobs| knobs.capacity = vec![Capacity::of(0)]).wait_for_launch();
    let config = config_with_token(&harness, "t-1");
    let gcp = harness.open().await;
    for _ in 0..8 {
        let error = gcp.launch_instance(&config).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    }
    let mut knobs = harness.emulator().knobs();
    knobs.capacity.clear();
    harness.emulator().set_knobs(knobs);
    gcp.launch_instance(&config).await.unwrap();
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn error_does_not_contain_quoted_user_data() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut config = harness.config();
    config.user_data = Some(UserData::new("password: hunter2").unwrap());
    let message = "Invalid value for field 'resource.metadata.items[2].value': 'password: hunter2'. \
                   Value is too large.";
    let refused = Fault::Refused {
        status: 400,
        code: "invalid".to_owned(),
        message: message.to_owned(),
    };
    let rule = FaultRule::nth(Method::InstancesInsert, 1, refused);
    harness.emulator().add_fault(rule);
    let gcp = harness.open().await;
    let error = gcp.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let output = format!("{error} {error:?}");
    assert!(!output.contains("hunter2"), "{output}");
    assert!(output.contains("resource.metadata"), "{output}");
}

#[tokio::test]
async fn debug_does_not_show_configured_metadata() {
    let mut launch = GcpHarness::launch_config();
    launch.metadata = [(
        "windows-startup-script-ps1".to_owned(),
        "hunter2".to_owned(),
    )]
    .into();
    let output = format!("{launch:?}");
    assert!(!output.contains("hunter2"), "{output}");
    assert!(output.contains("windows-startup-script-ps1"), "{output}");
}

#[tokio::test]
async fn retry_date_is_kept() {
    let harness = GcpHarness::with_knobs(|_| {});
    let throttled = |_: &str| CannedResponse {
        status: "429 Too Many Requests",
        headers: "retry-after: Wed, 21 Oct 2076 07:28:00 GMT\r\n".to_owned(),
        body: r#"{"error":{"code":429,"message":"slow down"}}"#.to_owned(),
    };
    let gcp = GcpHarness::open_at(&serve(throttled), harness.options()).await;
    let error = gcp.find_launch(&"t-1".parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Throttled, "{error}");
    let long = Duration::from_secs(24 * 3600);
    assert!(
        matches!(error.retry(), RetryAdvice::After(delay) if delay > long),
        "{error}"
    );
}

#[tokio::test]
async fn refused_connection_has_no_effect() {
    let harness = GcpHarness::with_knobs(|_| {});
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let gcp = GcpHarness::open_at(&endpoint, harness.options()).await;
    let error = gcp.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Unavailable, Effect::None),
        "{error}"
    );
}

#[tokio::test]
async fn launch_accepts_any_launch_wait() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.launch_wait = Duration::MAX;
    let launch = GcpHarness::launch_config();
    let gcp = harness.open_with_options(launch, options).await;
    gcp.launch_instance(&harness.config()).await.unwrap();
}

#[tokio::test]
async fn name_conflict_in_the_operation_is_handled_like_a_refusal() {
    let harness = GcpHarness::with_knobs(|_| {});
    let respond = |path: &str| {
        if path.contains("/instances/fw-") {
            return CannedResponse::ok(
                r#"{"name":"fw-1","id":"7","status":"RUNNING","zone":"zones/us-central1-a"}"#,
            );
        }
        if path.contains("/zones/us-central1-a/instances") {
            return CannedResponse::ok(
                r#"{"name":"operation-1","operationType":"insert","status":"DONE","targetId":"8",
                "httpErrorStatusCode":409,"httpErrorMessage":"CONFLICT",
                "error":{"errors":[{"code":"RESOURCE_ALREADY_EXISTS","message":"taken"}]}}"#,
            );
        }
        CannedResponse::ok("{}")
    };
    let gcp = GcpHarness::open_at(&serve(respond), harness.options()).await;
    let config = config_with_token(&harness, "t-1");
    let error = gcp.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(
        error.retry(),
        RetryAdvice::Never,
        "it is somebody else's: {error}"
    );
}

#[tokio::test]
async fn batch_with_an_unknown_part_has_unknown_effect() {
    let harness = GcpHarness::with_knobs(|_| {});
    let lost = Fault::Lost {
        phase: Phase::After,
    };
    let emulator = harness.emulator();
    emulator.add_fault(FaultRule::nth(Method::InstancesBulkInsert, 1, lost));
    let mut options = harness.options();
    options.concurrency = NonZeroU32::MIN;
    let launch = GcpHarness::launch_config();
    let gcp = harness.open_with_options(launch, options).await;
    let two = NonZeroU32::new(2).unwrap();
    let config = config_with_token(&harness, "t-1");
    let error = gcp.launch_instances(&config, two).await;
    let error = error.unwrap_err();
    assert_eq!((alive(&harness), error.survivors().len()), (2, 1));
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
}

#[tokio::test]
async fn batch_is_awaited_with_shared_lists() {
    let harness =
        GcpHarness::with_knobs(|knobs| knobs.capacity = vec![Capacity::of(2)]).wait_for_launch();
    let gcp = harness.open().await;
    let six = NonZeroU32::new(6).unwrap();
    let error = gcp.launch_instances(&harness.config(), six).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    assert_eq!(error.survivors().len(), 2, "{error}");
    assert_eq!(harness.call_count("zoneOperations.wait"), 0);
}

#[tokio::test]
async fn launch_without_target_in_its_operation_is_read_by_name() {
    let harness = GcpHarness::with_knobs(|_| {});
    let respond = |path: &str| {
        if path.contains("/instances/") {
            return CannedResponse {
                status: "404 Not Found",
                headers: String::new(),
                body: r#"{"error":{"code":404,"message":"nothing"}}"#.to_owned(),
            };
        }
        CannedResponse::ok(r#"{"name":"operation-1","operationType":"insert","status":"RUNNING"}"#)
    };
    let gcp = GcpHarness::open_at(&serve(respond), harness.options()).await;
    let error = gcp.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Unexpected, Effect::Done),
        "{error}"
    );
}

#[tokio::test]
async fn find_launch_returns_concurrent_launches_in_two_zones() {
    let harness = GcpHarness::with_knobs(|_| {});
    let config = config_with_token(&harness, "t-1");
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&config).await.unwrap().id;
    launch_twin(&harness);
    let token = config.launch_token.as_ref().unwrap();
    for _ in 0..4 {
        let LaunchRecord::Found(found) = gcp.find_launch(token).await.unwrap() else {
            panic!("both are there")
        };
        assert_eq!(found.len(), 2, "{found:?}");
        let again = harness.open().await.launch_instance(&config).await;
        assert_eq!(again.unwrap().id, id);
    }
}
