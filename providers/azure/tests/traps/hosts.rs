//! The token is sent to Azure only, and appears in no output.

use std::sync::{Arc, Mutex};

use fleetwright_azure::{
    AzureCredentials, AzureProvisioner, ServicePrincipal, Token, TokenFailure, TokenSource,
    fleetwright::{
        CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _,
        async_trait,
    },
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_provider_testkit::canned_responses::{self, CannedResponse, Request};

use crate::{config_with_token, emulated::AzureHarness, wait_for_state};

type Requests = Arc<Mutex<Vec<Request>>>;

/// Another host, and all requests that it received.
fn foreign_server() -> (String, Requests) {
    let seen = Requests::default();
    let kept = Arc::clone(&seen);
    let endpoint = canned_responses::serve(move |request| {
        kept.lock().unwrap().push(request.clone());
        CannedResponse::ok(r#"{"status":"Succeeded","value":[]}"#)
    });
    (endpoint.unwrap(), seen)
}

#[tokio::test]
async fn operation_link_to_another_host_is_not_followed() {
    let (foreign, seen) = foreign_server();
    let harness =
        AzureHarness::with_knobs(|knobs| knobs.polling_origin = Some(foreign)).wait_for_launch();
    let azure = harness.open().await;
    let id = azure.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*azure, &id, CloudInstanceState::Running).await;
    azure.stop_instance(&id).await.unwrap();
    wait_for_state(&*azure, &id, CloudInstanceState::Stopped).await;
    azure.start_instance(&id).await.unwrap();
    azure.terminate_instance(&id).await.unwrap();
    assert!(
        seen.lock().unwrap().is_empty(),
        "{:?}",
        seen.lock().unwrap()
    );
}

#[tokio::test]
async fn page_link_to_another_host_is_an_error() {
    let (foreign, seen) = foreign_server();
    let five = std::num::NonZeroU32::new(5).unwrap();
    let harness = AzureHarness::with_knobs(|knobs| knobs.page_size = five);
    let azure = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    let twelve = std::num::NonZeroU32::new(12).unwrap();
    azure.launch_instances(&config, twelve).await.unwrap();
    let mut knobs = harness.emulator().knobs();
    knobs.link_origin = Some(foreign);
    harness.emulator().set_knobs(knobs);
    let error = azure
        .list_instances(&InstanceFilter::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected, "{error}");
    assert!(
        error.message().contains("nothing was sent there"),
        "{error}"
    );
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn redirect_to_another_host_is_not_followed() {
    let (foreign, seen) = foreign_server();
    let moved = move |_: &Request| {
        CannedResponse::new("307 Temporary Redirect", "").header("location", &foreign)
    };
    let harness = AzureHarness::with_knobs(|_| {});
    let azure =
        AzureHarness::open_at(&canned_responses::serve(moved).unwrap(), harness.options()).await;
    let error = azure
        .list_instances(&InstanceFilter::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected, "{error}");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn token_is_requested_once_and_again_after_a_refusal() {
    let requests = Arc::new(Mutex::new(0));
    let count = Arc::clone(&requests);
    let authority = canned_responses::serve(move |request| {
        assert!(request.path.contains("/tenant/oauth2"), "{}", request.path);
        let body = String::from_utf8_lossy(&request.body).into_owned();
        assert!(
            body.contains("s3cr3t-secret"),
            "the secret is sent to the authority"
        );
        let mut count = count.lock().unwrap();
        *count += 1;
        CannedResponse::ok(format!(
            r#"{{"token_type":"Bearer","expires_in":3600,"ext_expires_in":3600,"access_token":"t-{count}"}}"#
        ))
    });
    let arm = canned_responses::serve(|request| {
        let carries = |token: &str| {
            let line = format!("authorization: Bearer {token}");
            request.headers.contains(&line)
        };
        if carries("t-1") && request.path.contains("networkInterfaces") {
            let body = r#"{"error":{"code":"ExpiredAuthenticationToken","message":"expired"}}"#;
            return CannedResponse::new("401 Unauthorized", body);
        }
        assert!(carries("t-1") || carries("t-2"), "{:?}", request.headers);
        if request.path.contains("statusOnly") {
            let machine = r#"{"id":"/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/x",
                "location":"eastus","properties":{"provisioningState":"Succeeded",
                "instanceView":{"statuses":[{"code":"PowerState/running"}]}}}"#;
            return CannedResponse::ok(format!(r#"{{"value":[{machine}]}}"#));
        }
        if request.path.contains("/virtualMachines/x") {
            let body = r#"{"error":{"code":"ResourceNotFound","message":"gone"}}"#;
            return CannedResponse::new("404 Not Found", body);
        }
        CannedResponse::ok(r#"{"value":[]}"#)
    });
    let principal = ServicePrincipal::new("tenant", "client").at(authority.unwrap());
    let credentials = AzureCredentials::client_secret(principal, "s3cr3t-secret");
    assert!(
        !format!("{credentials:?}").contains("s3cr3t"),
        "{credentials:?}"
    );
    let harness = AzureHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.endpoint = arm.unwrap();
    let azure = AzureProvisioner::new(credentials, AzureHarness::launch_config(), options).unwrap();
    let error = azure
        .list_instances(&InstanceFilter::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error}");
    for _ in 0..3 {
        azure.list_instances(&InstanceFilter::new()).await.unwrap();
    }
    assert_eq!(*requests.lock().unwrap(), 2);
}

/// A token source that never returns.
#[derive(Debug)]
struct HangingSource;

#[async_trait]
impl TokenSource for HangingSource {
    async fn token(&self, _: &str) -> Result<Token, TokenFailure> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn hanging_token_source_is_not_a_refusal() {
    let (arm, seen) = foreign_server();
    let harness = AzureHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.endpoint = arm;
    options.call_timeout = std::time::Duration::from_secs(4);
    let launch = AzureHarness::launch_config();
    let credentials = AzureCredentials::of(HangingSource);
    let azure = AzureProvisioner::new(credentials, launch, options).unwrap();
    let error = azure.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.effect(), Effect::None, "nothing was sent: {error}");
    assert!(seen.lock().unwrap().is_empty());
}
