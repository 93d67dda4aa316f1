//! `from_env` with credentials of files and of the metadata service, in Google's universe and in another
//! one.
//!
//! Environment variables belong to a process, so each case runs in a process of its own. Everything is on
//! loopback: token servers, the metadata service, and a proxy that shows which host a call is for.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{
    env, fs,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex},
};

use fleetwright_gcp::{
    GcpLaunchConfig, GcpProvisioner,
    fleetwright::{ErrorKind, InstanceId, InstanceProvisioner as _, Zone},
};
use fleetwright_provider_testkit::canned_responses::{CannedResponse, serve};
use tempfile::TempDir;

/// The variable with the error that the call of a child process must return.
const CHILD: &str = "FLEETWRIGHT_GCP_CREDENTIALS_CHILD";

/// The calls of a child process.
#[tokio::test]
async fn child_describes_an_instance() {
    let Ok(expected) = env::var(CHILD) else {
        return;
    };
    let zone = Zone::new("us-central1-a").unwrap();
    let error = match GcpProvisioner::from_env(GcpLaunchConfig::new("fleet-1", [zone])).await {
        Ok(gcp) => {
            let id = InstanceId::new("gce://fleet-1/us-central1-a/fw-1/7").unwrap();
            gcp.describe_instance(&id).await.unwrap_err()
        }
        Err(error) => error,
    };
    let kind = match expected.as_str() {
        "unavailable" => ErrorKind::Unavailable,
        "unauthenticated" => ErrorKind::Unauthenticated,
        "unexpected" => ErrorKind::Unexpected,
        other => panic!("unknown kind {other}"),
    };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
}

/// The requests that a server received: method and path.
type Requests = Arc<Mutex<Vec<String>>>;

/// Starts a server that records its requests.
fn record(respond_to: impl Fn(&str) -> CannedResponse + Send + 'static) -> (String, Requests) {
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let address = serve(move |request| {
        let line = format!("{} {}", request.method, request.path);
        seen.lock().unwrap().push(line);
        respond_to(&request.path)
    });
    (address.unwrap(), requests)
}

/// Runs a child process with these variables behind a proxy, and returns the hosts of its calls.
fn run(expected: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let (proxy, requests) = record(|_| CannedResponse::new("502 Bad Gateway", "{}"));
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "child_describes_an_instance", "--nocapture"]);
    child.env_clear().env(CHILD, expected);
    child.env("HTTPS_PROXY", &proxy).env("HOME", "/nonexistent");
    child.envs(variables.iter().copied());
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
    requests.lock().unwrap().clone()
}

/// Writes a file of one test, and returns its path.
fn file(home: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = home.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

/// Writes the credentials of a workload whose tokens a server on loopback issues.
fn workload(home: &TempDir, token_server: &str, universe: Option<&str>) -> String {
    let subject = file(home, "subject", "hunter2");
    let universe = universe.map(|it| format!(r#","universe_domain":"{it}""#));
    let content = format!(
        r#"{{"type":"external_account","audience":"//iam.example/pool","token_url":"{token_server}/token",
        "subject_token_type":"urn:ietf:params:oauth:token-type:jwt",
        "credential_source":{{"file":{subject:?}}}{}}}"#,
        universe.unwrap_or_default()
    );
    file(home, "credentials", &content)
        .to_str()
        .unwrap()
        .to_owned()
}

/// The response of a token server.
fn token(_: &str) -> CannedResponse {
    CannedResponse::ok(
        r#"{"access_token":"hunter2","issued_token_type":"urn:ietf:params:oauth:token-type:access_token",
        "token_type":"Bearer","expires_in":3600}"#,
    )
}

#[test]
fn calls_are_sent_to_the_universe_of_the_credentials() {
    for (universe, host) in [
        (None, "compute.googleapis.com"),
        (Some("universe.example"), "compute.universe.example"),
    ] {
        let (server, tokens) = record(token);
        let home = TempDir::new().unwrap();
        let path = workload(&home, &server, universe);
        let hosts = run("unavailable", &[("GOOGLE_APPLICATION_CREDENTIALS", &path)]);
        assert_eq!(hosts, [format!("CONNECT {host}:443")]);
        assert_eq!(*tokens.lock().unwrap(), ["POST /token"]);
    }
}

#[test]
fn other_universe_in_the_environment_is_refused() {
    let (server, tokens) = record(token);
    let home = TempDir::new().unwrap();
    let path = workload(&home, &server, Some("universe.example"));
    let variables = [
        ("GOOGLE_APPLICATION_CREDENTIALS", path.as_str()),
        ("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "other.example"),
    ];
    assert!(run("unexpected", &variables).is_empty());
    assert!(tokens.lock().unwrap().is_empty());
}

#[test]
fn missing_or_malformed_file_is_unauthenticated() {
    let home = TempDir::new().unwrap();
    let malformed = file(&home, "malformed", r#"{"type":"hunter2"}"#);
    for path in [malformed.to_str().unwrap(), "/nonexistent/credentials"] {
        let variables = [("GOOGLE_APPLICATION_CREDENTIALS", path)];
        assert!(run("unauthenticated", &variables).is_empty());
    }
}

#[test]
fn refused_token_is_unauthenticated_and_a_broken_server_unavailable() {
    for (status, expected) in [
        ("401 Unauthorized", "unauthenticated"),
        ("503 Service Unavailable", "unavailable"),
    ] {
        let (server, _) = record(move |_| CannedResponse::new(status, r#"{"error":"hunter2"}"#));
        let home = TempDir::new().unwrap();
        let path = workload(&home, &server, None);
        assert!(run(expected, &[("GOOGLE_APPLICATION_CREDENTIALS", &path)]).is_empty());
    }
}

#[test]
fn metadata_service_gives_universe_and_token() {
    let (server, requests) = record(|path| {
        let found = CannedResponse::ok("universe.example").header("metadata-flavor", "Google");
        if path.contains("universe") {
            return found;
        }
        token(path).header("metadata-flavor", "Google")
    });
    let host = server.trim_start_matches("http://");
    let hosts = run("unavailable", &[("GCE_METADATA_HOST", host)]);
    assert_eq!(hosts, ["CONNECT compute.universe.example:443"]);
    let requests = requests.lock().unwrap();
    assert!(
        requests.iter().any(|one| one.contains("/universe")),
        "{requests:?}"
    );
    assert!(
        requests.iter().any(|one| one.contains("/token")),
        "{requests:?}"
    );
}
