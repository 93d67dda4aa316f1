//! The program: its files, its checks, its log.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use serde_json::json;
use support::{Files, Running, Tenant};

#[test]
fn a_check_finds_every_mistake_of_every_file() {
    let files = Files::new("rate = 5");
    files.token("olga");
    let good = files.check();
    assert!(good.status.success(), "{good:?}");

    let write =
        |name: &str, text: &str| std::fs::write(files.folder.path().join(name), text).unwrap();
    write(
        "server.toml",
        "listen = 'here'\ndatabase = 'fleet.db'\ncatalog = 'catalog.toml'\ntokens = 'tokens.toml'\nadministrator = 'olga'\n\
        [[region]]\nprovider = 'memoryy'\nmapping = 'mapping.toml'\n[limits]\nbody = '5'\nrat = 3\n",
    );
    let found = files.check();
    let text = String::from_utf8(found.stderr).unwrap();
    assert!(!found.status.success());
    for expected in [
        "line 1, column 10: listen",
        "line 7, column 12: provider of region 1",
        "line 10, column 8: body of limits",
        "line 11, column 1: limits: \"rat\" is unknown",
        "did you mean rate?",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }

    let files = Files::new("");
    let write =
        |name: &str, text: &str| std::fs::write(files.folder.path().join(name), text).unwrap();
    write("tokens.toml", "[[token]]\nactor = ''\n");
    write("catalog.toml", "[[flavor]]\nid = 'x'\n");
    let text = String::from_utf8(files.check().stderr).unwrap();
    assert!(
        text.contains("tokens.toml has mistakes") && text.contains("catalog.toml has mistakes"),
        "{text}"
    );
}

#[test]
fn the_log_has_the_trace_id_and_no_secret() {
    let mut running = Running::sample_with_log();
    let token = running.token();
    let client = running.client(&token);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let answer = client.send(
        "GET",
        "/api/v2/instances?tag=secret",
        &[("traceparent", parent)],
        None,
    );
    let answer = answer.expect(400);
    assert_eq!(answer.json()["traceId"], "0af7651916cd43dd8448eb211c80319c");
    let log = running.log_after_sigterm();
    let line = log
        .lines()
        .find(|line| line.contains("0af7651916cd43dd8448eb211c80319c"));
    let line: serde_json::Value = serde_json::from_str(line.unwrap()).unwrap();
    assert_eq!(
        (&line["status"], &line["actor"], &line["path"]),
        (
            &400.into(),
            &"user:olga".into(),
            &"/api/v2/instances".into()
        )
    );
    assert!(!log.contains(&token) && !log.contains("secret"), "{log}");
}

#[test]
fn the_log_names_a_caller_that_is_refused_for_its_rate() {
    let files = Files::new("rate = 1");
    let token = files.token("olga");
    let mut running = Running::with_log(&files.folder.path().join("server.toml"));
    let client = running.client(&token);
    let refused = (0..200).any(|_| client.get("/api/version").status == 429);
    assert!(refused);
    let log = running.log_after_sigterm();
    let lines = log
        .lines()
        .map(|line| -> serde_json::Value { serde_json::from_str(line).unwrap() });
    let refused = lines.filter(|line| line["status"] == 429);
    let actors: Vec<_> = refused.map(|line| line["actor"].clone()).collect();
    assert_eq!(actors, ["user:olga"]);
}

#[test]
fn the_service_becomes_ready() {
    let running = Running::sample();
    let mut client = running.client("");
    client.token = None;
    let ready = (0..600).find(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        client.get("/readyz").status == 204
    });
    assert!(ready.is_some());
}

#[test]
fn a_restarted_cloud_does_not_give_the_ids_of_lost_machines_to_new_ones() {
    let files = Files::new("");
    let olga = files.token("olga");
    let running = files.start();
    let client = running.client(&olga);
    let tenant = Tenant::create(&client, "acme", "ada");
    let create = |client: &support::Client, name: &str| {
        let created = client.post("/api/v2/instances", &tenant.instance(name));
        let id = created.expect(201).json()["metadata"]["id"].clone();
        let wait = format!("/api/v2/instances/{}?waitFor=running", id.as_str().unwrap());
        client.get(&wait).expect(200).json()["status"]["powerState"].clone()
    };
    assert_eq!(create(&client, "before"), json!("running"));
    assert_eq!(running.terminate(), Some(0));

    let running = files.start();
    let client = running.client(&olga);
    assert_eq!(create(&client, "after"), json!("running"));
    assert_eq!(running.terminate(), Some(0));
}
