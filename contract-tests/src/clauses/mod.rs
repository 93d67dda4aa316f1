//! The tests of the clauses, one file for each family.
//!
//! Every function here is one clause. Its documentation has the promise, as `docs/contract.md`
//! words it (a test compares them), then the reason for the promise and what the harness must offer
//! to test it, then how the test proves it.
//!
//! How clauses are written:
//!
//! * A clause launches through its [`Context`](crate::Context), so that everything carries the
//!   scope's tags. What it leaves running is terminated after it, and anything left then is a
//!   violation.
//! * A violation is a broken promise. A missing part of the harness is
//!   [`Failure::NotRun`](crate::Failure::NotRun), and a mistake of the kit or of the harness is
//!   [`Failure::KitError`](crate::Failure::KitError). Neither is ever reported as passed.
//! * A clause waits with `eventually` and `settle_reads`, never with a guessed sleep, so that it
//!   holds for a slow cloud and takes no time under a paused clock.
//! * If the backend declares less, the clause checks the weaker promise and returns `Pass::Weaker`;
//!   if the backend declares that it does not offer a feature, the clause checks the refusal and
//!   returns `Pass::Refused`.
//! * Each clause is itself tested: the zoo has at least one backend that breaks it and nothing
//!   else.

pub(crate) mod batch;
mod calls;
pub(crate) mod cancellation;
pub(crate) mod concurrency;
pub(crate) mod crash;
pub(crate) mod describe;
pub(crate) mod errors;
pub(crate) mod launch;
pub(crate) mod leaks;
pub(crate) mod list;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod stop;
pub(crate) mod tags;
pub(crate) mod terminate;
pub(crate) mod time;
pub(crate) mod token;
pub(crate) mod verbs;
