//! Clauses that need what a harness does not offer are not run, and never count as passed.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{num::NonZeroUsize, sync::Arc};

use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner, async_trait};
use fleetwright_contract_tests::{
    CLAUSES, CONTRACT, Factory, Harness, NotApplicable, Status, Time, clause, run_clause,
    test_clause,
};
use fleetwright_contract_zoo::{MemoryHarness, Override, OverrideHarness, benign};

/// The smallest harness: no oracle, no faults, no external actor.
struct Bare(MemoryHarness);

impl Bare {
    fn new() -> Self {
        Self(MemoryHarness::new())
    }
}

#[async_trait]
impl Harness for Bare {
    fn name(&self) -> String {
        "bare memory".to_owned()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        self.0.open().await
    }
    fn config(&self) -> InstanceConfig {
        self.0.config()
    }
    fn unknown_id(&self) -> InstanceId {
        self.0.unknown_id()
    }
    fn time(&self) -> Time {
        self.0.time()
    }
}

#[test]
fn clauses_with_missing_needs_are_not_run() {
    let factory: Factory = Arc::new(|| Arc::new(Bare::new()));
    let mut wrong = String::new();
    for clause in CLAUSES {
        let verdict = run_clause(clause, &factory);
        let missing = [
            "oracle",
            "fault",
            "external actor",
            "another type",
            "a zone",
            "two zones",
            "an unknown image",
            "an unknown type",
        ];
        let needs_more = missing.iter().any(|need| clause.needs.contains(need));
        let expected = if needs_more {
            Status::NotRun
        } else {
            Status::Pass
        };
        if verdict.status != expected {
            wrong += &format!("{expected:?} was expected:\n{}", CONTRACT.message(&verdict));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
#[should_panic(expected = "the harness has no oracle")]
fn clause_that_is_not_run_fails_by_default() {
    test_clause(clause("LEAKS-01").unwrap().id, Bare::new);
}

#[test]
fn clause_that_needs_too_many_instances_is_not_run() {
    let huge = NonZeroUsize::new(1_000).unwrap();
    let factory: Factory =
        Arc::new(move || Arc::new(MemoryHarness::with(|cloud| cloud.page_size(huge))));
    let verdict = run_clause(clause("LIST-03").unwrap(), &factory);
    assert_eq!(verdict.status, Status::NotRun, "{:?}", verdict.reason);
}

/// Declares that the cloud lacks everything that a cloud may lack, which is not true.
#[derive(Default)]
struct FalseDeclaration;

impl Override for FalseDeclaration {
    fn not_applicable(&self) -> Vec<NotApplicable> {
        vec![
            NotApplicable::Throttling,
            NotApplicable::Credentials,
            NotApplicable::Permissions,
            NotApplicable::Quota,
            NotApplicable::Capacity,
            NotApplicable::LateFailures,
        ]
    }
}

#[test]
fn false_declaration_is_an_error() {
    let factory = OverrideHarness::factory::<FalseDeclaration>();
    for id in [
        "ERRORS-01",
        "ERRORS-02",
        "ERRORS-03",
        "ERRORS-04",
        "ERRORS-05",
        "ERRORS-12",
        "BATCH-09",
        "STATE-04",
        "STATE-07",
    ] {
        let verdict = run_clause(clause(id).unwrap(), &factory);
        assert_eq!(verdict.status, Status::KitError, "{:?}", verdict.reason);
    }
}

/// A declaration never removes a promise that every backend can keep: a clause is not applicable only if
/// it needs a fault that the cloud does not have.
#[test]
fn declaration_concerns_only_clauses_that_need_the_fault() {
    let benign = benign::all()
        .iter()
        .find(|benign| benign.name.starts_with("a cloud without"));
    let factory = (benign.unwrap().make)();
    let faults = [
        "throttled",
        "bad credentials",
        "forbidden",
        "quota",
        "capacity",
        "fails late",
    ];
    let mut concerned = 0;
    for clause in CLAUSES {
        let verdict = run_clause(clause, &factory);
        if verdict.status == Status::NotApplicable {
            concerned += 1;
            let needed = faults.iter().any(|fault| clause.needs.contains(fault));
            // BATCH-09 limits the capacity with the external actor.
            assert!(needed || clause.id == "BATCH-09", "{}", clause.id);
        }
    }
    assert!(concerned >= 9, "{concerned} clauses are about these faults");
    let leaks = run_clause(clause("LEAKS-02").unwrap(), &factory);
    assert_eq!(leaks.status, Status::Pass, "its other half applies");
}

#[test]
fn default_budget_fits_the_time() {
    struct Real(Bare);

    #[async_trait]
    impl Harness for Real {
        fn name(&self) -> String {
            self.0.name()
        }
        async fn open(&self) -> Arc<dyn InstanceProvisioner> {
            self.0.open().await
        }
        fn config(&self) -> InstanceConfig {
            self.0.config()
        }
        fn unknown_id(&self) -> InstanceId {
            self.0.unknown_id()
        }
    }

    assert_eq!(Bare::new().budget().as_secs(), 300);
    assert_eq!(Real(Bare::new()).budget().as_secs(), 10);
}
