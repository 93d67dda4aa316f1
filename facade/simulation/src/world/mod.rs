//! One run: process after process over a store and a cloud that outlive them.

mod process;
mod slots;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{InstanceConfig, InstanceProvisioner as _, OptionalVerb};
use fleetwright_chaos::SeededRng;
use fleetwright_compute::schema;
use fleetwright_memory::MemoryCloud;
use fleetwright_region::controller::tags;
use fleetwright_runtime::{
    clock::{Clock, TokioClock},
    entropy::Entropy,
};
use fleetwright_store::{MemoryStore, Schema};
use futures_util::future::join_all;
use tokio::time::sleep;

pub use process::Process;
pub use slots::Slots;

use crate::{
    check::Check,
    client::{Client, Expected},
    constants,
    environment::{Environment, MappingFile},
    fixtures::{Fixtures, SeededEntropy},
    journal::{Journal, Outcome},
    life::Life,
    mistake::Mistake,
    oracle::Oracle,
    rules::{POWER_INTERVAL, PowerWatch, Rules},
    scenario::Scenario,
};

/// 2026-01-01T00:00:00Z: the memory cloud's clock starts here, and ours must too.
const NEW_YEAR: i64 = 1_767_225_600;
/// How many rounds the system has to settle after the last operation.
const ROUNDS: usize = 120;
const ROUND: Duration = Duration::from_secs(10);
/// How often in a row a process may fail to start.
const MAX_FAILED_STARTS: usize = 20;
/// After how many failed starts an operator repairs the mapping file.
const REPAIR_AFTER: usize = 2;

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
    store: MemoryStore,
    entropy: Arc<dyn Entropy>,
    journal: Arc<Journal>,
    oracle: Oracle,
    rules: Rules,
    /// What operators set for each process.
    environments: Vec<Arc<Environment>>,
    mistake: Option<Mistake>,
}

async fn simulate(scenario: &Scenario, mistake: Option<Mistake>) -> Result<Outcome, SetupError> {
    let epoch = DateTime::<Utc>::from_timestamp(NEW_YEAR, 0).unwrap_or_default();
    let right_clock = TokioClock::starting_at(epoch);
    let clock: Arc<dyn Clock> = Arc::new(right_clock);
    let environments = (0..scenario.processes).map(|_| Arc::new(Environment::new(right_clock)));
    let environments: Vec<_> = environments.collect();
    let account = |number: u64| {
        let mut builder = MemoryCloud::builder()
            .seed(scenario.seed.wrapping_add(number << 32))
            .account_id(constants::account_number(number)?)
            .latency(scenario.latency)
            .read_lag(scenario.read_lag)
            .terminated_visible(scenario.terminated_visible);
        for verb in &scenario.unsupported {
            builder = builder.without_verb(*verb);
        }
        Ok::<_, SetupError>(builder.build())
    };
    let cloud = account(0)?;
    let verbs = cloud.provisioner().capabilities().verbs.clone();
    let store = MemoryStore::new(schema::add_all_kinds(Schema::builder()).build()?);
    let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(scenario.seed));
    let fixtures = Fixtures::create(Arc::new(store.clone()), Arc::clone(&entropy)).await?;
    let journal = Arc::new(Journal::new(scenario.seed, &scenario.faults));
    let oracle = Oracle::new(cloud, account(1)?, account(2)?);
    let rules = Rules::new(
        &store,
        oracle.clone(),
        Arc::clone(&journal),
        Arc::clone(&clock),
        Arc::new(fixtures),
        verbs,
        &environments,
    )?;
    let rules = Rules {
        user_data: scenario.user_data,
        ..rules
    };
    let world = World {
        scenario,
        store,
        entropy,
        journal,
        oracle,
        rules,
        environments,
        mistake,
    };
    world.populate_other_account();
    world.run().await;
    Ok(world.journal.outcome())
}

impl World<'_> {
    /// Launches the machines of others in the other account: one has nothing to do with the façade, and
    /// two belong to another façade, whose region has the same name.
    fn populate_other_account(&self) {
        let region = constants::region();
        let server = self.rules.fixtures.server(0).to_string();
        let stranger = uuid::Uuid::from_u128(99).to_string();
        let sets: [&[(&str, &str)]; 3] = [
            &[("owner", "another")],
            &[
                (tags::REGION, region.as_str()),
                (tags::SERVER, &stranger),
                (tags::MACHINE, "1"),
            ],
            &[
                (tags::REGION, region.as_str()),
                (tags::SERVER, &server),
                (tags::MACHINE, "1"),
            ],
        ];
        for set in sets {
            let mut builder = InstanceConfig::builder("debian", "small");
            for (key, value) in set {
                builder = builder.tag(*key, *value);
            }
            // The config is valid, and the account has no limits.
            let launched = builder.build().ok().and_then(|config| {
                let actor = self.oracle.external_actor_elsewhere();
                actor.launch(&config).ok()
            });
            if let Some(info) = launched {
                self.journal.facts(|facts| facts.foreign.insert(info.id));
            }
        }
    }

    /// Runs processes and clients until everything has settled or a rule is broken.
    async fn run(&self) {
        let slots = Slots::new(self.scenario.processes);
        let mut client = Client {
            done: 0,
            expected: Expected::default(),
            oracle: self.oracle.clone(),
            rules: self.rules.clone(),
            fixtures: Arc::clone(&self.rules.fixtures),
            environments: self.environments.clone(),
            retired: BTreeSet::new(),
            journal: Arc::clone(&self.journal),
            rng: SeededRng::for_purpose(self.scenario.seed, 3),
        };
        let clients = async {
            client.run(self.scenario, &slots).await;
            client.end_disruptions(&slots).await;
            self.settle(&client.expected).await;
        };
        let processes = (0..self.scenario.processes).map(|number| self.run_slot(number, &slots));
        tokio::select! {
            biased;
            () = self.journal.wait_for_violation() => {}
            () = clients => {}
            () = self.watch_power(&slots) => {}
            _ = join_all(processes) => {}
        }
    }

    /// Checks that power requests take effect.
    async fn watch_power(&self, slots: &Slots) {
        let mut watch = PowerWatch::default();
        loop {
            sleep(POWER_INTERVAL).await;
            let wrong = |each: &Arc<Environment>| !each.is_right();
            let prevented = slots.is_empty() || self.environments.iter().any(wrong);
            watch.check(&self.rules, prevented).await;
        }
    }

    /// Runs process after process: each one until it crashes.
    async fn run_slot(&self, number: usize, slots: &Slots) {
        let mut failed_starts = 0;
        loop {
            let life = Arc::new(Life::new(number));
            let started = tokio::select! {
                biased;
                () = life.wait_for_end() => None,
                started = self.start(&life) => Some(started),
            };
            match started {
                Some(Ok(process)) => {
                    failed_starts = 0;
                    let process = Arc::new(process);
                    slots.set(number, Some(Arc::clone(&process)));
                    tokio::select! {
                        biased;
                        () = life.wait_for_end() => {}
                        () = process.run() => {}
                    }
                    slots.set(number, None);
                }
                Some(Err(error)) => {
                    failed_starts += 1;
                    self.journal.log(format!("  cannot start: {error}"));
                    if failed_starts > REPAIR_AFTER {
                        let repair = |mapping: &mut MappingFile| mapping.broken = false;
                        self.environments[number].edit_mapping(repair);
                    }
                    if failed_starts == MAX_FAILED_STARTS {
                        let rule = format!("a process cannot start: {error}");
                        self.journal.report_violation(rule);
                    }
                }
                None => {}
            }
            sleep(self.journal.restart(number)).await;
            if slots.is_empty() {
                self.check(&Expected::default()).check_health().await;
            }
        }
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
