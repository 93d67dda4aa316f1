//! Traces, as a collector receives them.

#![cfg(feature = "otel")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
};

use support::Files;

/// A collector that keeps the bytes of every request.
struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<Mutex<Vec<u8>>>::default();
        let all = Arc::clone(&received);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !is_complete(&request) {
                    match stream.read(&mut buffer) {
                        Ok(0) | Err(_) => break,
                        Ok(read) => request.extend_from_slice(&buffer[..read]),
                    }
                }
                all.lock().unwrap().extend(request);
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                );
            }
        });
        Self { address, received }
    }
}

/// Whether a request has its whole body.
fn is_complete(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|end| end == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |length| length.trim().parse().unwrap());
    request.len() >= end + 4 + length
}

fn files(endpoint: &str) -> Files {
    let files = Files::new(&format!(
        "[traces]\nendpoint = '{endpoint}'\nservice = 'fleet-test'"
    ));
    files.token("olga");
    files
}

#[test]
fn a_request_is_a_span_of_the_callers_trace_without_secrets() {
    let collector = Collector::start();
    let files = files(&format!("http://{}", collector.address));
    let token = files.token("olga");
    let running = files.start();
    let client = running.client(&token);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let answer = client.send(
        "GET",
        "/api/v2/instances?tag=a%3Dquery",
        &[("traceparent", parent)],
        None,
    );
    assert_eq!(
        answer.expect(200).header("x-trace-id"),
        Some("0af7651916cd43dd8448eb211c80319c")
    );
    let own = client.get("/api/version").expect(200);
    let own = own.header("x-trace-id").unwrap().to_owned();
    assert_eq!(running.terminate(), Some(0));

    let received = collector.received.lock().unwrap();
    let has = |bytes: &[u8]| received.windows(bytes.len()).any(|part| part == bytes);
    assert!(has(b"POST /v1/traces"));
    for text in [
        "fleet-test",
        "GET /api/v2/instances",
        "http.response.status_code",
    ] {
        assert!(has(text.as_bytes()), "{text}");
    }
    for id in [
        "0af7651916cd43dd8448eb211c80319c",
        "b7ad6b7169203331",
        own.as_str(),
    ] {
        assert!(has(&unhex(id)), "{id}");
    }
    for secret in [token.as_str(), "query", "Bearer"] {
        assert!(!has(secret.as_bytes()), "{secret}");
    }
}

#[test]
fn a_collector_that_is_down_stops_nothing() {
    // A port that nobody listens at.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let files = files(&format!("http://{address}"));
    let token = files.token("olga");
    let running = files.start();
    let client = running.client(&token);
    for _ in 0..20 {
        client.get("/api/version").expect(200);
    }
    assert_eq!(running.terminate(), Some(0));
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}
