//! Waiting until an instance has reached a goal, by long polls.

use std::time::Duration;

use fleetwright_api::{Instance, PowerState, ProvisioningStatus};
use tokio::time::Instant;

use crate::{Client, Effect, Error, Goal, Tagged};

/// The longest that the service waits in one request.
const LONGEST_POLL: Duration = Duration::from_secs(25);
/// How long to wait after a response that came at once and is not the goal.
const PAUSE: Duration = Duration::from_millis(250);

impl Client {
    /// Waits until an instance has reached a goal, and returns it. For [`Goal::Deleted`] it returns `None` when the record is gone.
    ///
    /// The deadline is measured from now and may be as long as it has to be; requests that fail are retried within it.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsDecision`] if the instance does not get there until somebody decides, [`Error::Deadline`] after the deadline, and
    /// every error of a read.
    ///
    /// ```no_run
    /// # async fn example(client: fleetwright_client::Client, id: &str) -> Result<(), fleetwright_client::Error> {
    /// use std::time::Duration;
    /// use fleetwright_client::Goal;
    ///
    /// client.start_instance(id).await?;
    /// let running = client.wait_until(id, Goal::Running, Duration::from_secs(600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_until(
        &self,
        id: &str,
        goal: Goal,
        deadline: Duration,
    ) -> Result<Option<Instance>, Error> {
        self.wait_and_report(id, goal, deadline, LONGEST_POLL, |_| {})
            .await
    }

    /// The same, and calls `report` with the instance now and then: at least after each `interval`, in whole seconds up to 25.
    pub async fn wait_and_report(
        &self,
        id: &str,
        goal: Goal,
        deadline: Duration,
        interval: Duration,
        mut report: impl FnMut(&Instance),
    ) -> Result<Option<Instance>, Error> {
        let started = Instant::now();
        loop {
            let left = deadline.saturating_sub(started.elapsed());
            let poll = interval.min(left).min(LONGEST_POLL);
            let asked = Instant::now();
            // What the service waits comes on top of what the request takes.
            let client = self.with_deadline(left.max(Duration::from_secs(1)));
            let read = client.read_instance_when(id, goal, poll).await;
            let instance = match read {
                Ok(Tagged { value, .. }) => value,
                Err(error) if goal == Goal::Deleted && error.is_not_found() => return Ok(None),
                Err(error @ Error::Deadline { .. }) => return Err(late(deadline, Some(error))),
                Err(error) => return Err(error),
            };
            report(&instance);
            if is_reached(&instance, goal) {
                return Ok(Some(instance));
            }
            if is_stuck(&instance, goal) {
                return Err(Error::NeedsDecision {
                    instance: Box::new(instance),
                });
            }
            if started.elapsed() >= deadline {
                return Err(late(deadline, None));
            }
            // The service is stopping, or whole seconds are over: it must not be asked in a tight loop.
            if asked.elapsed() < PAUSE {
                tokio::time::sleep(PAUSE.min(deadline.saturating_sub(started.elapsed()))).await;
            }
        }
    }
}

fn late(after: Duration, last: Option<Error>) -> Error {
    Error::Deadline {
        operation: "waitUntil",
        after,
        effect: Effect::None,
        last: last.map(Box::new),
    }
}

/// Whether an instance has reached a goal.
fn is_reached(instance: &Instance, goal: Goal) -> bool {
    let is_applied = instance.metadata.provisioning_status == ProvisioningStatus::Provisioned;
    let state = instance.status.power_state;
    match goal {
        Goal::Running => is_applied && state == PowerState::Running,
        Goal::Stopped => is_applied && state == PowerState::Stopped,
        Goal::Provisioned => is_applied,
        Goal::Deleted => false,
    }
}

/// Whether waiting is useless until somebody decides.
fn is_stuck(instance: &Instance, goal: Goal) -> bool {
    let failed = instance.metadata.provisioning_status == ProvisioningStatus::Error;
    match goal {
        Goal::Running | Goal::Stopped | Goal::Provisioned => failed,
        // A deletion goes on whatever state the instance is in.
        Goal::Deleted => false,
    }
}
