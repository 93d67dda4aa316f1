//! The tests of the clauses, one file for each family.
//!
//! A function whose name begins with a clause id, such as `batch_01_`, is the test of that clause. Its
//! documentation has the promise in the words of `docs/contract.md` (a test compares them), then the
//! reason for the promise and what the harness must offer to test it, then what the test does.
//!
//! How clauses are written:
//!
//! * A clause launches through its [`Context`](crate::Context), so that every instance
//!   carries the tags of this run of the clause. After the clause, all instances with these tags are
//!   terminated; anything that is left then is a violation.
//! * A violation is a broken promise. A missing part of the harness is
//!   [`Failure::NotRun`](crate::Failure::NotRun), and a mistake of the kit or of the harness is
//!   [`Failure::KitError`](crate::Failure::KitError). Neither is ever reported as passed.
//! * A clause waits with `eventually` and `wait_for_consistent_reads`, never with a guessed sleep, so that it
//!   holds for a slow cloud and takes no time under a paused clock.
//! * If the backend declares less, the clause checks the weaker promise and returns `Pass::Weaker`;
//!   if the backend declares that it does not offer a feature, the clause checks the refusal and
//!   returns `Pass::Refused`.
//! * Each clause is itself tested: the zoo has at least one backend that breaks it, if possible one
//!   that breaks nothing else.

pub(crate) mod account;
pub(crate) mod batch;
mod bystanders;
mod calls;
pub(crate) mod cancellation;
pub(crate) mod concurrency;
pub(crate) mod crash;
pub(crate) mod describe;
pub(crate) mod errors;
mod fields;
pub(crate) mod launch;
pub(crate) mod leaks;
pub(crate) mod list;
pub(crate) mod matrix;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod stop;
pub(crate) mod tags;
pub(crate) mod terminate;
pub(crate) mod time;
pub(crate) mod token;
pub(crate) mod verbs;
