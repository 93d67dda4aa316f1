//! Running one clause.
//!
//! Owns the runtime of a test, the capture of its panics and its duration. It never decides what a
//! clause is run on: the suite of each contract does.

use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use tokio::runtime::{Builder, Runtime};

use crate::{Clause, Failure, Outcome, Verdict};

/// The runtime that a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// One thread, and a paused clock that jumps to the next timer whenever every task waits: hours
    /// pass in no time. Never with sockets.
    PausedClock,
    /// One thread and real time.
    CurrentThread,
    /// Two worker threads and real time, so that calls run in parallel as they do in a program.
    MultiThread,
}

impl Executor {
    /// Builds the runtime.
    ///
    /// # Errors
    /// [`Failure::KitError`] if the operating system refuses what a runtime needs.
    pub fn build(self) -> Result<Runtime, Failure> {
        let mut builder = match self {
            Self::PausedClock | Self::CurrentThread => Builder::new_current_thread(),
            Self::MultiThread => Builder::new_multi_thread(),
        };
        match self {
            Self::PausedClock => builder.start_paused(true),
            Self::CurrentThread => &mut builder,
            Self::MultiThread => builder.worker_threads(2),
        };
        builder
            .enable_all()
            .build()
            .map_err(|error| Failure::KitError(format!("cannot create a runtime: {error}")))
    }
}

/// Runs a future to its end on a runtime of its own.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_clause_engine::{Executor, block_on};
///
/// let hours = block_on(Executor::PausedClock, async {
///     tokio::time::sleep(Duration::from_secs(3 * 3600)).await; // returns at once
///     Ok(3)
/// });
/// assert_eq!(hours, Ok(3));
/// ```
///
/// # Errors
/// What the future returns, or [`Failure::KitError`] if there is no runtime for it.
pub fn block_on<T>(
    executor: Executor,
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    executor.build()?.block_on(future)
}

/// Runs `test`, which is the test of `clause` on whatever the suite has prepared, and judges it.
///
/// A panic is caught and counts as an error of the suite: subjects that panic inside a call are the
/// business of the context, which knows the call.
///
/// ```
/// use fleetwright_clause_engine::{Body, Clause, Pass, Status, run};
///
/// let clause: Clause<(), ()> = Clause {
///     id: "ADD-01",
///     name: "add_01_adds",
///     promise: "return the sum of two numbers",
///     needs: "",
///     body: Body::Sync(|()| Ok(Pass::Held)),
/// };
/// let Body::Sync(test) = clause.body else { unreachable!() };
/// assert_eq!(run(&clause, || test(&())).status, Status::Pass);
/// assert_eq!(run(&clause, || panic!("a bug of the suite")).status, Status::KitError);
/// ```
pub fn run<C, E>(clause: &Clause<C, E>, test: impl FnOnce() -> Outcome) -> Verdict {
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(test)).unwrap_or_else(|panic| {
        let message = panic_message(&*panic);
        Err(Failure::KitError(format!("the clause panicked: {message}")))
    });
    Verdict::new(clause.id, outcome, start.elapsed())
}

/// Returns the text of a caught panic.
///
/// ```
/// use fleetwright_clause_engine::panic_message;
///
/// let panic = std::panic::catch_unwind(|| panic!("index 3")).unwrap_err();
/// assert_eq!(panic_message(&*panic), "index 3");
/// ```
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "the panic value is not a string".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Pass, Status};

    const CLAUSE: Clause<(), ()> = Clause {
        id: "ADD-01",
        name: "add_01_adds",
        promise: "add",
        needs: "",
        body: Body::Sync(|()| Ok(Pass::Held)),
    };

    #[test]
    fn panic_is_an_error_of_the_suite() {
        let verdict = run(&CLAUSE, || panic!("no such field"));
        assert_eq!(verdict.status, Status::KitError);
        assert_eq!(
            verdict.reason.as_deref(),
            Some("the clause panicked: no such field")
        );
    }

    #[test]
    fn paused_clock_skips_waiting() {
        let start = Instant::now();
        let hour = std::time::Duration::from_secs(3600);
        let outcome = block_on(Executor::PausedClock, async {
            tokio::time::sleep(hour).await;
            Ok(())
        });
        assert_eq!(outcome, Ok(()));
        assert!(start.elapsed() < hour);
    }
}
