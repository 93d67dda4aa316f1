//! One instance for one task, straight on the trait: `cargo run --bin direct`.
//!
//! No fleet, no control loop: launch, use, terminate. The network eats the reply of the launch on the
//! way, as networks do, and the launch token is what keeps that from costing a second machine.

use std::{error::Error, time::Duration};

use fleetwright::{
    InstanceConfig, InstanceInfo, InstanceProvisioner, InstanceProvisionerExt, wait::WaitPolicy,
};
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

    // Write the token down before launching: whatever happens then, it finds the instance again.
    let config = InstanceConfig::builder("task-image-1", "small")
        .tag("task", "index-the-archive")
        .launch_token("index-the-archive/2026-01-01")
        .build()?;

    let instance = provisioner.launch_and_wait(&config, &policy).await?;
    println!(
        "launched {}, although the reply of the launch was lost",
        instance.id
    );

    let result = run_task(&provisioner, &instance).await;
    // Terminate first, look at the result then: a failed task must not leave a machine behind.
    provisioner
        .terminate_and_wait(&instance.id, &policy)
        .await?;
    println!("the task said: {}", result?);
    println!(
        "terminated {}; the cloud's books say: {}",
        instance.id,
        cloud.oracle().leftovers()
    );
    Ok(())
}

/// The task: a real one would connect to the instance's address.
async fn run_task(
    provisioner: &dyn InstanceProvisioner,
    instance: &InstanceInfo,
) -> Result<String, Box<dyn Error>> {
    let address = instance.private_ip.ok_or("the instance has no address")?;
    let console = provisioner.console_output(&instance.id).await?;
    Ok(format!(
        "{} at {address}",
        console.text.lines().last().unwrap_or("nothing")
    ))
}
