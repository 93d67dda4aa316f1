//! Connections are reused: not every call starts with a handshake.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use emulated::AzureHarness;
use fleetwright_azure::{
    AzureCredentials, AzureProvisioner, Token, TokenFailure, TokenSource,
    fleetwright::{InstanceFilter, InstanceProvisioner as _, async_trait},
};

/// Responds with empty lists on persistent connections, and counts both.
fn serve(connections: Arc<AtomicU32>, requests: Arc<AtomicU32>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            connections.fetch_add(1, Ordering::SeqCst);
            let requests = Arc::clone(&requests);
            thread::spawn(move || respond(stream, &requests));
        }
    });
    endpoint
}

/// These requests have no body, so an empty line ends each.
fn respond(mut stream: TcpStream, requests: &AtomicU32) {
    let reader = BufReader::new(stream.try_clone().unwrap());
    for line in reader.lines() {
        let Ok(line) = line else {
            return;
        };
        if line.is_empty() {
            requests.fetch_add(1, Ordering::SeqCst);
            let body = r#"{"value":[]}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
            let _ = write!(
                stream,
                "{head}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    }
}

/// Returns one token, and records the requested scopes.
#[derive(Debug, Default)]
struct RecordingSource(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl TokenSource for RecordingSource {
    async fn token(&self, scope: &str) -> Result<Token, TokenFailure> {
        self.0.lock().unwrap().push(scope.to_owned());
        Ok(Token::new(
            "x",
            chrono::Utc::now() + chrono::Duration::hours(1),
        ))
    }
}

#[tokio::test]
async fn calls_share_connections_and_one_token() {
    let (connections, requests) = (Arc::default(), Arc::default());
    let mut options = AzureHarness::with_knobs(|_| {}).options();
    options.endpoint = serve(Arc::clone(&connections), Arc::clone(&requests));
    options.scope = "https://management.usgovcloudapi.net/.default".to_owned();
    let source = RecordingSource::default();
    let scopes = Arc::clone(&source.0);
    let credentials = AzureCredentials::of(source);
    let launch = AzureHarness::launch_config();
    let azure = AzureProvisioner::new(credentials, launch, options).unwrap();
    for _ in 0..20 {
        let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
        assert!(listed.is_empty());
    }
    assert!(requests.load(Ordering::SeqCst) >= 40);
    // Interfaces and addresses are listed at the same time, everything else one after the other.
    assert!(connections.load(Ordering::SeqCst) <= 2);
    let scopes = scopes.lock().unwrap().clone();
    assert_eq!(scopes, ["https://management.usgovcloudapi.net/.default"]);
}
