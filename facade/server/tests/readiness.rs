//! Readiness: the store can be written, and every region was seen lately. And what an operator does about a region that is not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use support::{Answer, Client, Files, Tenant};

/// Reads until the response is as expected.
fn until(what: &str, read: impl Fn() -> Answer, expected: impl Fn(&Answer) -> bool) -> Answer {
    let mut last = read();
    for _ in 0..300 {
        if expected(&last) {
            return last;
        }
        std::thread::sleep(Duration::from_millis(100));
        last = read();
    }
    panic!("{what}: {last:?}")
}

fn until_ready(client: &Client) {
    let ready = |answer: &Answer| answer.status == 204;
    until("ready", || client.get("/readyz"), ready);
}

/// A problem that says when to retry, and nothing of its cause.
fn check_unavailable(answer: &Answer) {
    let problem = answer.json();
    assert_eq!(problem["code"], "unavailable", "{answer:?}");
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("application/problem+json"));
    let seconds = answer.header("retry-after").expect("Retry-After");
    assert!(seconds.parse::<u64>().unwrap() >= 1, "{answer:?}");
    assert_eq!(problem["retryAfter"].to_string(), seconds);
    for internal in ["sqlite", "database", "lock", "fleet.db", "south", "memory/"] {
        assert!(!answer.text.contains(internal), "{answer:?}");
    }
}

#[test]
fn a_service_whose_store_cannot_be_written_is_not_ready_and_recovers() {
    let files = Files::new("");
    let token = files.token("olga");
    let running = files.start();
    let client = running.client(&token);
    until_ready(&client);
    // Another process writes to the database, and does not come to an end.
    let other = Connection::open(files.folder.path().join("fleet.db")).unwrap();
    other.busy_timeout(Duration::from_secs(60)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = |answer: &Answer| answer.status == 503;
    let refused = until("not ready", || client.get("/readyz"), refused);
    check_unavailable(&refused);
    let new = json!({"name": "acme"});
    check_unavailable(&client.post("/api/v2/organizations", &new).expect(503));
    // The process lives, and reads are served.
    client.get("/healthz").expect(204);
    client.get("/api/v2/organizations").expect(200);
    other.execute_batch("ROLLBACK").unwrap();
    until_ready(&client);
    client.post("/api/v2/organizations", &new).expect(201);
    assert_eq!(running.terminate(), Some(0));
}

/// The report of region north.
fn north(client: &Client) -> Value {
    let reports = client.get("/api/v2/operator/regions").expect(200).json();
    let mut items = reports["items"].as_array().unwrap().iter();
    items.find(|item| item["id"] == "north").unwrap().clone()
}

#[test]
fn a_region_with_the_credentials_of_another_is_not_seen_until_an_operator_decides() {
    let config = |first: &str, second: &str| {
        let region = |name: &str| format!("[[region]]\nprovider = 'memory'\nmapping = '{name}'\n");
        format!(
            "scan-interval = '200 ms'\n{}{}",
            region(first),
            region(second)
        )
    };
    let files = Files::with_regions(&config("mapping.toml", "south.toml"));
    let mapping = std::fs::read_to_string(files.folder.path().join("mapping.toml")).unwrap();
    let south = mapping.replace("region = \"north\"", "region = \"south\"");
    assert_ne!(south, mapping);
    std::fs::write(files.folder.path().join("south.toml"), south).unwrap();
    let [olga, ada] = ["olga", "ada"].map(|actor| files.token(actor));
    let running = files.start();
    let client = running.client(&olga);
    until_ready(&client);
    let tenant = Tenant::create(&client, "acme", "ada");
    let created = client.post("/api/v2/instances", &tenant.instance("web-1"));
    let id = created.expect(201).json()["metadata"]["id"].clone();
    let instance = format!("/api/v2/instances/{}", id.as_str().unwrap());
    client
        .get(&format!("{instance}?waitFor=running"))
        .expect(200);
    let account = north(&client)["account"].clone();
    assert!(account.is_string(), "{account}");
    assert_eq!(running.terminate(), Some(0));

    // The regions have each other's credentials.
    let path = files.folder.path().join("server.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let right = config("mapping.toml", "south.toml");
    let swapped = text.replace(&right, &config("south.toml", "mapping.toml"));
    assert_ne!(swapped, text);
    std::fs::write(&path, swapped).unwrap();
    let running = files.start();
    let client = running.client(&olga);
    let report = || client.get("/api/v2/operator/regions").expect(200);
    let found = |_: &Answer| north(&client)["otherAccount"].is_string();
    until("another account", report, found);
    let other = north(&client)["otherAccount"].clone();
    assert_ne!(other, account);
    let refused = |answer: &Answer| answer.status == 503;
    let refused = until("north is not seen", || client.get("/readyz"), refused);
    check_unavailable(&refused);

    // Only an operator may decide, and only about the account that is recorded.
    let address = "/api/v2/operator/regions/north/account";
    let accept = json!({"expected": account, "account": other});
    let tenant = running.client(&ada);
    let refused = tenant.post(address, &accept).status;
    assert!([403, 404].contains(&refused), "{refused}");
    let stale = json!({"expected": "memory/none", "account": other});
    client.post(address, &stale).expect(409);
    assert_eq!(north(&client)["account"], account);
    let accepted = client.post(address, &accept).expect(200).json();
    assert_eq!(
        (&accepted["account"], &accepted["otherAccount"]),
        (&other, &Value::Null)
    );
    until_ready(&client);

    // Its machine is in the other account. As no machine of the region is seen there, nothing is believed to be lost: the region is frozen.
    let frozen = |_: &Answer| north(&client)["scan"]["frozen"].is_string();
    until("frozen", report, frozen);
    let reason = north(&client)["scan"]["frozen"].clone();
    assert!(reason.as_str().unwrap().contains("listed"), "{reason}");
    // The operator replaces it, which releases the region.
    client
        .post(&format!("{instance}/replace"), &json!({}))
        .expect(202);
    let released = |_: &Answer| {
        let scan = north(&client)["scan"].clone();
        scan["frozen"].is_null() && scan["machines"] == 1
    };
    until("released", report, released);

    // The machine in the other account stays listed until the operator has terminated it there.
    let listed = |_: &Answer| north(&client)["leakedLaunches"].is_array();
    until("the machine that was left", report, listed);
    let leaked = north(&client)["leakedLaunches"].clone();
    let resolve = json!({"token": leaked[0]["token"]});
    let address = "/api/v2/operator/regions/north/leaks";
    let refused = tenant.post(address, &resolve).status;
    assert!([403, 404].contains(&refused), "{refused}");
    assert_eq!(north(&client)["leakedLaunches"], leaked);
    client.post(address, &resolve).expect(204);
    assert_eq!(north(&client)["leakedLaunches"], Value::Null);
    assert_eq!(running.terminate(), Some(0));
}
