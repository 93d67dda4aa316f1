//! A thousand open watches: how long it takes until the last one has a change, and what reads cost beside them.

use std::time::Instant;

use futures_util::future::join_all;

use super::{
    Results, WATCHES,
    client::Client,
    files::{World, connect},
};
use crate::measure::{Effort, Row, nanoseconds};

pub(super) async fn run(effort: Effort, world: &World) -> Vec<Row> {
    let mut watches = Vec::new();
    let mut opened = Results::default();
    let began = Instant::now();
    // From the present position, so that a watch does not begin with every instance that the writes have created.
    let page = connect(world.address)
        .await
        .expect("GET", "/api/v2/instances?limit=1", None)
        .await;
    let from = page["watchFrom"].as_str().expect("a position").to_owned();
    for _ in 0..WATCHES {
        let sent = Instant::now();
        let mut watch = connect(world.address).await;
        match watch.open(&from).await {
            Ok(200) => {
                opened.times.push(nanoseconds(sent.elapsed()));
                watches.push(watch);
            }
            Ok(_) | Err(_) => opened.errors += 1,
        }
    }
    opened.took = nanoseconds(began.elapsed());
    let operation = "service, 1,000 open watches";
    let changes = changes(effort, world, &mut watches).await;
    vec![
        opened.row(operation, "open a watch"),
        changes.row(operation, "a change, from the request until a watch has it"),
    ]
}

/// Changes an instance again and again. Each change is counted once for each watch.
async fn changes(effort: Effort, world: &World, watches: &mut [Client]) -> Results {
    let mut results = Results::default();
    let began = Instant::now();
    for round in 0..effort.rounds {
        let name = format!("watched-{round}");
        // The service closes a connection that was idle for some seconds, and reading all watches takes longer on a slow machine.
        let mut client = connect(world.address).await;
        let sent = Instant::now();
        let new = world.instance(&name);
        client.expect("POST", "/api/v2/instances", Some(&new)).await;
        let received = watches.iter_mut().map(|watch| {
            let text = format!("\"{name}\"");
            async move {
                watch
                    .until(&text)
                    .await
                    .map(|()| nanoseconds(sent.elapsed()))
            }
        });
        for received in join_all(received).await {
            match received {
                Ok(time) => results.times.push(time),
                Err(_) => results.errors += 1,
            }
        }
    }
    results.took = nanoseconds(began.elapsed());
    results
}
