//! Running clauses: each on a fresh store, in a runtime of its own.

use std::sync::Arc;

use super::{
    Body, CLAUSES, Clause, Cx, Factory, Harness, Outcome, Report, Stop, Verdict, crash::Child,
};

/// The clause with this id.
pub fn clause(id: &str) -> Option<&'static Clause> {
    CLAUSES.iter().find(|clause| clause.id == id)
}

/// Runs one clause on a fresh store. `child` is how another process can write to it, for CRASH-01.
pub fn run_clause(clause: &Clause, factory: &Factory, child: Option<&Child>) -> Outcome {
    match clause.body {
        Body::Sync(body) => body(factory, child),
        Body::Async(body) => runtime()?.block_on(async {
            let cx = Cx::open(factory()).await?;
            body(&cx).await
        }),
    }
}

/// Threads of its own, so that calls meet as they do in a program.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Stop> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .map_err(|error| Stop::Kit(format!("no runtime: {error}")))
}

/// Runs every clause and tells what came of it. CRASH-01 needs a process of its own, and so a test: see
/// [`store_contract_tests!`](crate::store_contract_tests).
pub fn run_store_contract_tests<H: Harness + 'static>(make: fn() -> H) -> Report {
    let factory = factory(make);
    let run = |clause: &'static Clause| Verdict {
        clause,
        outcome: run_clause(clause, &factory, None),
    };
    Report {
        store: factory().name(),
        verdicts: CLAUSES.iter().map(run).collect(),
    }
}

fn factory<H: Harness + 'static>(make: fn() -> H) -> Factory {
    Arc::new(move || Arc::new(make()))
}

/// Runs one clause as a test: panics with what was promised and what was seen.
#[expect(clippy::panic, reason = "that is how a test fails")]
pub fn test_clause<H: Harness + 'static>(id: &str, make: fn() -> H, child: Option<&Child>) {
    let Some(clause) = clause(id) else {
        panic!("no clause is called {id}");
    };
    let outcome = run_clause(clause, &factory(make), child);
    let verdict = Verdict { clause, outcome };
    assert!(verdict.outcome.is_ok(), "{verdict}");
}

/// Makes a test of every clause. The first argument makes a harness without records; the second, for stores
/// that outlive their process, one on the records at a [`location`](Harness::location).
#[macro_export]
macro_rules! store_contract_tests {
    ($make:expr) => {
        $crate::for_each_store_clause! { __store_contract_tests [$make] [None] }
    };
    ($make:expr, $at:expr) => {
        /// Not a test: what CRASH-01 starts as a process of its own, and kills.
        #[test]
        fn store_contract_child() {
            $crate::contract::crash::be_the_child($at);
        }
        $crate::for_each_store_clause! {
            __store_contract_tests
            [$make]
            [Some($crate::contract::crash::Child::new(concat!(module_path!(), "::store_contract_child")))]
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __store_contract_tests {
    ([$make:expr] $child:tt $($how:ident $family:ident $name:ident $id:literal $promise:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let [child]: [Option<$crate::contract::crash::Child>; 1] = $child;
                $crate::contract::test_clause($id, $make, child.as_ref());
            }
        )*
    };
}
