//! One instance being waited for: what was seen of it, and what follows from that.
//!
//! Pure but for the clock it reads: it never polls and never sleeps.

use std::time::Duration;

use tokio::time::Instant;

use super::WaitCause;
use crate::{CloudInstanceState, ErrorKind, InstanceId, InstanceStatus, ProvisionError, Result};

/// What to do after an answer.
pub(super) enum Verdict {
    /// It is where it should be.
    There,
    /// Ask again, not before this time has passed.
    Wait(Duration),
    /// The whole wait is over.
    Failed(WaitCause),
}

/// What is known of one instance.
pub(super) struct Watch {
    goal: CloudInstanceState,
    window: Duration,
    began: Instant,
    last: Option<InstanceStatus>,
    error: Option<ProvisionError>,
    /// Whether it was ever seen in a state that leads to the goal by itself.
    was_on_its_way: bool,
    /// Since when it is seen in a state that does not.
    away_since: Option<Instant>,
}

impl Watch {
    pub(super) fn new(
        goal: CloudInstanceState,
        window: Duration,
        before: Option<CloudInstanceState>,
    ) -> Self {
        Self {
            goal,
            window,
            began: Instant::now(),
            last: None,
            error: None,
            was_on_its_way: before.is_some_and(|state| state.leads_to(goal)),
            away_since: None,
        }
    }

    /// Whether it was last seen where it should be.
    pub(super) fn is_there(&self) -> bool {
        self.last
            .as_ref()
            .is_some_and(|status| status.state == self.goal)
    }

    /// What was last seen.
    pub(super) fn last(&self) -> Option<&InstanceStatus> {
        self.last.as_ref()
    }

    /// The last read, where it failed.
    pub(super) fn error(&self) -> Option<&ProvisionError> {
        self.error.as_ref()
    }

    /// Takes the answer of a poll.
    pub(super) fn take(&mut self, id: &InstanceId, answer: Result<InstanceStatus>) -> Verdict {
        match answer {
            Ok(status) => self.see(status),
            Err(error) => self.fail(id, error),
        }
    }

    fn see(&mut self, status: InstanceStatus) -> Verdict {
        let state = status.state;
        self.error = None;
        self.last = Some(status.clone());
        if state == self.goal {
            return Verdict::There;
        }
        if !self.goal.can_be_observed_after(state) {
            return Verdict::Failed(WaitCause::Unreachable(Box::new(status)));
        }
        if state.leads_to(self.goal) {
            self.was_on_its_way = true;
            self.away_since = None;
            return Verdict::Wait(Duration::ZERO);
        }
        // A read may lag, so one look back proves nothing within the window.
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if self.was_on_its_way && since.elapsed() >= self.window {
            return Verdict::Failed(WaitCause::Reverted(Box::new(status)));
        }
        Verdict::Wait(Duration::ZERO)
    }

    fn fail(&mut self, id: &InstanceId, error: ProvisionError) -> Verdict {
        self.error = Some(error.clone());
        if error.kind() == ErrorKind::NotFound {
            let remaining = self.window.saturating_sub(self.began.elapsed());
            if !remaining.is_zero() {
                return Verdict::Wait(error.retry().delay().unwrap_or_default().min(remaining));
            }
            if self.goal.is_final() {
                let mut status = InstanceStatus::new(id.clone(), self.goal);
                status.state_reason = Some("no record kept".to_owned());
                return self.see(status);
            }
            return Verdict::Failed(WaitCause::Failed(error));
        }
        match error.retry().delay() {
            Some(delay) => Verdict::Wait(delay),
            None => Verdict::Failed(WaitCause::Failed(error)),
        }
    }
}
