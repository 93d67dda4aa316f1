//! The families stop, start, terminate, verbs and leaks on every legal variant of the reference,
//! and the mutants that break them.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    BatchLaunch, CloudInstanceState, InstanceConfig, InstanceId, InstanceInfo, InstanceProvisioner,
    OptionalVerb, PlacementField, Result,
};
use fleetwright_contract_tests::{
    CLAUSES, Clause, Factory, Harness, Status, Time, clause, run_clause,
    zoo::{At, MemoryHarness, Twist, TwistedHarness, mutants},
};

const FAMILIES: [&str; 5] = ["STOP", "START", "TERMINATE", "VERBS", "LEAKS"];

fn is_ours(id: &str) -> bool {
    let family = id.split('-').next().unwrap();
    FAMILIES.contains(&family)
}

fn ours() -> impl Iterator<Item = &'static Clause> {
    CLAUSES.iter().filter(|clause| is_ours(clause.id))
}

/// Runs the families on a variant; answers how many clauses were refused.
fn all_hold_on(make: impl Fn() -> MemoryHarness + Send + Sync + 'static) -> usize {
    let factory: Factory = Arc::new(move || Arc::new(make()));
    let (mut failures, mut refused) = (String::new(), 0);
    for clause in ours() {
        let verdict = run_clause(clause, &factory);
        match verdict.status {
            Status::Pass => {}
            Status::Refused => refused += 1,
            Status::Fail | Status::Waived | Status::NotRun | Status::KitError => {
                failures += &verdict.message(clause);
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    refused
}

#[test]
fn on_the_reference() {
    assert_eq!(all_hold_on(MemoryHarness::new), 0);
}

#[test]
fn with_reads_that_lag() {
    for seed in 0..4 {
        all_hold_on(move || MemoryHarness::with(|c| c.seed(seed).read_lag(Duration::from_secs(5))));
    }
}

#[test]
fn with_reads_that_lag_and_nothing_remembered() {
    all_hold_on(|| {
        MemoryHarness::with(|c| {
            c.read_lag(Duration::from_secs(5))
                .terminated_visible(Duration::ZERO)
                .token_after_terminate(Duration::ZERO)
        })
    });
}

#[test]
fn with_a_memory_that_is_shorter_than_the_lag() {
    all_hold_on(|| {
        MemoryHarness::with(|c| {
            c.read_lag(Duration::from_secs(5))
                .terminated_visible(Duration::from_secs(3))
        })
    });
}

#[test]
fn with_pages_and_batches_of_one() {
    all_hold_on(|| {
        MemoryHarness::with(|c| {
            c.page_size(NonZeroUsize::MIN)
                .read_lag(Duration::from_secs(1))
        })
    });
    all_hold_on(|| MemoryHarness::with(|c| c.page_size(NonZeroUsize::MIN)));
    all_hold_on(|| MemoryHarness::with(|c| c.batch_size(NonZeroUsize::MIN)));
}

#[test]
fn with_batches_in_parts() {
    all_hold_on(|| MemoryHarness::with(|c| c.batch_launch(BatchLaunch::Partial)));
}

#[test]
fn with_tokens_and_instances_forgotten_at_once() {
    all_hold_on(|| MemoryHarness::with(|c| c.token_after_terminate(Duration::ZERO)));
    all_hold_on(|| MemoryHarness::with(|c| c.terminated_visible(Duration::ZERO)));
}

#[test]
fn without_any_optional_verb() {
    let refused = all_hold_on(|| {
        MemoryHarness::with(|c| {
            OptionalVerb::ALL
                .into_iter()
                .fold(c, |c, verb| c.without(verb))
        })
    });
    assert_eq!(refused, 9, "every clause of the verbs has its other arm");
}

#[test]
fn without_any_placement() {
    all_hold_on(|| {
        MemoryHarness::with(|c| {
            let fields = PlacementField::ALL.into_iter();
            fields.fold(c, |c, field| c.without_placement(field))
        })
    });
}

#[test]
fn with_slow_and_with_immediate_transitions() {
    use fleetwright_memory::Timing;
    all_hold_on(|| MemoryHarness::with(|c| c.timing(Timing::all(Duration::from_secs(30)))));
    all_hold_on(|| MemoryHarness::with(|c| c.timing(Timing::all(Duration::ZERO))));
    all_hold_on(|| {
        MemoryHarness::with(|c| {
            c.timing(Timing::all(Duration::ZERO))
                .latency(Duration::ZERO)
                .terminated_visible(Duration::ZERO)
        })
    });
}

#[test]
fn every_mutant_dies_of_its_clause() {
    let mut survivors = String::new();
    let ours = || mutants::all().into_iter().filter(|m| is_ours(m.dies_of));
    for mutant in ours() {
        let clause = clause(mutant.dies_of).unwrap();
        let verdict = run_clause(clause, &(mutant.make)());
        println!("{mutant:?}: {:?}", verdict.reason);
        if verdict.status != Status::Fail {
            survivors += &format!("{mutant:?} survives:\n{}", verdict.message(clause));
        }
    }
    assert!(survivors.is_empty(), "{survivors}");
}

#[test]
fn every_clause_has_a_mutant() {
    let all = mutants::all();
    let bare: Vec<_> = ours()
        .filter(|clause| !all.iter().any(|mutant| mutant.dies_of == clause.id))
        .collect();
    assert!(bare.is_empty(), "{bare:?}");
}

/// The least that a backend's author gives: no truth, no faults, nobody outside.
struct Bare(MemoryHarness);

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
fn what_a_bare_harness_lacks_is_not_run_and_the_rest_holds() {
    let factory: Factory = Arc::new(|| Arc::new(Bare(MemoryHarness::new())));
    for clause in ours() {
        let verdict = run_clause(clause, &factory);
        let lacking = ["oracle", "fault", "another type"];
        let expected = if lacking.iter().any(|need| clause.needs.contains(need)) {
            Status::NotRun
        } else {
            Status::Pass
        };
        assert_eq!(verdict.status, expected, "{}", verdict.message(clause));
    }
}

/// Legal: a start of a stopping instance waits until it has stopped, and starts it then.
#[derive(Default)]
struct WaitsToStart;

#[async_trait]
impl Twist for WaitsToStart {
    async fn start_instance(&self, at: At<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        while at.state(id) == Some(CloudInstanceState::Stopping) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        at.inner.start_instance(id).await
    }
}

#[test]
fn a_start_may_wait_for_the_stop() {
    let factory = TwistedHarness::factory::<WaitsToStart>();
    for clause in ours() {
        let verdict = run_clause(clause, &factory);
        assert_eq!(verdict.status, Status::Pass, "{}", verdict.message(clause));
    }
}
