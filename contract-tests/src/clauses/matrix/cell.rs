//! One cell of the matrix: one call of an operation, with one fault at one of its native calls.
//!
//! Owns how the fault gets into the call, and how the call is repeated afterwards until it has its
//! full effect. It judges nothing.

use std::{fmt, sync::Arc, time::Duration};

use fleetwright::{ErrorKind, InstanceProvisioner, ProvisionError, Result};
use tokio::time::{Instant, sleep, timeout};

use super::{
    faults::{Fault, What},
    operations::{Change, Got, Row, Target},
    truth::Seen,
};
use crate::{Context, Failure, Faults, Time, dropped::drop_after};

/// A call with a fault, and what came of it.
pub(super) struct Cell<'a> {
    pub(super) cx: &'a Context,
    pub(super) row: &'static Row,
    pub(super) fault: &'static Fault,
    pub(super) nth: u64,
    pub(super) target: Target,
    /// The truth before the call.
    pub(super) before: Seen,
    /// The results, one for each item. `None` if the call did not return.
    pub(super) results: Option<Vec<Result<Got>>>,
    /// Whether the call got as far as the fault.
    pub(super) struck: bool,
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = if self.fault.what == What::Dropped {
            "poll"
        } else {
            "native call"
        };
        if self.struck {
            let (name, nth) = (self.row.name, self.nth);
            let what = crate::shown::in_words(&self.fault.what);
            write!(f, "{name} with {what} at {point} {nth}")
        } else {
            write!(f, "{} without a fault", self.row.name)
        }
    }
}

impl<'a> Cell<'a> {
    /// Makes the call with the fault. `plain` is a handle that retries nothing.
    pub(super) async fn run(
        cx: &'a Context,
        faults: &Arc<dyn Faults>,
        plain: &dyn InstanceProvisioner,
        (row, fault, nth): (&'static Row, &'static Fault, u64),
        target: Target,
    ) -> Result<Self, Failure> {
        let before = Seen::now(cx, &target).await?;
        if let (Some(wire), Some(at)) = (fault.wire(cx), fault.strikes(row)) {
            faults.inject(at, nth, wire).await;
        }
        let results = match fault.what {
            What::Dropped => {
                let polls = usize::try_from(nth).unwrap_or(usize::MAX);
                drop_after(polls, (row.call)(plain, &target)).await
            }
            What::CrashBefore | What::CrashAfter => {
                let handle = cx.open_unrecorded_handle().await;
                abandon(cx, faults, (row.call)(&*handle, &target)).await
            }
            What::Throttled => {
                let budget = cx.harness().budget();
                timeout(budget, (row.call)(plain, &target)).await.ok()
            }
            What::BadCredentials
            | What::Forbidden
            | What::Capacity
            | What::Quota
            | What::RequestLost
            | What::ResponseLost
            | What::ServerErrorBefore
            | What::ServerErrorAfter
            | What::Malformed => Some((row.call)(cx.provisioner(), &target).await),
        };
        let injected = faults.clear().await;
        let struck = if fault.what == What::Dropped {
            results.is_none()
        } else {
            injected
        };
        let cell = Self {
            cx,
            row,
            fault,
            nth,
            target,
            before,
            results,
            struck,
        };
        cx.note(format!("{cell}: {}", cell.summary()));
        Ok(cell)
    }

    /// Returns the errors of the call, each with the number of its item.
    pub(super) fn errors(&self) -> impl Iterator<Item = (usize, &ProvisionError)> {
        let results = self.results.iter().flatten().enumerate();
        results.filter_map(|(item, result)| Some((item, result.as_ref().err()?)))
    }

    /// Returns how many results the call must have.
    pub(super) fn items(&self) -> usize {
        let batch = self.row.operation != self.row.single && self.row.change.launches() == 0;
        if batch { self.target.ids.len() } else { 1 }
    }

    /// Describes the results for a message.
    pub(super) fn summary(&self) -> String {
        let Some(results) = &self.results else {
            return "it did not return".to_owned();
        };
        let one = |result: &Result<Got>| match result {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.to_string(),
        };
        results.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// Returns a violation in this cell.
    pub(super) fn violated(&self, observed: impl fmt::Display) -> Failure {
        Failure::violated(format!("{self} ({}): {observed}", self.summary()))
    }

    /// Requires that something holds in this cell.
    pub(super) fn require(
        &self,
        holds: bool,
        observed: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if holds {
            Ok(())
        } else {
            Err(self.violated(observed()))
        }
    }

    /// Repeats the call until it succeeds, as its errors advise.
    ///
    /// # Errors
    /// The last error, if it advises no retry or if the budget is used up.
    pub(super) async fn repeat(&self) -> Result<Vec<Got>> {
        let start = Instant::now();
        loop {
            let results = (self.row.call)(self.cx.provisioner(), &self.target).await;
            let done: Result<Vec<_>> = results.into_iter().map(|one| self.accept(one)).collect();
            let error = match done {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let Some(delay) = error.retry().delay() else {
                return Err(error);
            };
            if start.elapsed() > self.cx.harness().budget() {
                return Err(error);
            }
            sleep(delay.max(self.cx.capabilities().poll_interval)).await;
        }
    }

    /// Accepts not found from a second terminate: a cloud need not keep a record.
    fn accept(&self, result: Result<Got>) -> Result<Got> {
        let terminates = self.row.change == Change::Terminate;
        match result {
            Err(error) if terminates && error.kind() == ErrorKind::NotFound => Ok(Got::Done),
            result => result,
        }
    }
}

/// How long a call may go on after a crash was injected, in real time.
const GRACE: Duration = Duration::from_millis(20);

/// Polls a call until it returns, or until a crash was injected into it and it does not go on.
async fn abandon<T>(
    cx: &Context,
    faults: &Arc<dyn Faults>,
    call: impl Future<Output = T>,
) -> Option<T> {
    let grace = match cx.harness().time() {
        Time::Virtual => cx.call_timeout(),
        Time::Real => GRACE,
    };
    let mut call = std::pin::pin!(call);
    let start = Instant::now();
    while start.elapsed() < cx.harness().budget() {
        if let Ok(output) = timeout(grace, &mut call).await {
            return Some(output);
        }
        if faults.all_injected().await {
            return timeout(grace, call).await.ok();
        }
    }
    None
}
