//! Reads and writes by many connections at once, beside the same numbers of reads and commits of the store alone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use fleetwright_store::{RecordId, Schema, Store, Transaction};
use fleetwright_store_sqlite::SqliteStore;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    AT_ONCE, Results,
    files::{World, connect},
};
use crate::measure::{Effort, Row, nanoseconds};

/// A request: method, path, body.
type Request = (&'static str, String, Option<Value>);

pub(super) async fn reads(effort: Effort, world: &World) -> Vec<Row> {
    let one = |number: usize| {
        let id = &world.instances[number % world.instances.len()];
        ("GET", format!("/api/v2/instances/{id}"), None)
    };
    let list = |_| ("GET", "/api/v2/instances?limit=50".to_owned(), None);
    let version = |_| ("GET", "/api/version".to_owned(), None);
    let operation = "service, reads, 64 at once";
    vec![
        store(effort, world, Act::Read)
            .await
            .row(operation, "SQLite store alone: read a record"),
        requests(effort, world, &version)
            .await
            .row(operation, "read the version"),
        requests(effort, world, &one)
            .await
            .row(operation, "read an instance"),
        requests(effort, world, &list)
            .await
            .row(operation, "list 50 instances"),
    ]
}

pub(super) async fn writes(effort: Effort, world: &World) -> Vec<Row> {
    let projects = world.projects();
    let project = |number: usize| {
        (
            "POST",
            projects.clone(),
            Some(json!({"name": format!("p-{number}")})),
        )
    };
    let instance = |number: usize| {
        let new = world.instance(&format!("i-{number}"));
        ("POST", "/api/v2/instances".to_owned(), Some(new))
    };
    let operation = "service, writes, 64 at once";
    vec![
        store(effort, world, Act::Write)
            .await
            .row(operation, "SQLite store alone: commit a record"),
        requests(effort, world, &project)
            .await
            .row(operation, "create a project"),
        requests(effort, world, &instance).await.row(
            operation,
            "create an instance, with the controllers at work",
        ),
    ]
}

/// How long one load takes.
fn duration(effort: Effort) -> Duration {
    effort.time * u32::try_from(effort.rounds).unwrap_or(1)
}

/// Sends requests over many connections until the time is over.
async fn requests(
    effort: Effort,
    world: &World,
    request: &(dyn Fn(usize) -> Request + Sync),
) -> Results {
    let number = AtomicUsize::new(0);
    let mut clients = join_all((0..AT_ONCE).map(|_| connect(world.address))).await;
    let began = Instant::now();
    let until = began + duration(effort);
    let loads = clients.iter_mut().map(|client| {
        let number = &number;
        async move {
            let mut results = Results::default();
            while Instant::now() < until {
                let (method, path, body) = request(number.fetch_add(1, Ordering::Relaxed));
                let sent = Instant::now();
                match client.send(method, &path, body.as_ref()).await {
                    Ok((200..300, _)) => results.times.push(nanoseconds(sent.elapsed())),
                    Ok(_) | Err(_) => results.errors += 1,
                }
            }
            results
        }
    });
    merge(join_all(loads).await, began)
}

/// What is done with the store.
#[derive(Clone, Copy)]
enum Act {
    Read,
    Write,
}

/// Reads or commits records of the size of a project in a store that nobody else uses.
async fn store(effort: Effort, world: &World, act: Act) -> Results {
    let path = world.folder.join(match act {
        Act::Read => "reads.db",
        Act::Write => "writes.db",
    });
    let schema = Schema::builder().kind("bench").build().expect("a schema");
    let store = SqliteStore::open(path, schema).await.expect("a store");
    let store: Arc<dyn Store> = Arc::new(store);
    let id = |task: usize| RecordId::new("bench", format!("record-{task}")).expect("an id");
    let value = json!({"name": "p-1", "at": "2026-01-01T00:00:00Z", "text": "x".repeat(300)});
    for task in 0..AT_ONCE {
        let put = Transaction::new().put(id(task), value.clone());
        store.commit(&put).await.expect("a commit");
    }
    let began = Instant::now();
    let until = began + duration(effort);
    let loads = (0..AT_ONCE).map(|task| {
        let (store, value, id) = (Arc::clone(&store), value.clone(), id(task));
        async move {
            let mut results = Results::default();
            while Instant::now() < until {
                let sent = Instant::now();
                let is_done = match act {
                    Act::Read => store.get(&id).await.is_ok(),
                    Act::Write => {
                        let put = Transaction::new().put(id.clone(), value.clone());
                        store.commit(&put).await.is_ok()
                    }
                };
                if is_done {
                    results.times.push(nanoseconds(sent.elapsed()));
                } else {
                    results.errors += 1;
                }
            }
            results
        }
    });
    merge(join_all(loads).await, began)
}

fn merge(all: Vec<Results>, began: Instant) -> Results {
    let mut merged = Results {
        took: nanoseconds(began.elapsed()),
        ..Results::default()
    };
    for results in all {
        merged.times.extend(results.times);
        merged.errors += results.errors;
    }
    merged
}
