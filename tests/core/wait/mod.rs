//! Waiting for a state, against the fake, in virtual time.

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

/// Polls every second, the poll interval of the fake, without jitter.
fn every_second(deadline: Duration) -> WaitPolicy {
    WaitPolicy::within(deadline).delays(Duration::ZERO, Duration::ZERO)
}

/// Waits until `names` are in `goal`: polls every second, for at most a minute.
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
