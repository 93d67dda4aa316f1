//! Waiting for a state, against a script and a paused clock.

mod anything;
mod ends;
mod lag;
mod polls;
mod words;

use std::time::Duration;

use fleetwright::{
    CloudInstanceState, InstanceStatus,
    wait::{self, WaitCause, WaitError, WaitPolicy},
};

use crate::fake::{Fake, ids};

/// Polls every second, which is the fake's tick: nothing left to chance.
fn every_second(deadline: Duration) -> WaitPolicy {
    WaitPolicy::within(deadline).delays(Duration::ZERO, Duration::ZERO)
}

/// Waits for `names` to be in `goal`, every second, for a minute at most.
async fn until(
    fake: &Fake,
    names: &[&str],
    goal: CloudInstanceState,
) -> Result<Vec<InstanceStatus>, WaitError> {
    let policy = every_second(Duration::from_secs(60));
    wait::for_state(fake, &ids(names), goal, &policy).await
}

/// The cause in one word.
fn cause(error: &WaitError) -> &'static str {
    match &error.cause {
        WaitCause::Deadline => "deadline",
        WaitCause::PollLimit => "poll budget",
        WaitCause::Unreachable(_) => "unreachable",
        WaitCause::Reverted(_) => "turned back",
        WaitCause::Failed(_) => "failed",
        _ => "unknown",
    }
}
