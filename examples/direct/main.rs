//! Uses the trait directly to run one task on one instance: `cargo run --bin direct`.
//!
//! No fleet, no control loop: launch, use, terminate. The response of the launch is lost, as on a
//! real network, and the launch token prevents a second instance.

use std::{error::Error, time::Duration};

use fleetwright::prelude::*;
use fleetwright_memory::{Fault, MemoryCloud, Phase, Rule, Timing, WireCall};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let cloud = MemoryCloud::builder()
        .timing(Timing::all(Duration::from_millis(300)))
        .build();
    cloud
        .faults()
        .add(Rule::nth(WireCall::Launch, 1, Fault::Lost(Phase::After)));
    let provisioner = cloud.provisioner();
    let policy = WaitPolicy::within(Duration::from_secs(60));

    // A real program stores the token before the launch, so that it can always find the instance.
    let config = InstanceConfig::builder("task-image-1", "small")
        .tag("task", "index-the-archive")
        .launch_token("index-the-archive/2026-01-01")
        .build()?;

    let instance = provisioner.launch_and_wait(&config, &policy).await?;
    println!(
        "launched {}, although the response of the launch was lost",
        instance.id
    );

    let result = run_task(&provisioner, &instance).await;
    // Terminate before checking the result: a failed task must not leave an instance behind.
    provisioner
        .terminate_and_wait(&instance.id, &policy)
        .await?;
    println!("result of the task: {}", result?);
    println!(
        "terminated {}; check of the cloud: {}",
        instance.id,
        cloud.oracle().leftovers()
    );
    Ok(())
}

/// Runs the task. A real one would connect to the instance's address.
async fn run_task(
    provisioner: &dyn InstanceProvisioner,
    instance: &InstanceInfo,
) -> Result<String, Box<dyn Error>> {
    let address = instance.private_ip.ok_or("the instance has no address")?;
    let console = provisioner.console_output(&instance.id).await?;
    Ok(format!(
        "{} at {address}",
        console.text.lines().last().unwrap_or("no console output")
    ))
}
