//! The families launch, list, tags and batch, proven: they pass on every legal variant of the
//! reference, and each of their mutants dies of its clause, by what the clause's own body saw.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use fleetwright::{
    BatchLaunch, InstanceConfig, InstanceId, InstanceInfo, InstanceProvisioner, OptionalVerb,
    PlacementField, Result,
};
use fleetwright_contract_tests::{
    CLAUSES, Clause, Factory, Faults, Harness, Status, Time, clause, run_clause,
    zoo::{At, MemoryHarness, Twist, TwistedHarness, mutants},
};
use fleetwright_memory::Timing;

const FAMILIES: [&str; 4] = ["LAUNCH-", "LIST-", "TAGS-", "BATCH-"];

fn ours(id: &str) -> bool {
    FAMILIES.iter().any(|family| id.starts_with(family))
}

fn clauses() -> impl Iterator<Item = &'static Clause> {
    CLAUSES.iter().filter(|clause| ours(clause.id))
}

fn pass_on(name: &str, make: fn() -> MemoryHarness) {
    let factory: Factory = Arc::new(move || Arc::new(make()));
    let mut failures = String::new();
    for clause in clauses() {
        let verdict = run_clause(clause, &factory);
        if !matches!(verdict.status, Status::Pass | Status::Refused) {
            failures += &verdict.message(clause);
        }
    }
    assert!(failures.is_empty(), "on {name}:\n{failures}");
}

#[test]
fn the_reference_passes() {
    pass_on("the reference", MemoryHarness::new);
}

#[test]
fn lagging_reads_pass() {
    pass_on("reads that lag by 5 s", || {
        MemoryHarness::with(|cloud| cloud.read_lag(Duration::from_secs(5)))
    });
}

#[test]
fn lagging_reads_of_a_cloud_that_forgets_pass() {
    pass_on("lagging reads of a cloud that forgets", || {
        MemoryHarness::with(|cloud| {
            cloud
                .read_lag(Duration::from_secs(5))
                .token_after_terminate(Duration::ZERO)
                .terminated_visible(Duration::ZERO)
                .page_size(NonZeroUsize::new(2).unwrap())
        })
    });
}

#[test]
fn pages_of_one_pass() {
    pass_on("pages of one", || {
        MemoryHarness::with(|cloud| cloud.page_size(NonZeroUsize::MIN))
    });
}

#[test]
fn batches_of_one_pass() {
    pass_on("batches of one", || {
        MemoryHarness::with(|cloud| cloud.batch_size(NonZeroUsize::MIN))
    });
}

#[test]
fn partial_batches_pass() {
    pass_on("partial batches", || {
        MemoryHarness::with(|cloud| cloud.batch_launch(BatchLaunch::Partial))
    });
}

#[test]
fn a_cloud_that_forgets_tokens_passes() {
    pass_on("no token after terminate", || {
        MemoryHarness::with(|cloud| cloud.token_after_terminate(Duration::ZERO))
    });
}

#[test]
fn a_cloud_that_forgets_instances_passes() {
    pass_on("no terminated instance visible", || {
        MemoryHarness::with(|cloud| cloud.terminated_visible(Duration::ZERO))
    });
}

#[test]
fn no_optional_verb_passes() {
    pass_on("no optional verb", || {
        MemoryHarness::with(|cloud| {
            let all = OptionalVerb::ALL.into_iter();
            all.fold(cloud, |cloud, verb| cloud.without(verb))
        })
    });
}

#[test]
fn no_placement_passes() {
    pass_on("no placement", || {
        MemoryHarness::with(|cloud| {
            let all = PlacementField::ALL.into_iter();
            all.fold(cloud, |cloud, field| cloud.without_placement(field))
        })
    });
}

#[test]
fn instant_transitions_pass() {
    pass_on("instant transitions", || {
        MemoryHarness::with(|cloud| {
            let cloud = cloud.timing(Timing::all(Duration::ZERO));
            cloud.latency(Duration::ZERO)
        })
    });
}

#[test]
fn slow_transitions_with_lagging_reads_pass() {
    pass_on("slow transitions with lagging reads", || {
        MemoryHarness::with(|cloud| {
            let cloud = cloud.timing(Timing::all(Duration::from_secs(60)));
            cloud.seed(7).read_lag(Duration::from_secs(20))
        })
    });
}

/// What says that a mutant died of something else than its clause's body: of a call that panicked
/// or never ended, or of what it left behind.
const OTHER_DEATHS: [&str; 4] = [
    "did not end within",
    "panicked",
    "after the clause",
    "after everything was terminated",
];

#[test]
fn every_mutant_dies_of_its_clause() {
    let mut survivors = String::new();
    for mutant in mutants::all() {
        if !ours(mutant.dies_of) {
            continue;
        }
        let clause = clause(mutant.dies_of).unwrap();
        let verdict = run_clause(clause, &(mutant.make)());
        let reason = verdict.reason.clone().unwrap_or_default();
        let other = OTHER_DEATHS.iter().any(|death| reason.contains(death));
        if verdict.status != Status::Fail || other {
            survivors += &format!("{mutant:?} survives:\n{}", verdict.message(clause));
        }
    }
    assert!(survivors.is_empty(), "{survivors}");
}

#[test]
fn every_clause_has_a_mutant() {
    let all = mutants::all();
    let without: Vec<_> = clauses()
        .filter(|clause| !all.iter().any(|mutant| mutant.dies_of == clause.id))
        .collect();
    assert!(without.is_empty(), "no mutant for {without:?}");
}

/// A backend that launches a batch one by one, as the trait's own body does, on a harness that can
/// only strike the wire.
struct OneByOne(MemoryHarness);

impl OneByOne {
    fn factory(cloud: fn() -> MemoryHarness) -> Factory {
        Arc::new(move || Arc::new(Self(cloud())))
    }
}

#[async_trait::async_trait]
impl Harness for OneByOne {
    fn name(&self) -> String {
        "one by one".to_owned()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        let twisted = TwistedHarness::new(self.0.clone(), SingleLaunches);
        twisted.open().await
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
    fn faults(&self) -> Option<Arc<dyn Faults>> {
        self.0.faults()
    }
}

struct SingleLaunches;

#[async_trait::async_trait]
impl Twist for SingleLaunches {
    async fn launch_instances(
        &self,
        at: At<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let mut launched = Vec::new();
        for index in 0..count.get() {
            let mut item = config.clone();
            item.launch_token = config.launch_token.as_ref().map(|token| token.item(index));
            match at.inner.launch_instance(&item).await {
                Ok(info) => launched.push(info),
                Err(error) => return Err(error.with_survivors(launched)),
            }
        }
        Ok(launched)
    }
}

#[test]
fn a_batch_that_is_many_calls_is_struck_at_its_last() {
    let part = clause("BATCH-04").unwrap();
    let partial =
        OneByOne::factory(|| MemoryHarness::with(|cloud| cloud.batch_launch(BatchLaunch::Partial)));
    let verdict = run_clause(part, &partial);
    assert_eq!(verdict.status, Status::Pass, "{}", verdict.message(part));
    let verdict = run_clause(part, &OneByOne::factory(MemoryHarness::new));
    assert_eq!(verdict.status, Status::Fail, "{}", verdict.message(part));
}
