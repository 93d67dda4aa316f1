//! Clauses that need what a harness does not offer are not run, and never count as passed.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{num::NonZeroUsize, sync::Arc};

use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner, async_trait};
use fleetwright_contract_tests::{
    CLAUSES, CONTRACT, Factory, Harness, Status, Time, clause, run_clause, test_clause,
};
use fleetwright_contract_zoo::MemoryHarness;

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
