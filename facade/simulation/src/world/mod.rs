//! A run: one process after another over a store and a cloud that outlive them.

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
    client::{Client, Promised},
    journal::{Journal, Outcome},
    mistake::Mistake,
    rules::Rules,
    scenario::Scenario,
    town::{Seeded, Town},
    truth::Truth,
};

/// 2026-01-01T00:00:00Z: where the cloud's calendar begins, and so must ours.
const NEW_YEAR: i64 = 1_767_225_600;
/// How long the world has to settle once nobody meddles any more.
const ROUNDS: usize = 120;
const ROUND: Duration = Duration::from_secs(10);

/// Something that cannot happen in a program whose constants are right.
pub type Broken = Box<dyn std::error::Error + Send + Sync>;

/// Runs a scenario from its beginning to its end, with a mistake if one is chosen.
pub fn run(scenario: &Scenario, mistake: Option<Mistake>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let outcome = runtime
        .map_err(Broken::from)
        .and_then(|runtime| runtime.block_on(simulate(scenario, mistake)));
    outcome.unwrap_or_else(|error| Outcome {
        violation: Some(format!("the simulation cannot be run: {error}")),
        ..Outcome::default()
    })
}

/// What outlives the processes.
struct World<'a> {
    scenario: &'a Scenario,
    cloud: MemoryCloud,
    store: MemoryStore,
    entropy: Arc<dyn Entropy>,
    journal: Arc<Journal>,
    truth: Truth,
    rules: Rules,
    clock: Arc<dyn Clock>,
    mistake: Option<Mistake>,
}

async fn simulate(scenario: &Scenario, mistake: Option<Mistake>) -> Result<Outcome, Broken> {
    let epoch = DateTime::<Utc>::from_timestamp(NEW_YEAR, 0).unwrap_or_default();
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
    let mut builder = MemoryCloud::builder()
        .seed(scenario.seed)
        .latency(scenario.latency)
        .read_lag(scenario.window)
        .terminated_visible(scenario.memory);
    for verb in &scenario.without {
        builder = builder.without(*verb);
    }
    let cloud = builder.build();
    let verbs = cloud.provisioner().capabilities().verbs.clone();
    let store = MemoryStore::new(schema::add_all_kinds(Schema::builder()).build()?);
    let entropy: Arc<dyn Entropy> = Arc::new(Seeded::new(scenario.seed));
    let town = Town::found(Arc::new(store.clone()), Arc::clone(&entropy)).await?;
    let journal = Arc::new(Journal::new(scenario.seed, &scenario.faults));
    let truth = Truth::new(cloud.clone());
    let rules = Rules::new(
        &store,
        truth.clone(),
        Arc::clone(&journal),
        Arc::clone(&clock),
        Arc::new(town),
        verbs,
    )?;
    let world = World {
        scenario,
        cloud,
        store,
        entropy,
        journal,
        truth,
        rules,
        clock,
        mistake,
    };
    world.live().await?;
    Ok(world.journal.outcome())
}

impl World<'_> {
    async fn live(&self) -> Result<(), Broken> {
        let mut client = Client {
            done: 0,
            promised: Promised::default(),
            truth: self.truth.clone(),
            rules: self.rules.clone(),
            town: Arc::clone(&self.rules.town),
            journal: Arc::clone(&self.journal),
            dice: SeededRng::for_purpose(self.scenario.seed, 3),
        };
        loop {
            let settled = tokio::select! {
                biased;
                () = self.journal.death() => false,
                settled = self.process(&mut client) => { settled?; true }
            };
            if settled || self.journal.is_violated() {
                return Ok(());
            }
            sleep(self.journal.revive()).await;
            self.check(&client.promised).status().await;
        }
    }

    /// One process, from its start until the world has settled.
    async fn process(&self, client: &mut Client) -> Result<(), Broken> {
        let process = self.open().await?;
        let story = async {
            client.ask(self.scenario, &process).await;
            client.relent(&process).await;
            self.settle(&client.promised).await;
        };
        tokio::select! {
            biased;
            () = story => {}
            () = process.run() => {}
        }
        Ok(())
    }

    /// Waits until everything is as it was asked for, twice in a row.
    async fn settle(&self, promised: &Promised) {
        let mut last = Ok(());
        let mut in_a_row = 0;
        for _ in 0..ROUNDS {
            sleep(ROUND).await;
            let check = self.check(promised);
            check.status().await;
            last = check.settled().await;
            in_a_row = if last.is_ok() { in_a_row + 1 } else { 0 };
            if in_a_row == 2 {
                return;
            }
        }
        if let Err(problem) = last {
            self.journal.violated(format!("never settled: {problem}"));
        }
    }

    fn check<'c>(&'c self, promised: &'c Promised) -> Check<'c> {
        Check {
            rules: &self.rules,
            promised,
            retags: self.rules.verbs.contains(&OptionalVerb::UpdateTags),
        }
    }
}
