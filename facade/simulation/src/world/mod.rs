//! One run: process after process over a store and a cloud that outlive them.

mod process;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{InstanceProvisioner as _, OptionalVerb};
use fleetwright_chaos::SeededRng;
use fleetwright_compute::schema;
use fleetwright_memory::MemoryCloud;
use fleetwright_runtime::{
    clock::{Clock, TokioClock},
    entropy::Entropy,
};
use fleetwright_store::{MemoryStore, Schema};
use tokio::time::sleep;

pub use process::Process;

use crate::{
    check::Check,
    client::{Client, Expected},
    constants,
    fixtures::{Fixtures, SeededEntropy},
    journal::{Journal, Outcome},
    mistake::Mistake,
    oracle::Oracle,
    rules::Rules,
    scenario::Scenario,
};

/// 2026-01-01T00:00:00Z: the memory cloud's clock starts here, and ours must too.
const NEW_YEAR: i64 = 1_767_225_600;
/// How many rounds the system has to settle after the last operation.
const ROUNDS: usize = 120;
const ROUND: Duration = Duration::from_secs(10);

/// A setup error: it cannot happen while the constants of this crate are right.
pub type SetupError = Box<dyn std::error::Error + Send + Sync>;

/// Runs a scenario to its end, with a mistake if one is given.
pub fn run(scenario: &Scenario, mistake: Option<Mistake>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let outcome = runtime
        .map_err(SetupError::from)
        .and_then(|runtime| runtime.block_on(simulate(scenario, mistake)));
    outcome.unwrap_or_else(|error| Outcome {
        violation: Some(format!("cannot run the simulation: {error}")),
        ..Outcome::default()
    })
}

/// Everything that outlives the processes.
struct World<'a> {
    scenario: &'a Scenario,
    cloud: MemoryCloud,
    store: MemoryStore,
    entropy: Arc<dyn Entropy>,
    journal: Arc<Journal>,
    oracle: Oracle,
    rules: Rules,
    clock: Arc<dyn Clock>,
    mistake: Option<Mistake>,
}

async fn simulate(scenario: &Scenario, mistake: Option<Mistake>) -> Result<Outcome, SetupError> {
    let epoch = DateTime::<Utc>::from_timestamp(NEW_YEAR, 0).unwrap_or_default();
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
    let mut builder = MemoryCloud::builder()
        .seed(scenario.seed)
        .account_id(constants::account())
        .latency(scenario.latency)
        .read_lag(scenario.read_lag)
        .terminated_visible(scenario.terminated_visible);
    for verb in &scenario.unsupported {
        builder = builder.without_verb(*verb);
    }
    let cloud = builder.build();
    let verbs = cloud.provisioner().capabilities().verbs.clone();
    let store = MemoryStore::new(schema::add_all_kinds(Schema::builder()).build()?);
    let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(scenario.seed));
    let fixtures = Fixtures::create(Arc::new(store.clone()), Arc::clone(&entropy)).await?;
    let journal = Arc::new(Journal::new(scenario.seed, &scenario.faults));
    let oracle = Oracle::new(cloud.clone());
    let rules = Rules::new(
        &store,
        oracle.clone(),
        Arc::clone(&journal),
        Arc::clone(&clock),
        Arc::new(fixtures),
        verbs,
    )?;
    let world = World {
        scenario,
        cloud,
        store,
        entropy,
        journal,
        oracle,
        rules,
        clock,
        mistake,
    };
    world.run_processes().await?;
    Ok(world.journal.outcome())
}

impl World<'_> {
    async fn run_processes(&self) -> Result<(), SetupError> {
        let mut client = Client {
            done: 0,
            expected: Expected::default(),
            oracle: self.oracle.clone(),
            rules: self.rules.clone(),
            fixtures: Arc::clone(&self.rules.fixtures),
            journal: Arc::clone(&self.journal),
            rng: SeededRng::for_purpose(self.scenario.seed, 3),
        };
        loop {
            let settled = tokio::select! {
                biased;
                () = self.journal.wait_for_crash() => false,
                settled = self.run_process(&mut client) => { settled?; true }
            };
            if settled || self.journal.has_violation() {
                return Ok(());
            }
            sleep(self.journal.restart()).await;
            self.check(&client.expected).check_health().await;
        }
    }

    /// Runs one process until everything has settled.
    async fn run_process(&self, client: &mut Client) -> Result<(), SetupError> {
        let process = self.start().await?;
        let scenario = async {
            client.run(self.scenario, &process).await;
            client.end_disruptions(&process).await;
            self.settle(&client.expected).await;
        };
        tokio::select! {
            biased;
            () = scenario => {}
            () = process.run() => {}
        }
        Ok(())
    }

    /// Waits until everything is as requested in two consecutive rounds, or reports what is not.
    async fn settle(&self, expected: &Expected) {
        let mut last = Ok(());
        let mut consecutive = 0;
        for _ in 0..ROUNDS {
            sleep(ROUND).await;
            let check = self.check(expected);
            check.check_health().await;
            last = check.check_settled().await;
            consecutive = if last.is_ok() { consecutive + 1 } else { 0 };
            if consecutive == 2 {
                return;
            }
        }
        if let Err(problem) = last {
            self.journal
                .report_violation(format!("did not settle: {problem}"));
        }
    }

    fn check<'c>(&'c self, expected: &'c Expected) -> Check<'c> {
        Check {
            rules: &self.rules,
            expected,
            retags: self.rules.verbs.contains(&OptionalVerb::UpdateTags),
        }
    }
}
