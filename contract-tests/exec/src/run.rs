//! Runs clauses, several at once, and judges them.
//!
//! Owns the order and the verdicts. Every clause gets processes of its own, so clauses do not affect each other.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use fleetwright_contract_tests::{
    Clause, Factory, Status, Verdict, run_clause,
    waiver::{self, Waiver},
};

use crate::{backend::Backend, harness::PipeHarness, problems::Problems};

/// Runs `clauses` and calls `judged` with each verdict, in the order in which they end.
pub(crate) fn run_clauses(
    backend: &Arc<Backend>,
    clauses: &[&'static Clause],
    waivers: &[Waiver],
    jobs: NonZeroUsize,
    judged: impl FnMut(Verdict) + Send,
) {
    let (next, judged) = (AtomicUsize::new(0), Mutex::new(judged));
    thread::scope(|scope| {
        for _ in 0..jobs.get().min(clauses.len()) {
            scope.spawn(|| {
                // From the last to the first: the longest clauses are at the end of the contract.
                while let Some(clause) = {
                    let taken = next.fetch_add(1, Ordering::SeqCst) + 1;
                    clauses.len().checked_sub(taken).map(|index| clauses[index])
                } {
                    let verdict = judge(backend, clause, waivers);
                    let mut judged = judged.lock().unwrap_or_else(PoisonError::into_inner);
                    judged(verdict);
                }
            });
        }
    });
    backend.wait_for_processes();
}

/// Runs one clause. A backend that breaks the protocol fails it, whatever the clause made of that.
fn judge(backend: &Arc<Backend>, clause: &Clause, waivers: &[Waiver]) -> Verdict {
    let problems = Problems::default();
    let factory: Factory = {
        let (backend, problems, id) = (Arc::clone(backend), problems.clone(), clause.id);
        Arc::new(move || Arc::new(PipeHarness::new(&backend, id, &problems)))
    };
    let verdict = run_clause(clause, &factory);
    let verdict = match problems.first() {
        Some(problem) => verdict.with_status(Status::Fail, problem),
        None => verdict,
    };
    waiver::apply(verdict, waivers, backend.hello.peer.as_ref())
}
