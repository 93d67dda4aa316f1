//! A service that is killed again and again, under load, loses nothing that it acknowledged, and carries out no request with a key twice.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};
use support::{Answer, Client, Files, Tenant};

const WRITERS: usize = 4;
const READERS: usize = 2;
/// After how many acknowledged writes the service is killed, each time: at once, in the middle, and after many.
const KILLS: [usize; 8] = [1, 30, 3, 45, 7, 20, 2, 60];

/// One writer: creates projects one after the other, each with a key of its own, and goes on after every kill.
#[derive(Default)]
struct Writer {
    number: usize,
    /// The body of each response that acknowledged a project.
    acknowledged: BTreeMap<String, String>,
    /// The request that was cut off: it may or may not have been carried out.
    cut_off: Option<String>,
}

impl Writer {
    /// Writes until the service is gone.
    fn run(&mut self, client: &Client, projects: &str, writer: usize, count: &AtomicUsize) {
        if let Some(name) = self.cut_off.take()
            && !self.repeat(client, projects, name)
        {
            return;
        }
        loop {
            let name = format!("p-{writer}-{}", self.number);
            self.number += 1;
            match create(client, projects, &name) {
                Some(answer) => {
                    let answer = answer.expect(201);
                    assert_eq!(answer.header("idempotency-replayed"), None, "{answer:?}");
                    self.acknowledged.insert(name, answer.text);
                    count.fetch_add(1, Ordering::SeqCst);
                }
                None => {
                    self.cut_off = Some(name);
                    return;
                }
            }
        }
    }

    /// Repeats a request that was cut off. Returns false if the service is gone again.
    fn repeat(&mut self, client: &Client, projects: &str, name: String) -> bool {
        let Some(answer) = create(client, projects, &name) else {
            self.cut_off = Some(name);
            return false;
        };
        match answer.status {
            201 => {
                self.acknowledged.insert(name, answer.text);
            }
            // It was interrupted between the key and the response: the service waits until nothing of it can be under way.
            409 => assert!(answer.header("retry-after").is_some(), "{answer:?}"),
            _ => panic!("{answer:?}"),
        }
        true
    }
}

/// The response, or `None` if the service is gone.
fn create(client: &Client, projects: &str, name: &str) -> Option<Answer> {
    let key = [("Idempotency-Key", name)];
    let sent = client.try_send("POST", projects, &key, Some(&json!({"name": name})));
    // Status 0: cut off in the head.
    sent.ok()
        .filter(|answer| answer.status != 0 && is_whole(answer))
}

/// Whether the response was not cut off in its body.
fn is_whole(answer: &Answer) -> bool {
    let length = answer
        .header("content-length")
        .and_then(|length| length.parse().ok());
    length.is_none_or(|length: usize| answer.text.len() == length)
}

/// Reads lists until the service is gone.
fn read(client: &Client, projects: &str) {
    let mut last = 0;
    while let Ok(answer) = client.try_send("GET", &format!("{projects}?limit=500"), &[], None) {
        if answer.status != 200 || !is_whole(&answer) {
            return;
        }
        let count = answer.json()["items"].as_array().unwrap().len();
        assert!(count >= last.min(500), "{count} after {last}");
        last = count;
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_service_is_killed() {
    let files = Files::new("rate = 1000000");
    let token = files.token("olga");
    let mut writers: Vec<_> = (0..WRITERS).map(|_| Writer::default()).collect();
    let mut organization = None;
    for kill_after in KILLS {
        let mut running = files.start();
        let client = running.client(&token);
        let organization = organization
            .get_or_insert_with(|| Tenant::create(&client, "acme", "ada").organization)
            .clone();
        let projects = format!("/api/v2/organizations/{organization}/projects");
        let count = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for (number, writer) in writers.iter_mut().enumerate() {
                let (client, projects, count) = (&client, &projects, &count);
                scope.spawn(move || writer.run(client, projects, number, count));
            }
            for _ in 0..READERS {
                scope.spawn(|| read(&client, &projects));
            }
            while count.load(Ordering::SeqCst) < kill_after {
                thread::yield_now();
            }
            running.child.kill().unwrap();
            running.child.wait().unwrap();
        });
    }

    let running = files.start();
    let client = running.client(&token);
    let projects = format!("/api/v2/organizations/{}/projects", organization.unwrap());
    let mut found = BTreeMap::new();
    let mut after = String::new();
    loop {
        let page = client
            .get(&format!("{projects}?limit=500{after}"))
            .expect(200)
            .json();
        for item in page["items"].as_array().unwrap() {
            let name = item["name"].as_str().unwrap().to_owned();
            assert!(found.insert(name, item.clone()).is_none(), "twice: {item}");
        }
        let Some(next) = page["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    let acknowledged: BTreeMap<_, _> = writers
        .iter()
        .flat_map(|writer| writer.acknowledged.clone())
        .collect();
    assert!(acknowledged.len() >= KILLS.iter().sum());
    for (name, body) in &acknowledged {
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(found.get(name), Some(&body), "lost or changed: {name}");
    }
    // A key that was acknowledged in any life is repeated, and nothing is created.
    for (name, body) in acknowledged.iter().step_by(7) {
        let again = create(&client, &projects, name).unwrap().expect(201);
        assert_eq!(
            (again.header("idempotency-replayed"), &again.text),
            (Some("true"), body)
        );
    }
}
