//! Waiting within the harness's budget: until something happens, until reads show it, or to see that
//! it stays.
//!
//! Owns every pause of the kit. In virtual time a pause advances the paused clock and takes no time. In
//! real time the kit polls no faster than the backend's declared poll interval, and slows down to ten
//! times that while nothing changes.

use std::{ops::AsyncFn, time::Duration};

use fleetwright::{CloudInstanceState, ErrorKind, InstanceId, InstanceStatus};
use tokio::time::{Instant, sleep};

use super::Context;
use crate::{Failure, Time, require};

/// Waiting and durations.
impl Context {
    /// Calls `check` until it returns `Some`, and returns that value. `what` describes the condition in the
    /// message: "not within 300s: i-1 is running".
    ///
    /// # Errors
    /// A violation if `check` does not return `Some` within the budget, and every error of `check`.
    pub async fn eventually<T>(
        &self,
        what: &str,
        check: impl AsyncFn() -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        let mut pause = self.pause();
        loop {
            if let Some(found) = check().await? {
                return Ok(found);
            }
            if start.elapsed() > self.harness.budget() {
                return Err(Failure::violated(format!(
                    "not within {:?}: {what}",
                    self.harness.budget()
                )));
            }
            sleep(pause).await;
            pause = pause.mul_f64(1.2).min(self.pause() * 10);
        }
    }

    /// Reads what is left until nothing is, and returns what is left in the end and for how long the kit
    /// has waited: the budget, or less if in real time nothing of it changes for a quarter of the budget
    /// and for the consistency window. A leak then costs seconds instead of the whole budget.
    pub(crate) async fn wait_until_nothing_left(
        &self,
        read: impl AsyncFn() -> Result<Vec<String>, Failure>,
    ) -> Result<(Vec<String>, Duration), Failure> {
        let budget = self.harness.budget();
        let patience = match self.harness.time() {
            Time::Virtual => budget,
            Time::Real => (budget / 4).max(self.capabilities().consistency_window),
        };
        let start = Instant::now();
        let (mut left, mut since, mut pause) = (read().await?, start, self.pause());
        while !left.is_empty() && start.elapsed() <= budget && since.elapsed() <= patience {
            sleep(pause).await;
            pause = pause.mul_f64(1.2).min(self.pause() * 10);
            let now = read().await?;
            if now != left {
                (left, since) = (now, Instant::now());
            }
        }
        Ok((left, start.elapsed().min(budget)))
    }

    /// Calls `check` repeatedly during `window`, at least once. Use it for something that must not happen.
    ///
    /// # Errors
    /// The first error of `check`.
    pub async fn consistently(
        &self,
        window: Duration,
        check: impl AsyncFn() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        loop {
            check().await?;
            if start.elapsed() >= window {
                return Ok(());
            }
            sleep(self.pause()).await;
        }
    }

    /// Waits for the declared consistency window and a millisecond, so that reads show every change so
    /// far. It returns at once if no window is declared.
    pub async fn wait_for_consistent_reads(&self) {
        let window = self.capabilities().consistency_window;
        if !window.is_zero() {
            sleep(window + Duration::from_millis(1)).await;
        }
    }

    /// Waits for `time`. Only for durations that the backend declares, never as a guess.
    pub async fn advance_time(&self, time: Duration) {
        sleep(time).await;
    }

    /// Returns whether a clause may wait for `time`: always in virtual time, up to 5 seconds in real
    /// time.
    pub fn can_advance_time(&self, time: Duration) -> bool {
        match self.harness.time() {
            Time::Virtual => true,
            Time::Real => time <= Duration::from_secs(5),
        }
    }

    /// Waits until an instance is in `state` and no read can return an earlier state. A backend may
    /// decide by a read whether a call is allowed, as it does for most optional verbs.
    pub async fn wait_for_consistent_state(
        &self,
        id: &InstanceId,
        state: CloudInstanceState,
    ) -> Result<InstanceStatus, Failure> {
        let status = self.wait_for_state(id, state).await?;
        self.wait_for_consistent_reads().await;
        Ok(status)
    }

    /// Waits until an instance is in `state`, and requires that it can still get there: every observed
    /// state must be one that `state` can follow.
    pub async fn wait_for_state(
        &self,
        id: &InstanceId,
        state: CloudInstanceState,
    ) -> Result<InstanceStatus, Failure> {
        self.eventually(&format!("{id} is {state}"), async || {
            let status = self.describe(id).await?;
            let observed = status.state;
            require(state.can_be_observed_after(observed), || {
                let reason = status.state_reason.as_deref().unwrap_or("no reason given");
                format!("{id} must become {state}, but is {observed} ({reason})")
            })?;
            Ok((observed == state).then_some(status))
        })
        .await
    }

    /// Waits until an instance is terminated, or not found because the cloud keeps no record of it.
    /// Not found counts only after the consistency window.
    pub async fn wait_until_terminated(&self, id: &InstanceId) -> Result<(), Failure> {
        let start = Instant::now();
        let window = self.capabilities().consistency_window;
        self.eventually(&format!("{id} is terminated"), async || {
            match self.provisioner.describe_instance(id).await {
                Ok(status) => Ok((status.state == CloudInstanceState::Terminated).then_some(())),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Ok((start.elapsed() >= window).then_some(()))
                }
                Err(error) => Err(Failure::call_failed("describe_instance", &error)),
            }
        })
        .await
    }

    /// Returns how long a call may take before the clause treats its process as dead, opens another
    /// handle and continues. A value that is too short does no harm. Half the budget, in real time at
    /// most 2 seconds.
    pub fn call_timeout(&self) -> Duration {
        let half = self.harness.budget() / 2;
        match self.harness.time() {
            Time::Virtual => half,
            Time::Real => half.min(Duration::from_secs(2)),
        }
    }

    /// Returns the delay that a throttling cloud demands: 7 seconds, or 1 second in real time, which
    /// is the least that some clouds can express.
    pub fn throttle_delay(&self) -> Duration {
        match self.harness.time() {
            Time::Virtual => Duration::from_secs(7),
            Time::Real => Duration::from_secs(1),
        }
    }

    /// Returns the first pause between two attempts: 100 milliseconds in virtual time, in real time the
    /// declared poll interval, but at least 5 milliseconds.
    fn pause(&self) -> Duration {
        match self.harness.time() {
            Time::Virtual => Duration::from_millis(100),
            Time::Real => self
                .capabilities()
                .poll_interval
                .max(Duration::from_millis(5)),
        }
    }
}
