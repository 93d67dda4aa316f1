//! A tenant's day, over a real socket.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::process::Command;

use serde_json::json;
use support::{Running, Tenant};

#[test]
fn a_tenant_creates_changes_and_deletes_an_instance() {
    whole_life(Running::sample());
}

#[test]
fn a_tenant_does_the_same_without_a_database() {
    whole_life(Running::sample_in_memory());
}

fn whole_life(running: Running) {
    let client = running.client(&running.token());
    let tenant = Tenant::only(&client);

    let created = client
        .post("/api/v2/instances", &tenant.instance("web-1"))
        .expect(201);
    let id = created.json()["metadata"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let address = format!("/api/v2/instances/{id}");
    assert_eq!(created.header("location"), Some(address.as_str()));
    let twice = client
        .post("/api/v2/instances", &tenant.instance("web-1"))
        .expect(409)
        .json();
    assert_eq!(twice["existingId"], json!(id));

    let read = client
        .get(&format!("{address}?waitFor=running"))
        .expect(200);
    assert_eq!(read.json()["status"]["powerState"], "running", "{read:?}");
    let listed = client
        .get("/api/v2/instances?powerState=running")
        .expect(200)
        .json();
    assert_eq!(listed["items"][0]["metadata"]["id"], json!(id));

    // A change that loses something is planned, refused, and made with consent.
    let update = json!({
        "metadata": {"name": "web-1", "tags": [{"name": "team", "value": "blue"}]},
        "spec": {"flavorId": "arm-2", "imageId": "debian-13-arm"},
    });
    let plan = client
        .put(&format!("{address}?dryRun=true"), &update)
        .expect(200)
        .json();
    assert_eq!(plan["destructive"], json!(true), "{plan}");
    let refused = client.put(&address, &update).expect(409);
    assert_eq!(
        (refused.code().as_str(), &refused.json()["plan"]["changes"]),
        ("consent_needed", &plan["changes"])
    );
    let etag = read.header("etag").unwrap();
    let consent = format!("{address}?allowReplace=true");
    let current = client.get(&address).expect(200);
    let tag = current.header("etag").unwrap();
    client
        .send("PUT", &consent, &[("If-Match", tag)], Some(&update))
        .expect(202);
    let stale = client
        .send("PUT", &consent, &[("If-Match", etag)], Some(&update))
        .expect(412);
    assert_eq!(stale.code(), "precondition_failed");
    client
        .get(&format!("{address}?waitFor=provisioned"))
        .expect(200);

    let stopped = client
        .post(&format!("{address}/stop"), &json!({}))
        .expect(202)
        .json();
    assert_eq!(stopped["generation"], json!(3));
    let read = client
        .get(&format!("{address}?waitFor=stopped"))
        .expect(200)
        .json();
    assert_eq!(read["status"]["powerState"], "stopped", "{read}");
    let not_running = client
        .post(&format!("{address}/reboot?hard=true"), &json!({}))
        .expect(409);
    assert!(
        not_running.json()["detail"]
            .as_str()
            .unwrap()
            .contains("start it first"),
        "{not_running:?}"
    );
    client
        .post(&format!("{address}/start"), &json!({}))
        .expect(202);
    client
        .get(&format!("{address}?waitFor=running"))
        .expect(200);

    let events = client.get(&format!("{address}/events")).expect(200).json();
    assert_eq!(events["items"][0]["kind"], "created");
    let key = client.get(&format!("{address}/sshkey")).expect(200).json();
    assert!(
        key["privateKey"]
            .as_str()
            .unwrap()
            .starts_with("-----BEGIN OPENSSH")
    );
    let image = json!({"metadata": {"name": "copy", "tags": [{"name": "by", "value": "test"}]}});
    client
        .post(&format!("{address}/snapshot"), &image)
        .expect(201);

    let quota = format!("/api/v2/organizations/{}/quota", tenant.organization);
    let lines = client.get(&quota).expect(200).json();
    let servers = lines["lines"]
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["kind"] == "servers");
    assert_eq!(servers.unwrap()["used"], json!(1));
    let inspected = client
        .get(&format!("/api/v2/operator/instances/{id}"))
        .expect(200)
        .json();
    assert_eq!(inspected["server"]["phase"], "running", "{inspected}");

    client.delete(&address).expect(202);
    client.delete(&address).expect(202);
    client
        .get(&format!("{address}?waitFor=deleted"))
        .expect(404);
    let log = client
        .get(&format!("/api/v2/auditlog?record={id}"))
        .expect(200)
        .json();
    assert_eq!(
        log["items"].as_array().unwrap().last().unwrap()["verb"],
        "delete",
        "{log}"
    );
    let metrics = client.get("/metrics").expect(200);
    assert!(
        metrics.text.contains("fleetwright_http_requests_total{"),
        "{}",
        metrics.text
    );
    assert_eq!(running.terminate(), Some(0));
}

#[test]
fn the_printed_requests_work_in_a_fresh_shell() {
    let running = Running::sample();
    let lines = running.greeting.lines();
    let script: Vec<_> = lines
        .filter(|line| line.starts_with("export ") || line.starts_with("curl "))
        .collect();
    assert_eq!(script.len(), 4);
    // --fail: a status that is an error ends the script.
    let script = format!(
        "set -e\n{}",
        script.join("\n").replace("curl -sS", "curl -sS --fail")
    );
    let pasted = Command::new("sh")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(pasted.status.success(), "{pasted:?}");
    let printed = String::from_utf8(pasted.stdout).unwrap();
    let mut printed = serde_json::Deserializer::from_str(&printed).into_iter::<serde_json::Value>();
    let created = printed.next().unwrap().unwrap();
    assert_eq!(created["metadata"]["name"], "web-1");
    assert_eq!(
        printed.next().unwrap().unwrap()["status"]["powerState"],
        "running"
    );
    assert_eq!(
        printed.next().unwrap().unwrap()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_request_with_a_key_is_carried_out_once() {
    let running = Running::sample();
    let client = running.client(&running.token());
    let tenant = Tenant::only(&client);
    let new = json!({
        "organizationId": tenant.organization, "projectId": tenant.project, "regionId": "north", "name": "green", "prefix": "10.1.0.0/16",
    });
    let key = [("Idempotency-Key", "k-1")];
    let first = client
        .send("POST", "/api/v2/networks", &key, Some(&new))
        .expect(201);
    let again = client
        .send("POST", "/api/v2/networks", &key, Some(&new))
        .expect(201);
    assert_eq!(
        (first.text.as_str(), first.header("location")),
        (again.text.as_str(), again.header("location"))
    );
    assert_eq!(
        (
            first.header("idempotency-replayed"),
            again.header("idempotency-replayed")
        ),
        (None, Some("true"))
    );
    let mut other = new.clone();
    other["name"] = json!("red");
    client
        .send("POST", "/api/v2/networks", &key, Some(&other))
        .expect(422);
    // A failure is not remembered: it had no effect.
    let key = [("Idempotency-Key", "k-2")];
    client
        .send("POST", "/api/v2/networks", &key, Some(&new))
        .expect(409);
    client
        .send("POST", "/api/v2/networks", &key, Some(&other))
        .expect(201);
    let problem = client
        .send("GET", "/api/v2/networks", &key, None)
        .expect(400);
    assert!(
        problem.json()["detail"]
            .as_str()
            .unwrap()
            .starts_with("Idempotency-Key")
    );
}

#[test]
fn a_watch_resumes_where_it_was_interrupted() {
    let running = Running::sample();
    let client = running.client(&running.token());
    let tenant = Tenant::only(&client);
    let address = "/api/v2/watch/instances";
    let mut events = client.watch(address, &[]);
    assert!(events.status.contains("200"), "{}", events.status);
    let synced = events.next("synced");
    let id = |answer: support::Answer| answer.expect(201).json()["metadata"]["id"].clone();
    let one = id(client.post("/api/v2/instances", &tenant.instance("one")));
    assert_eq!(
        events.next("instance").data["instance"]["metadata"]["id"],
        one
    );
    drop(events);

    // What happened meanwhile is sent, from the last id on.
    let path = format!("/api/v2/instances/{}", one.as_str().unwrap());
    client.delete(&path).expect(202);
    client.get(&format!("{path}?waitFor=deleted")).expect(404);
    let last = synced.id.unwrap();
    let mut events = client.watch(address, &[("Last-Event-ID", &last)]);
    assert_eq!(events.next("deleted").data["id"], one);

    // A list says from where to watch.
    let from = client.get("/api/v2/instances").expect(200).json()["watchFrom"]
        .as_str()
        .unwrap()
        .to_owned();
    let two = id(client.post("/api/v2/instances", &tenant.instance("two")));
    let mut events = client.watch(&format!("{address}?from={from}"), &[]);
    assert_eq!(
        events.next("instance").data["instance"]["metadata"]["id"],
        two
    );
    client.get(&format!("{address}?from=forged")).expect(400);
    let unknown = client
        .get(&format!("{address}?from={}", "A".repeat(48)))
        .expect(410);
    assert_eq!(unknown.code(), "gone");
    // With a time it ends by itself, and its last position resumes it.
    let whole = client.get(&format!("{address}?timeout=0")).expect(200);
    assert!(
        whole.text.contains("event: synced") && whole.text.contains("\"two\""),
        "{whole:?}"
    );
    client.get(&format!("{address}?timeout=3601")).expect(400);
    assert_eq!(
        running.terminate(),
        Some(0),
        "an open watch does not keep the program"
    );
}
