//! Running clauses: each on a fresh store, in a runtime of its own.
//!
//! Owns the steps around a clause of the store contract. Judging an outcome, catching panics and
//! counting results are the clause engine's.

use std::sync::Arc;

use fleetwright_clause_engine::{Executor, block_on, run};

use crate::{
    Body, CLAUSES, CONTRACT, Clause, Context, Environment, Factory, Harness, Report, Status,
    Verdict, crash::Child,
};

/// Returns the clause with this id, for instance `WATCH-03`.
///
/// ```
/// let clause = fleetwright_store_contract::clause("WATCH-03").unwrap();
/// assert_eq!(clause.name, "watch_03_continues_from_any_revision");
/// ```
pub fn clause(id: &str) -> Option<&'static Clause> {
    CONTRACT.clause(id)
}

/// Runs one clause on a fresh store and judges it. `child` is how another process can write to the
/// store, for CRASH-01.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_store_contract::{Factory, MemoryHarness, Status, clause, run_clause};
///
/// let factory: Factory = Arc::new(|| Arc::new(MemoryHarness::new()));
/// let verdict = run_clause(clause("WATCH-03").unwrap(), &factory, None);
/// assert_eq!(verdict.status, Status::Pass);
/// ```
pub fn run_clause(clause: &Clause, factory: &Factory, child: Option<&Child>) -> Verdict {
    run(clause, || match clause.body {
        Body::Sync(body) => body(&Environment {
            factory: Arc::clone(factory),
            child: child.cloned(),
        }),
        // Worker threads, so that calls run in parallel as they do in a program.
        Body::Async(body) => block_on(Executor::MultiThread, async {
            let cx = Context::open(factory()).await?;
            body(&cx).await
        }),
    })
}

/// Runs every clause and returns the report. CRASH-01 needs a process of its own, and so a test:
/// see [`store_contract_tests!`](crate::store_contract_tests).
///
/// ```no_run
/// use fleetwright_store_contract::{MemoryHarness, run_store_contract_tests};
///
/// let report = run_store_contract_tests(MemoryHarness::new);
/// assert!(report.is_conformant(), "{report}");
/// println!("{}", report.summary());
/// ```
pub fn run_store_contract_tests<H: Harness + 'static>(make: fn() -> H) -> Report {
    let factory = factory(make);
    let mut report = Report::new(&CONTRACT, &factory().name(), "real", "");
    for clause in CLAUSES {
        report.record(&run_clause(clause, &factory, None));
    }
    report
}

/// Wraps a constructor of harnesses.
fn factory<H: Harness + 'static>(make: fn() -> H) -> Factory {
    Arc::new(move || Arc::new(make()))
}

/// Runs one clause as a test.
///
/// ```
/// use fleetwright_store_contract::{MemoryHarness, test_clause};
///
/// test_clause("WATCH-03", MemoryHarness::new, None); // panics if the store breaks the promise
/// ```
///
/// # Panics
/// With the promise and what was observed, if the clause fails or cannot be run.
#[expect(clippy::panic, reason = "a failed check panics")]
pub fn test_clause<H: Harness + 'static>(id: &str, make: fn() -> H, child: Option<&Child>) {
    let Some(clause) = clause(id) else {
        panic!("there is no clause {id}");
    };
    let verdict = run_clause(clause, &factory(make), child);
    match verdict.status {
        Status::Pass | Status::Refused | Status::NotClaimed | Status::NotApplicable => {}
        Status::Fail | Status::Waived | Status::NotRun | Status::KitError => {
            panic!("{}", CONTRACT.message(&verdict))
        }
    }
}

/// Emits one `#[test]` for each clause, named after it.
///
/// The first argument is a function that creates a harness without records. The second one, for
/// stores that outlive their process, creates a harness on the records at a
/// [`location`](Harness::location); with it, CRASH-01 is tested. The crate's front page has an
/// example.
///
/// A store with a location and without the second argument fails CRASH-01 as an error of the kit.
#[macro_export]
macro_rules! store_contract_tests {
    ($make:expr) => {
        $crate::for_each_store_clause! { __store_contract_tests [$make] [None] }
    };
    ($make:expr, $at:expr) => {
        /// Not a test: the process that CRASH-01 starts and kills.
        #[test]
        fn store_contract_child() {
            $crate::crash::run_child($at);
        }
        $crate::for_each_store_clause! {
            __store_contract_tests
            [$make]
            [Some($crate::crash::Child::new(concat!(module_path!(), "::store_contract_child")))]
        }
    };
}

/// Emits the tests from the rows of the list.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_contract_tests {
    ([$make:expr] $child:tt $($how:ident $family:ident $name:ident $id:literal $promise:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let [child]: [Option<$crate::crash::Child>; 1] = $child;
                $crate::test_clause($id, $make, child.as_ref());
            }
        )*
    };
}
