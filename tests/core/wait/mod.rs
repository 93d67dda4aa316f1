//! Waiting for a state on the fake backend, in virtual time.

mod failures;
mod messages;
mod polls;
mod property;
mod stale_reads;

use std::time::Duration;

use fleetwright::{
    CloudInstanceState, InstanceStatus,
    wait::{self, WaitCause, WaitError, WaitPolicy},
};

use crate::fake::{Fake, ids};

/// Returns a policy that polls every second for at most `timeout`: without delays of its own, the
/// poll interval of the fake decides.
fn every_second(timeout: Duration) -> WaitPolicy {
    WaitPolicy::within(timeout).delays(Duration::ZERO, Duration::ZERO)
}

/// Waits until the instances called `names` are in the state `goal`: polls every second, for at most a minute.
async fn wait_for(
    fake: &Fake,
    names: &[&str],
    goal: CloudInstanceState,
) -> Result<Vec<InstanceStatus>, WaitError> {
    let policy = every_second(Duration::from_secs(60));
    wait::for_state(fake, &ids(names), goal, &policy).await
}

/// Returns the name of the cause.
fn cause(error: &WaitError) -> &'static str {
    match &error.cause {
        WaitCause::Deadline => "deadline",
        WaitCause::PollLimit => "poll limit",
        WaitCause::Unreachable(_) => "unreachable",
        WaitCause::Reverted(_) => "reverted",
        WaitCause::Failed(_) => "failed",
        _ => "unknown",
    }
}
