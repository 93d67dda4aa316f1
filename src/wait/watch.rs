//! The observations of one instance in a wait, and the decision after each poll.
//!
//! Reads the clock, but never polls and never sleeps.

use std::time::Duration;

use tokio::time::Instant;

use super::WaitCause;
use crate::{
    Capabilities, CloudInstanceState, ErrorKind, InstanceId, InstanceStatus, ProvisionError, Result,
};

/// The decision after a poll.
pub(super) enum Decision {
    /// The instance is in the goal state.
    Reached,
    /// Poll again, after at least this delay.
    PollAfter(Duration),
    /// The whole wait has failed.
    Failed(WaitCause),
}

/// The observations of one instance.
pub(super) struct Watch {
    goal: CloudInstanceState,
    /// When "not found" proves that there is no instance.
    window: Duration,
    /// For how long a read is expected to be stale, where a wrong conclusion ends only this wait.
    usual_lag: Duration,
    started: Instant,
    /// Whether a call has just returned the instance.
    was_returned: bool,
    last: Option<InstanceStatus>,
    error: Option<ProvisionError>,
    /// Whether it was ever observed in a state that leads to the goal by itself.
    was_heading_to_goal: bool,
    /// Since when it is observed in a state that does not.
    off_course_since: Option<Instant>,
}

impl Watch {
    pub(super) fn new(
        goal: CloudInstanceState,
        capabilities: &Capabilities,
        before: Option<CloudInstanceState>,
    ) -> Self {
        Self {
            goal,
            window: capabilities.consistency_window,
            usual_lag: capabilities.usual_lag(),
            started: Instant::now(),
            was_returned: before.is_some(),
            last: None,
            error: None,
            was_heading_to_goal: before.is_some_and(|state| state.leads_to(goal)),
            off_course_since: None,
        }
    }

    /// Returns whether the last observed state is the goal.
    pub(super) fn is_at_goal(&self) -> bool {
        self.last
            .as_ref()
            .is_some_and(|status| status.state == self.goal)
    }

    /// Returns the last observed status.
    pub(super) fn last(&self) -> Option<&InstanceStatus> {
        self.last.as_ref()
    }

    /// Returns the error of the last poll, if it failed.
    pub(super) fn error(&self) -> Option<&ProvisionError> {
        self.error.as_ref()
    }

    /// Adds the result of a poll and decides what to do next.
    pub(super) fn update(&mut self, id: &InstanceId, result: Result<InstanceStatus>) -> Decision {
        match result {
            Ok(status) => self.observe(status),
            Err(error) => self.fail(id, error),
        }
    }

    fn observe(&mut self, status: InstanceStatus) -> Decision {
        let state = status.state;
        self.error = None;
        self.last = Some(status.clone());
        if state == self.goal {
            return Decision::Reached;
        }
        if !self.goal.can_be_observed_after(state) {
            return Decision::Failed(WaitCause::Unreachable(Box::new(status)));
        }
        if state.leads_to(self.goal) {
            self.was_heading_to_goal = true;
            self.off_course_since = None;
            return Decision::PollAfter(Duration::ZERO);
        }
        // A read may be stale, so one such state says nothing yet.
        let since = *self.off_course_since.get_or_insert_with(Instant::now);
        if self.was_heading_to_goal && since.elapsed() >= self.usual_lag {
            return Decision::Failed(WaitCause::Reverted(Box::new(status)));
        }
        Decision::PollAfter(Duration::ZERO)
    }

    fn fail(&mut self, id: &InstanceId, error: ProvisionError) -> Decision {
        self.error = Some(error.clone());
        if error.kind() == ErrorKind::NotFound {
            // A backend advises a retry if it has launched the instance itself.
            let exists = self.was_returned || error.retry().delay().is_some();
            let needs_proof = self.goal.is_final() || exists;
            let wait = if needs_proof {
                self.window
            } else {
                self.usual_lag
            };
            let remaining = wait.saturating_sub(self.started.elapsed());
            if !remaining.is_zero() {
                return Decision::PollAfter(
                    error.retry().delay().unwrap_or_default().min(remaining),
                );
            }
            if self.goal.is_final() {
                let mut status = InstanceStatus::new(id.clone(), self.goal);
                status.state_reason = Some("no record kept".to_owned());
                return self.observe(status);
            }
            return Decision::Failed(WaitCause::Failed(error));
        }
        match error.retry().delay() {
            Some(delay) => Decision::PollAfter(delay),
            None => Decision::Failed(WaitCause::Failed(error)),
        }
    }
}
