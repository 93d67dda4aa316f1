//! Logs of any level contain neither the token nor user data nor the URL of a console.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use emulated::{AzureHarness, TOKEN};
use fleetwright_azure::fleetwright::{
    CloudInstanceState, InstanceFilter, InstanceProvisioner as _, UserData,
    wait::{self, WaitPolicy},
};
use fleetwright_contract_tests::Harness as _;
use tracing::{Event, Subscriber, field::Field, field::Visit};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

/// Collects all log output as text.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<String>>);

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = self.0.lock().unwrap();
        let _ = write!(text, "{} ", event.metadata().target());
        event.record(&mut Line(&mut text));
        text.push('\n');
    }
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

#[tokio::test]
async fn logs_contain_no_secrets() {
    let log = Log::default();
    let subscriber = tracing_subscriber::registry().with(log.clone());
    tracing::subscriber::set_global_default(subscriber).unwrap();
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
    let text = log.0.lock().unwrap().clone();
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
