//! Overload: who asks too much is told when to come back, others are served meanwhile, and the service recovers by itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;
use support::{Answer, Client, Files, Tenant};

/// Checks the problem, and returns the delay that it asks for.
fn delay(answer: &Answer, code: &str) -> Duration {
    assert_eq!(answer.code(), code, "{answer:?}");
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("application/problem+json"));
    let problem = answer.json();
    assert_eq!(problem["status"], answer.status);
    assert!(problem["traceId"].is_string(), "{answer:?}");
    let seconds = answer.header("retry-after").expect("Retry-After");
    assert_eq!(problem["retryAfter"].to_string(), seconds);
    Duration::from_secs(seconds.parse().unwrap())
}

/// Sends a request until it is refused.
fn refused(client: &Client, path: &str) -> Answer {
    let refused = (0..1000)
        .map(|_| client.get(path))
        .find(|answer| answer.status == 429);
    refused.expect("a refused request")
}

#[test]
fn a_caller_above_its_rate_is_admitted_again_after_the_delay() {
    let files = Files::new("rate = 5");
    let [olga, ada] = ["olga", "ada"].map(|actor| files.token(actor));
    let running = files.start();
    let [olga, ada] = [olga, ada].map(|token| running.client(&token));
    for _ in 0..2 {
        let wait = delay(&refused(&olga, "/api/version"), "too_many_requests");
        ada.get("/api/version").expect(200);
        std::thread::sleep(wait);
        olga.get("/api/version").expect(200);
    }
    assert_eq!(running.terminate(), Some(0));
}

#[test]
fn a_caller_with_too_many_requests_under_way_is_admitted_again_after_one_of_them() {
    let files = Files::new("concurrency = 1\nrate = 100000");
    let [olga, ada] = ["olga", "ada"].map(|actor| files.token(actor));
    let running = files.start();
    let [olga, ada] = [olga, ada].map(|token| running.client(&token));
    let tenant = Tenant::create(&olga, "acme", "ada");
    let created = ada.post("/api/v2/instances", &tenant.instance("web-1"));
    let id = created.expect(201).json()["metadata"]["id"].clone();
    let instance = format!("/api/v2/instances/{}", id.as_str().unwrap());
    ada.get(&format!("{instance}?waitFor=running")).expect(200);
    std::thread::scope(|scope| {
        let poll = format!("{instance}?waitFor=stopped&timeout=25");
        let waiting = scope.spawn({
            let ada = ada.clone();
            // It may come in while the other request is under way.
            move || loop {
                let answer = ada.get(&poll);
                if answer.status != 429 {
                    return answer;
                }
            }
        });
        let answer = refused(&ada, "/api/version");
        assert!(delay(&answer, "too_many_requests") >= Duration::from_secs(1));
        // Another caller is served, and ends what the first one waits for.
        olga.post(&format!("{instance}/stop"), &json!({}))
            .expect(202);
        let stopped = waiting.join().unwrap().expect(200).json();
        assert_eq!(stopped["status"]["powerState"], "stopped");
    });
    ada.get("/api/version").expect(200);
    assert_eq!(running.terminate(), Some(0));
}

#[test]
fn a_request_that_takes_too_long_is_refused_and_the_service_recovers() {
    let files = Files::new("request-time = '1 s'");
    let token = files.token("olga");
    let running = files.start();
    let client = running.client(&token);
    let other = Connection::open(files.folder.path().join("fleet.db")).unwrap();
    other.busy_timeout(Duration::from_secs(60)).unwrap();
    // A writer that holds the database for longer than a request may take.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let new = json!({"name": "acme"});
    let create = || client.post("/api/v2/organizations", &new);
    // Without advice to retry: it may be carried out yet.
    let answer = create().expect(503);
    assert_eq!(answer.code(), "unavailable");
    assert_eq!(answer.header("retry-after"), None, "{answer:?}");
    client.get("/healthz").expect(204);
    other.execute_batch("ROLLBACK").unwrap();
    // It may have been carried out since: then a retry is a conflict.
    let recovered = (0..60).any(|_| {
        std::thread::sleep(Duration::from_secs(1));
        [201, 409].contains(&create().status)
    });
    assert!(recovered);
    let listed = client.get("/api/v2/organizations").expect(200).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(running.terminate(), Some(0));
}
