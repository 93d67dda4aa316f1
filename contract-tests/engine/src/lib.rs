//! Clauses, outcomes, verdicts and reports of a contract test suite, whatever the contract is about.
//!
//! A contract is a numbered list of promises. Each promise is a [`Clause`]: an id that is never given
//! to another promise, one sentence, and a test. This crate owns everything about clauses that does
//! not depend on what is promised:
//!
//! - the registry: [`Clause`], [`Contract`] and the macro [`clauses!`];
//! - what a test returns: [`Outcome`], [`Pass`], [`Failure`] and [`require`];
//! - running one clause: [`run()`], which catches panics, and [`block_on`] with its [`Executor`];
//! - the verdict on a clause: [`Verdict`] and [`Status`];
//! - a whole run: [`Report`], with its counts and the question whether the subject is conformant;
//! - the comparison of the registry with the document that people read: [`document`].
//!
//! It knows neither instances nor stores and depends on no other crate of the workspace. What a
//! clause works with (the context) and what it is run on (the environment) are type parameters, `C`
//! and `E`.
//!
//! # Example
//!
//! A contract of one clause, about something that adds numbers:
//!
//! ```
//! use fleetwright_clause_engine::{
//!     Body, Clause, Contract, Executor, Outcome, Pass, Report, Status, block_on, require, run,
//! };
//!
//! /// The context: what every clause is given.
//! struct Adder(fn(u8, u8) -> u8);
//!
//! async fn add_01_adds(cx: &Adder) -> Outcome {
//!     let sum = (cx.0)(2, 2);
//!     require(sum == 4, || format!("2 + 2 returned {sum}"))?;
//!     Ok(Pass::Held)
//! }
//!
//! static CLAUSES: &[Clause<Adder, ()>] = &[Clause {
//!     id: "ADD-01",
//!     name: "add_01_adds",
//!     promise: "return the sum of two numbers",
//!     needs: "",
//!     body: Body::Async(|cx| Box::pin(add_01_adds(cx))),
//! }];
//! let contract = Contract {
//!     subject: "adder",
//!     document: "docs/adders.md",
//!     version: "1.0",
//!     clauses: CLAUSES,
//! };
//!
//! let broken = Adder(|a, _| a);
//! let clause = contract.clause("ADD-01").unwrap();
//! let verdict = run(clause, || match clause.body {
//!     Body::Async(body) => block_on(Executor::PausedClock, body(&broken)),
//!     Body::Sync(body) => body(&()),
//! });
//! assert_eq!(verdict.status, Status::Fail);
//! assert!(contract.message(&verdict).contains("2 + 2 returned 2"));
//!
//! let mut report = Report::new(&contract, "broken adder", "virtual", "run-1");
//! report.record(&verdict);
//! assert!(!report.is_conformant());
//! ```

mod clause;
pub mod document;
mod outcome;
mod report;
mod run;
mod verdict;

pub use clause::{Body, BoxFuture, Clause, Contract};
pub use outcome::{Failure, Outcome, Pass, require};
pub use report::{Entry, Report};
pub use run::{Executor, block_on, panic_message, run};
pub use verdict::{DetectedBy, Status, Verdict};
