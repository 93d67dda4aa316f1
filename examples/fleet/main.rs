//! The life of a fleet on the memory cloud: `cargo run`, or `cargo run -- --size 12`.
//!
//! Needs no account and no network. On a real cloud, only the line that makes the provisioner
//! changes.

mod manager;
mod show;

use std::{error::Error, sync::Arc, time::Duration};

use clap::Parser;
use fleetwright::{InstanceId, InstanceProvisioner, InstanceProvisionerExt, wait::WaitPolicy};
use fleetwright_memory::{MemoryCloud, Timing};

use manager::FleetManager;
use show::Show;

/// Runs the life of a fleet on a simulated cloud.
#[derive(Debug, Parser)]
#[command(name = "fleet", version)]
struct Arguments {
    /// How many instances to keep.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    size: u32,
    /// Where the simulated cloud's chance comes from.
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// The name of the fleet, and the one thing a restarted manager has to know.
const FLEET: &str = "blue";

/// How often the manager looks at its fleet.
const TICK: Duration = Duration::from_millis(120);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let cloud = MemoryCloud::builder()
        .seed(arguments.seed)
        .timing(Timing::all(Duration::from_millis(700)))
        .latency(Duration::from_millis(2))
        .build();
    let show = Show::new(arguments.size);
    let policy = WaitPolicy::within(Duration::from_secs(60)).delays(TICK, TICK * 4);

    let provisioner: Arc<dyn InstanceProvisioner> = Arc::new(cloud.provisioner());
    let manager = FleetManager::new(Arc::clone(&provisioner), FLEET, arguments.size)?;
    show.step("launch", &format!("a pool of {}", arguments.size));
    let first = until_ready(&manager, &show).await?;
    show.done(&format!("{} launched and ready", first.len()));

    let lost = &first[0];
    show.step("lose", &format!("{lost} is taken away from outside"));
    cloud.operator().terminate(lost)?;
    let second = until_ready(&manager, &show).await?;
    let replacement = second
        .iter()
        .find(|id| !first.contains(id))
        .ok_or("nothing was replaced")?;
    show.done(&format!("{lost} lost and replaced by {replacement}"));

    show.step("stop", &format!("{replacement}, and start it again"));
    let before = provisioner.describe_instance(replacement).await?.public_ip;
    provisioner.stop_and_wait(replacement, &policy).await?;
    let after = provisioner
        .start_and_wait(replacement, &policy)
        .await?
        .public_ip;
    let (before, after) = (
        before.ok_or("no address before")?,
        after.ok_or("no address after")?,
    );
    show.done(&format!(
        "stopped and started; its address was {before} and is now {after}"
    ));

    show.step(
        "restart",
        "the manager is dropped, and a new one knows only the fleet's name",
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
    show.done(&format!(
        "{} of {} rediscovered by their tags",
        found.len(),
        second.len()
    ));
    for slot in 0..arguments.size {
        let again = manager.fill(slot).await?;
        if !found.contains(&again.id) {
            return Err(format!("{} was launched twice", again.id).into());
        }
    }
    show.done("every launch repeated with its token, and none launched twice");

    show.step("terminate", "everything");
    let ended = manager.terminate_all(&policy).await?;
    show.done(&format!("{} terminated", ended.len()));
    let left = cloud.oracle().leftovers();
    if !left.is_nothing() {
        return Err(left.to_string().into());
    }
    let calls = cloud.oracle().total_calls();
    show.last(&format!(
        "{calls} calls in all; the cloud's books say: {left}"
    ));
    Ok(())
}

/// Runs the control loop until every slot is filled with a running instance; answers them by slot.
async fn until_ready(
    manager: &FleetManager,
    show: &Show,
) -> Result<Vec<InstanceId>, Box<dyn Error>> {
    loop {
        let tick = manager.tick().await?;
        for info in &tick.launched {
            show.detail(&format!("launched {} in slot {}", info.id, slot(info)));
        }
        let ready: Vec<_> = tick
            .ready()
            .into_iter()
            .map(|info| info.id.clone())
            .collect();
        show.progress(ready.len());
        if tick.launched.is_empty() && ready.len() == tick.members.len() {
            return Ok(ready);
        }
        tokio::time::sleep(TICK).await;
    }
}

fn slot(info: &fleetwright::InstanceInfo) -> &str {
    info.tags.get("slot").unwrap_or("?")
}
