//! Responses that cannot be understood: typed errors, and never a panic or an endless loop.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use emulated::GcpHarness;
use fleetwright_emulators::gcp::Method;
use fleetwright_gcp::{
    GcpLaunchConfig, GcpOptions, GcpProvisioner,
    fleetwright::{ErrorKind, Zone},
    google_cloud_auth::credentials::anonymous,
};
use fleetwright_provider_testkit::broken_responses::{
    ChangeOperations, check_broken_responses, check_repeated_page_token,
};

#[tokio::test]
async fn broken_responses_are_typed_errors() {
    let operations = ChangeOperations {
        launch: Method::InstancesInsert,
        stop: Method::InstancesStop,
        terminate: Method::InstancesDelete,
        stop_reads_first: false,
        has_body: true,
    };
    check_broken_responses(|| GcpHarness::with_knobs(|_| {}), operations).await;
}

#[tokio::test]
async fn repeated_page_token_is_an_error() {
    check_repeated_page_token(
        &GcpHarness::with_knobs(|_| {}),
        Method::InstancesAggregatedList,
    )
    .await;
}

#[tokio::test]
async fn invalid_settings_create_no_provisioner() {
    let zones = [Zone::new("us-central1-a").unwrap()];
    let launch = GcpLaunchConfig::new("No Project", zones);
    let credentials = anonymous::Builder::new().build();
    let provisioner = GcpProvisioner::new(credentials, None, launch, GcpOptions::default()).await;
    let error = provisioner.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("project"), "{error}");
}
