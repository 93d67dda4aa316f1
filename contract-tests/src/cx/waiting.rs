//! Waiting, in the budget that a harness gives: for something to happen, for reads to show it, for it to stay.

use std::{ops::AsyncFn, time::Duration};

use fleetwright::{CloudInstanceState, ErrorKind, InstanceId, InstanceStatus};
use tokio::time::{Instant, sleep};

use super::Cx;
use crate::{Stop, Time, require};

/// Time.
impl Cx {
    /// Tries `check` until it answers something, and breaks the promise with `what` if it does not
    /// within the budget.
    pub async fn eventually<T>(
        &self,
        what: &str,
        check: impl AsyncFn() -> Result<Option<T>, Stop>,
    ) -> Result<T, Stop> {
        let began = Instant::now();
        let mut pause = self.pause();
        loop {
            if let Some(found) = check().await? {
                return Ok(found);
            }
            if began.elapsed() > self.harness.budget() {
                return Err(Stop::violated(format!(
                    "not within {:?}: {what}",
                    self.harness.budget()
                )));
            }
            sleep(pause).await;
            pause = pause.mul_f64(1.2).min(self.pause() * 10);
        }
    }

    /// Tries `check` again and again for `window`; it breaks the promise itself.
    pub async fn consistently(
        &self,
        window: Duration,
        check: impl AsyncFn() -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let began = Instant::now();
        loop {
            check().await?;
            if began.elapsed() >= window {
                return Ok(());
            }
            sleep(self.pause()).await;
        }
    }

    /// Lets the consistency window pass, so that reads show everything that was done so far.
    pub async fn settle_reads(&self) {
        let window = self.capabilities().consistency_window;
        if !window.is_zero() {
            sleep(window + Duration::from_millis(1)).await;
        }
    }

    /// Lets `time` pass. Only for times that the backend declared, never for hoping.
    pub async fn let_pass(&self, time: Duration) {
        sleep(time).await;
    }

    /// Whether so much time can pass here: always in virtual time, seconds in real time.
    pub fn can_let_pass(&self, time: Duration) -> bool {
        match self.harness.time() {
            Time::Virtual => true,
            Time::Real => time <= Duration::from_secs(5),
        }
    }

    /// Waits until an instance is in `state` and no read can show what was before: what depends on the
    /// state, such as most optional verbs, may be judged by a read.
    pub async fn rest(
        &self,
        id: &InstanceId,
        state: CloudInstanceState,
    ) -> Result<InstanceStatus, Stop> {
        let status = self.reach(id, state).await?;
        self.settle_reads().await;
        Ok(status)
    }

    /// Waits until an instance is in `state`, and judges the way there: every state seen may follow
    /// the one seen before it.
    pub async fn reach(
        &self,
        id: &InstanceId,
        state: CloudInstanceState,
    ) -> Result<InstanceStatus, Stop> {
        self.eventually(&format!("{id} is {state}"), async || {
            let status = self.describe(id).await?;
            let seen = status.state;
            require(state.can_be_observed_after(seen), || {
                let reason = status.state_reason.as_deref().unwrap_or("no reason given");
                format!("{id} must get to {state}, but is {seen} ({reason})")
            })?;
            Ok((seen == state).then_some(status))
        })
        .await
    }

    /// Waits until an instance is terminated, or not found because the cloud keeps no record. Not
    /// found counts once the consistency window has passed.
    pub async fn gone(&self, id: &InstanceId) -> Result<(), Stop> {
        let began = Instant::now();
        let window = self.capabilities().consistency_window;
        self.eventually(&format!("{id} is terminated"), async || {
            match self.provisioner.describe_instance(id).await {
                Ok(status) => Ok((status.state == CloudInstanceState::Terminated).then_some(())),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Ok((began.elapsed() >= window).then_some(()))
                }
                Err(error) => Err(Stop::failed("describe_instance", &error)),
            }
        })
        .await
    }

    /// How long a call may take before its process is taken for dead. Too short is harmless to a
    /// clause that then opens another handle and goes on.
    pub fn patience(&self) -> Duration {
        let half = self.harness.budget() / 2;
        match self.harness.time() {
            Time::Virtual => half,
            Time::Real => half.min(Duration::from_secs(2)),
        }
    }

    /// How long a throttling cloud asks for quiet: one second where that passes for real, which is
    /// the least that some clouds can say.
    pub fn quiet(&self) -> Duration {
        match self.harness.time() {
            Time::Virtual => Duration::from_secs(7),
            Time::Real => Duration::from_secs(1),
        }
    }

    /// The pause between two tries.
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
