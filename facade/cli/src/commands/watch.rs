//! Changes of instances as they happen.

use chrono::Utc;
use fleetwright_client::{Change, WatchEvent, WatchFrom};
use futures_util::TryStreamExt as _;
use serde_json::{Value, json};

use super::instances::wire_name;
use crate::{context::Context, failure::Failure};

pub(super) async fn run(context: &Context, from: Option<String>) -> Result<(), Failure> {
    let from = from.map_or(WatchFrom::Now, WatchFrom::Position);
    let mut events = context.client.watch_instances(from);
    loop {
        let event = tokio::select! {
            event = events.try_next() => event?,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        let Some(event) = event else { return Ok(()) };
        if context.output.is_json() {
            context.output.json_line(&value(&event))?;
        } else if let Some(line) = line(&event.change) {
            let time = Utc::now().format("%H:%M:%S");
            context.output.done(&format!("{time}  {line}"))?;
        }
    }
}

/// An event for a program: what happened, with the position after it.
fn value(event: &WatchEvent) -> Value {
    let mut value = match &event.change {
        Change::Instance(instance) => json!({"event": "instance", "instance": instance}),
        Change::Deleted(id) => json!({"event": "deleted", "id": id}),
        Change::Synced => json!({"event": "synced"}),
        Change::Position => json!({"event": "position"}),
        Change::Restarted => json!({"event": "restarted"}),
    };
    if let Some(position) = &event.position {
        value["position"] = json!(position);
    }
    value
}

fn line(change: &Change) -> Option<String> {
    match change {
        Change::Instance(instance) => {
            let metadata = &instance.metadata;
            let progress = wire_name(&metadata.provisioning_status);
            let power = wire_name(&instance.status.power_state);
            Some(format!(
                "{}  {}  {power}, {progress}",
                metadata.id, metadata.name
            ))
        }
        Change::Deleted(id) => Some(format!("{id}  deleted")),
        Change::Synced => Some("all present instances are listed; changes follow".to_owned()),
        Change::Position => None,
        Change::Restarted => {
            Some("the watch begins again: all present instances follow".to_owned())
        }
    }
}
