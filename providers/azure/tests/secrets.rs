//! Logs of any level contain neither the token nor user data nor the URL of a console.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;
#[path = "identity/local.rs"]
mod local;

use std::time::Duration;

use emulated::{AzureHarness, TOKEN};
use fleetwright_azure::fleetwright::{
    CloudInstanceState, InstanceFilter, InstanceProvisioner as _, UserData,
    wait::{self, WaitPolicy},
};
use fleetwright_contract_tests::Harness as _;
use local::Log;

#[tokio::test]
async fn logs_contain_no_secrets() {
    let log = Log::default();
    log.install();
    let harness = AzureHarness::with_knobs(|_| {}).wait_for_launch();
    let azure = harness.open().await;
    let mut config = harness.config();
    config.user_data = Some(UserData::new(*b"s3cr3t-user-data").unwrap());
    let id = azure.launch_instance(&config).await.unwrap().id;
    let tick = Duration::from_millis(10);
    let policy = WaitPolicy::within(Duration::from_secs(60)).delays(tick, tick);
    let ids = std::slice::from_ref(&id);
    let running = wait::for_state(&*azure, ids, CloudInstanceState::Running, &policy);
    running.await.unwrap();
    azure.list_instances(&InstanceFilter::new()).await.unwrap();
    assert!(!azure.console_output(&id).await.unwrap().text.is_empty());
    azure.stop_instance(&id).await.unwrap();
    azure.terminate_instance(&id).await.unwrap();
    let text = log.text();
    assert!(
        text.contains("azure_core"),
        "the SDK logs something: {text}"
    );
    // The user data in base64, and the signature in the URL of a console.
    for secret in [
        TOKEN,
        "czNjcjN0LXVzZXItZGF0YQ",
        "s3cr3t-user-data",
        "sr=b&sp=r",
    ] {
        let at = text
            .find(secret)
            .map(|at| &text[at.saturating_sub(300)..at]);
        assert_eq!(at, None, "{secret}");
    }
}
