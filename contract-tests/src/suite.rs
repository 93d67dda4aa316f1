//! Running clauses against a harness: each on a fresh account, with a check for leftovers after it.
//!
//! Owns the steps around a clause: the runtime that the harness needs, the scope of its tags, the
//! cleanup after it, waivers and the report. The tests themselves are in `clauses`; the engine
//! judges outcomes.
//!
//! The steps of one run:
//!
//! 1. The factory creates a harness, and the runner a runtime: with a paused clock for
//!    [`Time::Virtual`].
//! 2. The clause runs with a [`Context`] whose tags no other run has, for at most 2,000 times the
//!    budget.
//! 3. Faults are removed, and parts of the cloud that were made unreachable are reconnected.
//! 4. A new handle terminates every instance in the scope and waits until it is terminated.
//! 5. Nothing may be left in the scope, by the list and by the oracle. Leftovers fail a clause that
//!    has passed, as a leak, and are not reported for one that has failed.
//! 6. A panic, a call that never returned, a waiver and the report are taken into account.

use std::{
    iter::{once, repeat_with},
    ops::AsyncFnOnce,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use fleetwright::{ErrorKind, InstanceId, InstanceProvisioner, ProvisionError};
use fleetwright_clause_engine::{BoxFuture, Executor, block_on, run};
use tokio::time::timeout;

use crate::{
    Body, CLAUSES, CONTRACT, Clause, Context, Factory, Failure, Harness, OnMissing, Outcome, Pass,
    Status, Time, Verdict, report, seed,
    sweep::{Part, run_parts},
    transcript::Transcript,
    waiver,
};

/// Runs one clause on a fresh account and judges it.
///
/// It applies no waiver and writes no report; [`run_and_report`] does. The front page of the crate
/// has an example.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_contract_tests::{Factory, Status, clause, run_clause};
/// use fleetwright_contract_zoo::MemoryHarness;
///
/// let factory: Factory = Arc::new(|| Arc::new(MemoryHarness::new()));
/// let verdict = run_clause(clause("LAUNCH-01").unwrap(), &factory);
/// assert_eq!(verdict.status, Status::Pass);
/// println!("{}", verdict.transcript.join("\n")); // the calls and their results
/// ```
pub fn run_clause(clause: &Clause, factory: &Factory) -> Verdict {
    let mut transcript = Transcript::default();
    let mut verdict = run(clause, || match clause.body {
        Body::Async(body) => {
            let (decisive, outcome) = run_on_accounts(clause, body, factory, &transcript);
            transcript = decisive;
            outcome
        }
        Body::Sync(body) => body(factory),
    });
    // A call that panicked or never returned breaks the contract, whatever the clause made of it.
    if let Some(broken) = transcript.broken() {
        verdict = verdict.with_status(Status::Fail, broken);
    }
    verdict.detected_by = transcript.detected_by().unwrap_or(verdict.detected_by);
    verdict.transcript = transcript.lines();
    verdict
}

/// Runs a clause, on several accounts if its sweep is divided. Returns the outcome with the transcript of the account that decided it, which
/// is `first` for the first account.
fn run_on_accounts(
    clause: &Clause,
    body: for<'a> fn(&'a Context) -> BoxFuture<'a, Outcome>,
    factory: &Factory,
    first: &Transcript,
) -> (Transcript, Outcome) {
    let harness = factory();
    let parts = Part::all(clause, &*harness);
    let accounts =
        once((harness, first.clone())).chain(repeat_with(|| (factory(), Transcript::default())));
    let runs: Vec<_> = parts.into_iter().zip(accounts).collect();
    let mut outcomes = run_parts(&runs, |(part, (harness, transcript))| {
        let body = async |cx: &Context| body(cx).await;
        run_on_account(harness, clause.id, transcript, *part, body)
    });
    let transcripts = runs.iter().map(|(_, (_, transcript))| transcript);
    let failed = |(transcript, outcome): (&Transcript, &Outcome)| {
        outcome.is_err() || transcript.broken().is_some()
    };
    match transcripts.zip(&outcomes).position(failed) {
        Some(number) => (runs[number].1.1.clone(), outcomes.swap_remove(number)),
        None => {
            let pass = outcomes
                .into_iter()
                .flatten()
                .fold(Pass::Held, Pass::weaker);
            (first.clone(), Ok(pass))
        }
    }
}

/// Runs one case of a clause that creates its accounts itself, as if it were a clause of its own.
pub(crate) fn run_case(
    factory: &Factory,
    clause: &str,
    body: impl AsyncFnOnce(&Context) -> Outcome,
) -> Outcome {
    let transcript = Transcript::default();
    let outcome = run_on_account(&factory(), clause, &transcript, Part::WHOLE, body);
    match transcript.broken() {
        Some(broken) => {
            let lines = transcript.lines();
            let lines: Vec<_> = lines.iter().map(|line| format!("\n    {line}")).collect();
            let calls = format!("{broken}; the calls were:{}", lines.concat());
            Err(Failure::Violated(calls))
        }
        None => outcome,
    }
}

/// Runs the body and then checks that nothing is left, on one runtime and one account.
fn run_on_account(
    harness: &Arc<dyn Harness>,
    clause: &str,
    transcript: &Transcript,
    part: Part,
    body: impl AsyncFnOnce(&Context) -> Outcome,
) -> Outcome {
    block_on(executor(harness.time()), async {
        transcript.start();
        let scope = new_scope(clause);
        let cx = Context::new(Arc::clone(harness), &scope, transcript.clone(), part).await?;
        // The longest clauses are sweeps over some hundred lifecycles, each step within the budget.
        let deadline = harness.budget().saturating_mul(2_000);
        let outcome = timeout(deadline, body(&cx)).await;
        if matches!(outcome, Ok(Ok(_))) {
            transcript.note("the clause has passed; the kit terminates what is left");
        } else {
            transcript.close();
        }
        if let Some(faults) = harness.faults() {
            faults.clear().await;
        }
        if let Some(actor) = harness.external_actor() {
            actor.reconnect().await;
        }
        let leftovers = cleanup_and_probe(&cx).await;
        let outcome = outcome
            .map_err(|_| Failure::KitError(format!("the clause took longer than {deadline:?}")))?;
        let pass = outcome?;
        leftovers.map(|()| pass)
    })
}

/// Returns the failure of a call that removes what a clause left.
fn cleanup_failed(call: &str, error: &ProvisionError) -> Failure {
    Failure::CleanupFailed(format!("{call} failed after the clause: {error}"))
}

/// Terminates what the clause left running on purpose, then requires that nothing of it is left.
///
/// # Errors
/// [`Failure::CleanupFailed`] if a call fails, and [`Failure::Leaked`] if something stays although all calls succeed.
pub(crate) async fn cleanup_and_probe(cx: &Context) -> Result<(), Failure> {
    let handle = cx.open_handle().await;
    cx.wait_for_consistent_reads().await;
    let list = handle.list_instances(&cx.filter()).await;
    let list = list.map_err(|error| cleanup_failed("list_instances", &error))?;
    let ids: Vec<_> = list.into_iter().map(|info| info.id).collect();
    for (id, result) in ids.iter().zip(handle.terminate_instances(&ids).await) {
        match result {
            Ok(()) => {}
            // It was terminating already, and the cloud keeps no record.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let call = format!("terminate_instances of {id}");
                return Err(cleanup_failed(&call, &error));
            }
        }
    }
    for id in &ids {
        if let Err(failure) = cx.wait_until_terminated(id).await {
            return Err(not_terminated(&*handle, id, failure).await);
        }
    }
    require_nothing_left(cx, &*handle).await
}

/// Says why a wait for the end of an instance failed: because it cannot be read, or because it stays.
async fn not_terminated(
    handle: &dyn InstanceProvisioner,
    id: &InstanceId,
    failure: Failure,
) -> Failure {
    match (handle.describe_instance(id).await, failure) {
        (Err(error), _) => cleanup_failed(&format!("describe_instance of {id}"), &error),
        (Ok(_), Failure::Violated(observed)) => Failure::Leaked(format!("leak: {observed}")),
        (Ok(_), other) => other,
    }
}

/// Requires that nothing of the clause is left. Clouds need some time to clean up after an instance.
async fn require_nothing_left(
    cx: &Context,
    handle: &dyn InstanceProvisioner,
) -> Result<(), Failure> {
    let leftovers = async || {
        let list = handle.list_instances(&cx.filter()).await;
        let list = list.map_err(|error| cleanup_failed("list_instances", &error))?;
        let mut leftovers: Vec<_> = list
            .iter()
            .map(|info| format!("{} {}", info.id, info.state))
            .collect();
        if let Some(oracle) = cx.harness().oracle() {
            leftovers.extend(oracle.leftovers(cx.scope()).await);
        }
        Ok::<_, Failure>(leftovers)
    };
    let (left, waited) = cx.wait_until_nothing_left(leftovers).await?;
    if left.is_empty() {
        return Ok(());
    }
    let left = left.join(", ");
    Err(Failure::Leaked(format!(
        "leak: {waited:?} after everything was terminated, the cloud still has: {left}"
    )))
}

/// Returns the runtime that matches how time passes under a harness.
pub(crate) fn executor(time: Time) -> Executor {
    match time {
        Time::Virtual => Executor::PausedClock,
        Time::Real => Executor::CurrentThread,
    }
}

/// Returns a scope that no other run has: clauses run in parallel, and accounts may be shared.
pub(crate) fn new_scope(clause: &str) -> String {
    static CASES: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map(|since| since.as_nanos()).unwrap_or_default();
    let case = CASES.fetch_add(1, Ordering::Relaxed);
    let text = format!("{}/{clause}/{nanos}/{case}", std::process::id());
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes())
        .simple()
        .to_string()
}

/// Sets the folder for call sequences that once broke a promise of a generated clause. They are
/// tried first in later runs.
///
/// [`contract_tests!`](crate::contract_tests) sets `proptest-regressions` next to the backend's
/// manifest; commit the files that appear there. Only the first call in a process has an effect.
///
/// ```
/// use fleetwright_contract_tests::keep_regressions_in;
///
/// keep_regressions_in(concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions"));
/// ```
pub fn keep_regressions_in(folder: &'static str) {
    seed::keep_regressions_in(folder);
}

/// Returns the clause with this id, for instance `TOKEN-01`, or `None` if there is none.
///
/// ```
/// let clause = fleetwright_contract_tests::clause("LIST-03").unwrap();
/// assert_eq!(clause.name, "list_03_complete_across_pages");
/// assert!(fleetwright_contract_tests::clause("LIST-99").is_none());
/// ```
pub fn clause(id: &str) -> Option<&'static Clause> {
    CONTRACT.clause(id)
}

/// Runs one clause and panics if it fails: the body of each `#[test]` that
/// [`contract_tests!`](crate::contract_tests) emits.
///
/// ```no_run
/// use fleetwright_contract_tests::test_clause;
/// use fleetwright_contract_zoo::MemoryHarness;
///
/// #[test]
/// fn token_01() {
///     test_clause("TOKEN-01", MemoryHarness::new);
/// }
/// ```
///
/// # Panics
/// If the clause fails, if the kit fails, if there is no such clause, or if the clause was not run
/// and the harness says [`OnMissing::Fail`].
#[expect(clippy::panic, reason = "a failed check panics")]
pub fn test_clause<H: Harness + 'static>(id: &str, make: fn() -> H) {
    let Some(clause) = clause(id) else {
        panic!("there is no clause {id}")
    };
    let factory: Factory = Arc::new(move || Arc::new(make()));
    let verdict = run_and_report(clause, &factory);
    if !passes(verdict.status, factory().on_missing()) {
        panic!("{}", test_message(&verdict));
    }
    if !verdict.status.is_conformant() {
        println!("{}", CONTRACT.message(&verdict));
    }
}

/// Returns the text of a failing test. For a clause that was not run it says how to proceed.
fn test_message(verdict: &Verdict) -> String {
    let mut text = CONTRACT.message(verdict);
    if verdict.status == Status::NotRun {
        text += "  to do:    let the harness offer what is missing, or return OnMissing::ReportNotRun from it\n";
    }
    text
}

/// Returns whether the test of a clause passes.
///
/// That is less than [conformant](Status::is_conformant): a waived clause passes, so that a test
/// notices only new differences of a peer, and so does a clause that was not run if the harness
/// allows it. The report still says that both are not kept.
pub(crate) const fn passes(status: Status, on_missing: OnMissing) -> bool {
    match status {
        Status::Pass
        | Status::Refused
        | Status::NotClaimed
        | Status::NotApplicable
        | Status::Waived => true,
        Status::NotRun => matches!(on_missing, OnMissing::ReportNotRun),
        Status::Fail | Status::KitError => false,
    }
}

/// Runs the clauses of a family, such as `TOKEN-`, except the `excluded` ones: the body of a
/// `#[test]` for a backend under layers, where not every clause is worth its time.
///
/// ```no_run
/// use fleetwright_contract_tests::test_family;
/// use fleetwright_contract_zoo::MemoryHarness;
///
/// #[test]
/// fn crashes() {
///     test_family("CRASH-", &["CRASH-06"], MemoryHarness::new);
/// }
/// ```
///
/// # Panics
/// If a clause fails, and if there is no clause to run.
#[expect(clippy::panic, reason = "a failed check panics")]
pub fn test_family<H: Harness + 'static>(family: &str, excluded: &[&str], make: fn() -> H) {
    let ids: Vec<_> = CONTRACT
        .family(family)
        .map(|clause| clause.id)
        .filter(|id| !excluded.contains(id))
        .collect();
    if ids.is_empty() {
        panic!("no clause is called {family}");
    }
    for id in ids {
        test_clause(id, make);
    }
}

/// Runs one clause, applies the harness's waivers to its verdict, and adds it to the report.
///
/// A waiver file that cannot be read and a report that cannot be written are
/// [`Status::KitError`], with the reason in the verdict.
///
/// ```no_run
/// use std::sync::Arc;
/// use fleetwright_contract_tests::{CONTRACT, Factory, clause, run_and_report};
/// use fleetwright_contract_zoo::MemoryHarness;
///
/// let factory: Factory = Arc::new(|| Arc::new(MemoryHarness::new()));
/// let verdict = run_and_report(clause("TOKEN-01").unwrap(), &factory);
/// println!("{}", CONTRACT.message(&verdict));
/// ```
pub fn run_and_report(clause: &Clause, factory: &Factory) -> Verdict {
    run_judge_and_report(clause, factory, |verdict| verdict)
}

/// Like [`run_and_report`], with a verdict that `judge` may replace before it is reported.
pub(crate) fn run_judge_and_report(
    clause: &Clause,
    factory: &Factory,
    judge: impl FnOnce(Verdict) -> Verdict,
) -> Verdict {
    let harness = factory();
    let verdict = judge(run_clause(clause, factory));
    let verdict = match waiver::parse(&harness.waivers()) {
        Ok(waivers) => waiver::apply(verdict, &waivers, harness.peer().as_ref()),
        Err(problem) => verdict.with_status(Status::KitError, problem),
    };
    match report::add(&*harness, &verdict) {
        Ok(()) => verdict,
        Err(problem) => verdict.with_status(Status::KitError, problem),
    }
}

/// Runs every clause against the harnesses that `make` creates, and panics with the messages of all
/// that fail: for one `#[test]` over the whole contract.
///
/// [`contract_tests!`](crate::contract_tests) is usually better: its tests run in parallel and have
/// names.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner, async_trait};
/// # use fleetwright_contract_tests::Harness;
/// # struct MyHarness(fleetwright_memory::MemoryCloud);
/// # impl MyHarness {
/// #     fn new() -> Self { Self(fleetwright_memory::MemoryCloud::new()) }
/// # }
/// # #[async_trait]
/// # impl Harness for MyHarness {
/// #     fn name(&self) -> String { "my cloud".to_owned() }
/// #     async fn open(&self) -> Arc<dyn InstanceProvisioner> { Arc::new(self.0.provisioner()) }
/// #     fn config(&self) -> InstanceConfig { InstanceConfig::builder("image-1", "small").build().unwrap() }
/// #     fn unknown_id(&self) -> InstanceId { InstanceId::new("i-unknown").unwrap() }
/// # }
/// fleetwright_contract_tests::run_provisioner_contract_tests(MyHarness::new);
/// ```
///
/// # Panics
/// If a clause fails, or the kit does.
#[expect(clippy::panic, reason = "a failed check panics")]
pub fn run_provisioner_contract_tests<H: Harness + 'static>(make: fn() -> H) {
    let factory: Factory = Arc::new(move || Arc::new(make()));
    let mut failures = String::new();
    for clause in CLAUSES {
        let verdict = run_and_report(clause, &factory);
        if !passes(verdict.status, factory().on_missing()) {
            failures += &test_message(&verdict);
        }
    }
    if !failures.is_empty() {
        panic!("{failures}");
    }
}

/// Emits one `#[test]` for each clause of the contract. The argument is a function that creates a
/// harness.
///
/// ```
/// # use std::sync::Arc;
/// # use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner, async_trait};
/// # use fleetwright_contract_tests::Harness;
/// # struct MyHarness(fleetwright_memory::MemoryCloud);
/// # impl MyHarness {
/// #     fn new() -> Self { Self(fleetwright_memory::MemoryCloud::new()) }
/// # }
/// # #[async_trait]
/// # impl Harness for MyHarness {
/// #     fn name(&self) -> String { "my cloud".to_owned() }
/// #     async fn open(&self) -> Arc<dyn InstanceProvisioner> { Arc::new(self.0.provisioner()) }
/// #     fn config(&self) -> InstanceConfig { InstanceConfig::builder("image-1", "small").build().unwrap() }
/// #     fn unknown_id(&self) -> InstanceId { InstanceId::new("i-unknown").unwrap() }
/// # }
/// // In `tests/contract.rs`, where `MyHarness` implements `Harness`:
/// fleetwright_contract_tests::contract_tests!(MyHarness::new);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! contract_tests {
    ($make:expr) => {
        $crate::for_each_clause! { __contract_tests [$make] }
    };
}

/// Emits one `#[test]` for each family of clauses that layers can affect: launches, tokens, lists,
/// batches, concurrent callers, lost responses and crashed processes. The argument is a function
/// that creates a harness, usually a [`WrappedHarness`](crate::WrappedHarness).
///
/// The other clauses are about the backend alone, and in real time the layers would only make them
/// slower. For the same reason the sweeps and the model, which take minutes, are left out.
#[macro_export]
macro_rules! layered_contract_tests {
    ($make:expr) => {
        $crate::layered_contract_tests! { [$make]
            launches "LAUNCH-" [];
            tokens "TOKEN-" [];
            lists "LIST-" [];
            batches "BATCH-" [];
            concurrent_callers "CONCURRENCY-" [];
            lost_responses_and_crashed_processes "CRASH-" ["CRASH-03", "CRASH-04", "CRASH-06"];
        }
    };
    ([$make:expr] $($name:ident $family:literal [$($excluded:literal),*];)*) => {
        $(
            #[test]
            fn $name() {
                $crate::test_family($family, &[$($excluded),*], $make);
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __contract_tests {
    ([$make:expr] $($kind:ident $family:ident $name:ident $id:literal $promise:literal $needs:literal;)*) => {
        $(
            #[test]
            fn $name() {
                $crate::keep_regressions_in(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/proptest-regressions"
                ));
                $crate::test_clause($id, $make);
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_passes_if_conformant_waived_or_allowed_to_be_missing() {
        for (status, passes_anyway) in [
            (Status::Pass, true),
            (Status::Refused, true),
            (Status::NotClaimed, true),
            (Status::NotApplicable, true),
            (Status::Waived, true),
            (Status::NotRun, false),
            (Status::Fail, false),
            (Status::KitError, false),
        ] {
            assert_eq!(passes(status, OnMissing::Fail), passes_anyway, "{status:?}");
            let not_run = status == Status::NotRun;
            assert_eq!(
                passes(status, OnMissing::ReportNotRun),
                passes_anyway || not_run,
                "{status:?}"
            );
        }
    }
}
