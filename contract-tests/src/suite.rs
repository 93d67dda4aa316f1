//! Running clauses: one at a time, each on a fresh account, with a probe for leaks after it.

use std::{
    ops::AsyncFnOnce,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fleetwright::{ErrorKind, InstanceProvisioner};
use serde::{Deserialize, Serialize};
use tokio::{runtime, time::timeout};

use crate::{
    Arm, Body, CLAUSES, Clause, Cx, Factory, Harness, Missing, Outcome, Stop, Time,
    recorder::{Transcript, panic_message},
    report, seed, waiver,
};

/// What became of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The promise holds, or the weaker one that is declared.
    Pass,
    /// The capability is not declared, and its use is refused without effect.
    Refused,
    /// The promise is broken.
    Fail,
    /// The promise is broken by a peer that is known to differ, and a waiver says so.
    Waived,
    /// The harness does not offer what the clause needs.
    NotRun,
    /// The kit or the harness failed, not the backend.
    KitError,
}

impl Status {
    /// The status in words.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Refused => "refused",
            Self::Fail => "fail",
            Self::Waived => "waived",
            Self::NotRun => "not run",
            Self::KitError => "kit error",
        }
    }
}

/// Where a violation came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Found {
    /// The body of the clause saw it, or a call panicked.
    #[default]
    ByTheClause,
    /// A call did not end within the budget.
    ByHanging,
    /// The probe after the clause found something left.
    ByTheProbe,
}

/// A clause that was run.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The clause.
    pub id: &'static str,
    /// What became of it.
    pub status: Status,
    /// Why, for everything but a pass.
    pub reason: Option<String>,
    /// Where it came out, for a failure.
    pub found: Found,
    /// What was called and answered, in order.
    pub transcript: Vec<String>,
    /// How long it took, in real time; for reports, never for a judgement.
    pub duration: Duration,
}

impl Verdict {
    /// The whole story, for the author of the backend.
    pub fn message(&self, clause: &Clause) -> String {
        let mut text = format!("{}: {}\n", self.id, self.status.word());
        text += &format!("  promised: a backend must {}\n", clause.promise);
        if let Some(reason) = &self.reason {
            text += &format!("  seen:     {reason}\n");
        }
        text += &format!("  text:     docs/contract.md, {}\n", self.id);
        for line in &self.transcript {
            text += &format!("    {line}\n");
        }
        text
    }
}

/// Runs one clause.
pub fn run_clause(clause: &Clause, factory: &Factory) -> Verdict {
    let began = std::time::Instant::now();
    let transcript = Transcript::default();
    let caught = catch_unwind(AssertUnwindSafe(|| match clause.body {
        Body::Async(_) => on_fresh_account(clause, factory, &transcript),
        Body::Sync(body) => body(factory),
    }));
    let outcome = caught.unwrap_or_else(|panic| {
        Err(Stop::Kit(format!(
            "the clause panicked: {}",
            panic_message(&*panic)
        )))
    });
    let (status, reason) = judge(outcome, &transcript);
    let (found, duration) = (transcript.found(), began.elapsed());
    Verdict {
        id: clause.id,
        status,
        reason,
        found,
        transcript: transcript.lines(),
        duration,
    }
}

/// Runs the body, then asks whether anything is left, on one runtime and one account.
fn on_fresh_account(clause: &Clause, factory: &Factory, transcript: &Transcript) -> Outcome {
    let Body::Async(body) = clause.body else {
        return Ok(Arm::Held);
    };
    on_account(&factory(), clause.id, transcript, async |cx| body(cx).await)
}

/// Runs one case of a clause that makes its accounts itself: like a clause of its own.
pub(crate) fn run_case(
    factory: &Factory,
    clause: &str,
    body: impl AsyncFnOnce(&Cx) -> Outcome,
) -> Outcome {
    let transcript = Transcript::default();
    let outcome = on_account(&factory(), clause, &transcript, body);
    match transcript.broken() {
        Some(broken) => Err(Stop::Violated(broken)),
        None => outcome,
    }
}

fn on_account(
    harness: &Arc<dyn Harness>,
    clause: &str,
    transcript: &Transcript,
    body: impl AsyncFnOnce(&Cx) -> Outcome,
) -> Outcome {
    block_on(harness.time(), async {
        let cx = Cx::new(Arc::clone(harness), &scope_of(clause), transcript.clone()).await?;
        // The longest clauses are sweeps over some hundred lives, each step within the budget.
        let whole = harness.budget().saturating_mul(2_000);
        let outcome = timeout(whole, body(&cx)).await;
        if !matches!(outcome, Ok(Ok(_))) {
            transcript.close();
        }
        if let Some(faults) = harness.faults() {
            faults.clear().await;
        }
        if let Some(outsider) = harness.outsider() {
            outsider.reconnect().await;
        }
        let left = sweep_and_probe(&cx).await;
        let outcome = outcome.map_err(|_| Stop::Kit(format!("the clause took over {whole:?}")))?;
        let arm = outcome?;
        left.map(|()| arm)
            .inspect_err(|_| transcript.found_by_the_probe())
    })
}

/// Terminates what the clause left running on purpose, then demands that nothing of it is left.
async fn sweep_and_probe(cx: &Cx) -> Result<(), Stop> {
    let handle = cx.other_handle().await;
    cx.settle_reads().await;
    let list = handle.list_instances(&cx.filter()).await;
    let list = list.map_err(|error| Stop::failed("list_instances after the clause", &error))?;
    let ids: Vec<_> = list.into_iter().map(|info| info.id).collect();
    for (id, answer) in ids.iter().zip(handle.terminate_instances(&ids).await) {
        match answer {
            Ok(()) => {}
            // It was on its way out, and the cloud keeps no record.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Stop::failed(
                    &format!("terminating {id} after the clause"),
                    &error,
                ));
            }
        }
    }
    for id in &ids {
        cx.gone(id).await?;
    }
    nothing_left(cx, &*handle).await
}

/// Clouds take a while to clean up behind an instance, and then nothing must be left.
async fn nothing_left(cx: &Cx, handle: &dyn InstanceProvisioner) -> Result<(), Stop> {
    let left = async || {
        let list = handle.list_instances(&cx.filter()).await;
        let list = list.map_err(|error| Stop::failed("list_instances after the clause", &error))?;
        let mut left: Vec<_> = list
            .iter()
            .map(|info| format!("{} {}", info.id, info.state))
            .collect();
        if let Some(oracle) = cx.harness().oracle() {
            left.extend(oracle.leftovers(cx.scope()).await);
        }
        Ok::<_, Stop>(left)
    };
    let nothing = async || Ok(left().await?.is_empty().then_some(()));
    match cx.eventually("nothing is left", nothing).await {
        Err(Stop::Violated(_)) => {
            let left = left().await?.join(", ");
            let budget = cx.harness().budget();
            Err(Stop::violated(format!(
                "{budget:?} after everything was terminated there is still: {left}"
            )))
        }
        answer => answer,
    }
}

/// A runtime as the harness wants time to be, for one body.
pub(crate) fn block_on<T>(
    time: Time,
    future: impl Future<Output = Result<T, Stop>>,
) -> Result<T, Stop> {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_all();
    if time == Time::Virtual {
        builder.start_paused(true);
    }
    let runtime = builder
        .build()
        .map_err(|error| Stop::Kit(format!("no runtime: {error}")))?;
    runtime.block_on(future)
}

fn judge(outcome: Outcome, transcript: &Transcript) -> (Status, Option<String>) {
    if let Some(broken) = transcript.broken() {
        return (Status::Fail, Some(broken));
    }
    match outcome {
        Ok(Arm::Held) => (Status::Pass, None),
        Ok(Arm::Weaker) => (
            Status::Pass,
            Some("the weaker promise that is declared".to_owned()),
        ),
        Ok(Arm::Refused) => (
            Status::Refused,
            Some("not declared, and refused".to_owned()),
        ),
        Err(Stop::Violated(seen)) => (Status::Fail, Some(seen)),
        Err(Stop::NotRun(why)) => (Status::NotRun, Some(why)),
        Err(Stop::Kit(why)) => (Status::KitError, Some(why)),
    }
}

/// A scope that no other run has: clauses run in parallel, and accounts may be shared.
fn scope_of(clause: &str) -> String {
    static CASES: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map(|since| since.as_nanos()).unwrap_or_default();
    let case = CASES.fetch_add(1, Ordering::Relaxed);
    let text = format!("{}/{clause}/{nanos}/{case}", std::process::id());
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes())
        .simple()
        .to_string()
}

/// Keeps the sequences that once broke a promise of a generated clause in `folder`, and tries them
/// first from then on. [`contract_tests!`](crate::contract_tests) says `proptest-regressions` beside
/// the backend's manifest; commit what appears there.
pub fn keep_regressions_in(folder: &'static str) {
    seed::keep_regressions_in(folder);
}

/// The clause with this id.
pub fn clause(id: &str) -> Option<&'static Clause> {
    CLAUSES.iter().find(|clause| clause.id == id)
}

/// The body of a `#[test]` that [`contract_tests!`](crate::contract_tests) emits.
///
/// # Panics
/// If the clause fails, or the kit does: that is how a test says so.
#[expect(clippy::panic, reason = "a failing test panics")]
pub fn test_clause<H: Harness + 'static>(id: &str, make: fn() -> H) {
    let Some(clause) = clause(id) else {
        panic!("there is no clause {id}")
    };
    let factory: Factory = Arc::new(move || Arc::new(make()));
    let verdict = run_and_report(clause, &factory);
    match verdict.status {
        Status::Pass | Status::Refused => {}
        Status::NotRun if factory().when_missing() == Missing::StaysNotRun => {
            println!("{}", verdict.message(clause));
        }
        Status::Waived => println!("{}", verdict.message(clause)),
        Status::NotRun | Status::Fail | Status::KitError => panic!("{}", verdict.message(clause)),
    }
}

/// The body of a `#[test]` that runs the clauses of a family, such as `TOKEN-`, but for those that are
/// left out: for a backend under layers, say, where not every clause is worth its time.
///
/// # Panics
/// If a clause fails, and if there is none to run.
#[expect(clippy::panic, reason = "a failing test panics")]
pub fn test_family<H: Harness + 'static>(family: &str, left_out: &[&str], make: fn() -> H) {
    let of_it = CLAUSES
        .iter()
        .filter(|clause| clause.id.starts_with(family));
    let ids: Vec<_> = of_it
        .map(|clause| clause.id)
        .filter(|id| !left_out.contains(id))
        .collect();
    if ids.is_empty() {
        panic!("no clause is called {family}");
    }
    for id in ids {
        test_clause(id, make);
    }
}

/// Runs one clause, judges it under the harness's waivers, and writes it into the report.
pub fn run_and_report(clause: &Clause, factory: &Factory) -> Verdict {
    let harness = factory();
    let verdict = run_clause(clause, factory);
    let mut verdict = match waiver::parse(&harness.waivers()) {
        Ok(waivers) => waiver::apply(verdict, &waivers, harness.peer().as_ref()),
        Err(wrong) => Verdict {
            status: Status::KitError,
            reason: Some(wrong),
            ..verdict
        },
    };
    if let Err(wrong) = report::add(&*harness, &verdict) {
        verdict.status = Status::KitError;
        verdict.reason = Some(wrong);
    }
    verdict
}

/// Runs every clause against what `factory` makes, and panics with all that fail: the plain entry,
/// for one `#[test]`.
///
/// # Panics
/// If a clause fails, or the kit does.
#[expect(clippy::panic, reason = "a failing test panics")]
pub fn run_provisioner_contract_tests<H: Harness + 'static>(make: fn() -> H) {
    let factory: Factory = Arc::new(move || Arc::new(make()));
    let mut failures = String::new();
    for clause in CLAUSES {
        let verdict = run_and_report(clause, &factory);
        let excused =
            verdict.status == Status::NotRun && factory().when_missing() == Missing::StaysNotRun;
        let holds = matches!(
            verdict.status,
            Status::Pass | Status::Refused | Status::Waived
        );
        if !holds && !excused {
            failures += &verdict.message(clause);
        }
    }
    if !failures.is_empty() {
        panic!("{failures}");
    }
}

/// Emits one `#[test]` for each clause of the contract, against the harness that the given function
/// makes.
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
/// #     fn config(&self) -> InstanceConfig { unimplemented!() }
/// #     fn unknown_id(&self) -> InstanceId { unimplemented!() }
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

/// Emits a `#[test]` for each family of clauses that layers have to do with, for the harness that an
/// expression makes: launches, tokens, lists, batches, callers side by side, lost replies and processes.
///
/// The rest of the clauses is about the backend alone, and in real time the layers would only make it
/// wait. For the same reason the sweeps and the model are left out, which take minutes.
#[macro_export]
macro_rules! layered_contract_tests {
    ($make:expr) => {
        $crate::layered_contract_tests! { [$make]
            launches "LAUNCH-" [];
            tokens "TOKEN-" [];
            lists "LIST-" [];
            batches "BATCH-" [];
            callers_side_by_side "CONCURRENCY-" [];
            lost_replies_and_lost_processes "CRASH-" ["CRASH-03", "CRASH-04", "CRASH-06"];
        }
    };
    ([$make:expr] $($name:ident $family:literal [$($left_out:literal),*];)*) => {
        $(
            #[test]
            fn $name() {
                $crate::test_family($family, &[$($left_out),*], $make);
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
