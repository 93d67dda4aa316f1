//! Manages a fleet on the memory cloud: `cargo run`, or `cargo run -- --size 12`.
//!
//! It needs no account and no network. For a real cloud, only the line that creates the provisioner
//! changes.

mod manager;
mod output;

use std::{error::Error, sync::Arc, time::Duration};

use clap::Parser;
use fleetwright::prelude::*;
use fleetwright_memory::{MemoryCloud, Timing};

use manager::FleetManager;
use output::Output;

/// Launches, repairs, restarts and terminates a fleet on a simulated cloud.
#[derive(Debug, Parser)]
#[command(name = "fleet", version)]
struct Arguments {
    /// Number of instances to keep running.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    size: u32,
    /// Seed of the simulated cloud.
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// The name of the fleet: all that a restarted manager has to know.
const FLEET: &str = "blue";

/// The interval of the control loop.
const TICK: Duration = Duration::from_millis(120);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let cloud = MemoryCloud::builder()
        .seed(arguments.seed)
        .timing(Timing::all(Duration::from_millis(700)))
        .latency(Duration::from_millis(2))
        .build();
    let output = Output::new(arguments.size);
    let policy = WaitPolicy::within(Duration::from_secs(60)).delays(TICK, TICK * 4);

    let provisioner: Arc<dyn InstanceProvisioner> = Arc::new(cloud.provisioner());
    let manager = FleetManager::new(Arc::clone(&provisioner), FLEET, arguments.size)?;
    output.step("launch", &format!("a fleet of {}", arguments.size));
    let first = wait_until_ready(&manager, &output).await?;
    output.done(&format!("{} launched and running", first.len()));

    let lost = &first[0];
    output.step(
        "lose",
        &format!("{lost} is terminated by an external actor"),
    );
    cloud.external_actor().terminate(lost)?;
    let second = wait_until_ready(&manager, &output).await?;
    let replacement = second
        .iter()
        .find(|id| !first.contains(id))
        .ok_or("the lost instance was not replaced")?;
    output.done(&format!("{lost} was replaced by {replacement}"));

    output.step("stop", &format!("{replacement}, and start it again"));
    let before = provisioner.describe_instance(replacement).await?.public_ip;
    provisioner.stop_and_wait(replacement, &policy).await?;
    let after = provisioner
        .start_and_wait(replacement, &policy)
        .await?
        .public_ip;
    let (before, after) = (
        before.ok_or("no address before the stop")?,
        after.ok_or("no address after the start")?,
    );
    output.done(&format!(
        "stopped and started; its address changed from {before} to {after}"
    ));

    output.step(
        "restart",
        "a new manager starts with only the name of the fleet",
    );
    drop((manager, provisioner));
    let provisioner: Arc<dyn InstanceProvisioner> = Arc::new(cloud.provisioner());
    let manager = FleetManager::new(provisioner, FLEET, arguments.size)?;
    let found: Vec<InstanceId> = manager
        .members()
        .await?
        .into_values()
        .map(|i| i.id)
        .collect();
    output.done(&format!(
        "{} of {} found by their tags",
        found.len(),
        second.len()
    ));
    for slot in 0..arguments.size {
        let repeated = manager.fill(slot).await?;
        if !found.contains(&repeated.id) {
            return Err(format!("{} was launched twice", repeated.id).into());
        }
    }
    output.done("every launch was repeated with its token; no second instance was launched");

    output.step("terminate", "the whole fleet");
    let terminated = manager.terminate_all(&policy).await?;
    output.done(&format!("{} terminated", terminated.len()));
    let leftovers = cloud.oracle().leftovers();
    if !leftovers.is_empty() {
        return Err(leftovers.to_string().into());
    }
    let calls = cloud.oracle().total_calls();
    output.last(&format!(
        "{calls} calls in total; check of the cloud: {leftovers}"
    ));
    Ok(())
}

/// Runs the control loop until every slot has a running instance. Returns the ids by slot.
async fn wait_until_ready(
    manager: &FleetManager,
    output: &Output,
) -> Result<Vec<InstanceId>, Box<dyn Error>> {
    loop {
        let tick = manager.tick().await?;
        for info in &tick.launched {
            output.detail(&format!("launched {} in slot {}", info.id, slot(info)));
        }
        let ready: Vec<_> = tick
            .ready()
            .into_iter()
            .map(|info| info.id.clone())
            .collect();
        output.progress(ready.len());
        if tick.launched.is_empty() && ready.len() == tick.members.len() {
            return Ok(ready);
        }
        tokio::time::sleep(TICK).await;
    }
}

fn slot(info: &InstanceInfo) -> &str {
    info.tags.get("slot").unwrap_or("?")
}
