//! Uses a custom backend like any other: `cargo run --bin custom`.
//!
//! The backend is `rack.rs`; `tests/custom_contract.rs` runs the contract tests on it.

mod rack;

use std::{error::Error, time::Duration};

use fleetwright::prelude::*;

use rack::Rack;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let rack = Rack::new();
    let policy = WaitPolicy::within(Duration::from_secs(30));
    let config = InstanceConfig::builder("image-1", "blade")
        .tag("team", "search")
        .build()?;

    let machine = rack.launch_and_wait(&config, &policy).await?;
    println!(
        "{} is {} at {:?}",
        machine.id, machine.state, machine.private_ip
    );

    let ours = InstanceFilter::tagged("team", "search")?;
    let terminated = rack.terminate_matching(&ours, &policy).await?;
    let running = rack
        .snapshot()
        .iter()
        .filter(|(info, _)| !info.state.is_final())
        .count();
    println!(
        "terminated {}; {running} machines are still in use",
        terminated.len()
    );
    Ok(())
}
