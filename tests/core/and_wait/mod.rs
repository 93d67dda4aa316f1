//! The `_and_wait` methods: a call and the wait that follows it.

mod launch;
mod power;
mod terminate;

use std::time::Duration;

use fleetwright::{InstanceInfo, InstanceStatus, MacAddress, wait::WaitPolicy};

use crate::fake::secs;

/// Polls every second for at most half a minute.
fn wait_policy() -> WaitPolicy {
    WaitPolicy::within(secs(30)).delays(Duration::ZERO, Duration::ZERO)
}

/// Returns the status of `info` once it runs, with every changeable field changed.
fn running(info: &InstanceInfo) -> InstanceStatus {
    let mut status = InstanceStatus::from(info.clone());
    status.state = fleetwright::CloudInstanceState::Running;
    status.native_state = Some("ACTIVE".into());
    status.state_reason = Some("requested".into());
    status.private_ip = Some([10, 0, 0, 2].into());
    status.public_ip = Some([198, 18, 0, 2].into());
    status.mac_address = Some(MacAddress::new([2; 6]));
    status
}
