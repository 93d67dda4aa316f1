//! A service that is killed loses nothing that it acknowledged.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::json;
use support::{Files, Tenant};

const KILLS: usize = 5;
const WRITERS: usize = 4;
/// After how many acknowledged writes the service is killed.
const WRITES: usize = 30;

#[test]
fn nothing_acknowledged_is_lost_when_the_service_is_killed() {
    let files = Files::new("rate = 1000000");
    let token = files.token("olga");
    let mut acknowledged = BTreeSet::new();
    let mut tenant = None;
    for round in 0..KILLS {
        let mut running = files.start();
        let client = running.client(&token);
        let organization = tenant
            .get_or_insert_with(|| Tenant::create(&client, "acme", "ada").organization)
            .clone();
        let projects = format!("/api/v2/organizations/{organization}/projects");
        let names = Arc::new(Mutex::new(Vec::new()));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (client, names, projects) =
                    (client.clone(), Arc::clone(&names), projects.clone());
                thread::spawn(move || {
                    for number in 0.. {
                        let name = format!("p-{round}-{writer}-{number}");
                        let key = [("Idempotency-Key", name.as_str())];
                        let sent =
                            client.try_send("POST", &projects, &key, Some(&json!({"name": name})));
                        match sent {
                            Ok(answer) if answer.status == 201 => names.lock().unwrap().push(name),
                            // Killed: cut off, or refused.
                            Ok(answer) if answer.status == 0 => break,
                            Ok(answer) => panic!("{answer:?}"),
                            Err(_) => break,
                        }
                    }
                })
            })
            .collect();
        while names.lock().unwrap().len() < WRITES {
            thread::yield_now();
        }
        running.child.kill().unwrap();
        running.child.wait().unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        acknowledged.extend(names.lock().unwrap().drain(..));
    }
    let running = files.start();
    let client = running.client(&token);
    let mut found = BTreeSet::new();
    let mut after = String::new();
    loop {
        let organization = tenant.as_deref().unwrap();
        let address = format!("/api/v2/organizations/{organization}/projects?limit=500{after}");
        let page = client.get(&address).expect(200).json();
        let items = page["items"].as_array().unwrap();
        found.extend(
            items
                .iter()
                .map(|item| item["name"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    assert!(acknowledged.len() >= KILLS * WRITES);
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "{lost:?}");
}
