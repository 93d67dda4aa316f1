//! A run: one process after another over a store and a cloud that outlive them.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::InstanceProvisioner;
use fleetwright_chaos::Dice;
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    clock::{Clock, TokioClock},
    controller::{self, Controller},
    monitor::{Limit, Monitor, Policy, Sweep},
    mutant::{Chosen, Mutant},
    schema,
    secret::SshKeys,
    server::{Anywhere, Servers},
};
use fleetwright_store::{MemoryStore, Schema, Store};
use tokio::time::sleep;

use crate::{
    check::Check,
    client::Client,
    cloud::FaultyCloud,
    ledger::{Ledger, Outcome},
    names,
    rules::{BACKOFF, Rules},
    scenario::Scenario,
    store::{Actor, FaultyStore},
    truth::Truth,
};

/// 2026-01-01T00:00:00Z: where the cloud's calendar begins, and so must ours.
const NEW_YEAR: i64 = 1_767_225_600;
/// How long the world has to settle once nobody meddles any more.
const ROUNDS: usize = 120;
const ROUND: Duration = Duration::from_secs(10);

/// Something that cannot happen in a program whose constants are right.
type Broken = Box<dyn std::error::Error + Send + Sync>;

/// Runs a scenario from its beginning to its end, with a mistake if one is chosen.
pub fn run(scenario: &Scenario, mutant: Option<Mutant>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let outcome = runtime
        .map_err(Broken::from)
        .and_then(|runtime| runtime.block_on(simulate(scenario, mutant)));
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
    ledger: Arc<Ledger>,
    truth: Truth,
    rules: Rules,
    clock: Arc<dyn Clock>,
    chosen: Chosen,
}

async fn simulate(scenario: &Scenario, mutant: Option<Mutant>) -> Result<Outcome, Broken> {
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
    let store = MemoryStore::new(schema::add_kinds(Schema::builder()).build()?);
    let ledger = Arc::new(Ledger::new(scenario.seed, &scenario.faults));
    let truth = Truth::new(cloud.clone());
    let rules = Rules::new(
        &store,
        truth.clone(),
        Arc::clone(&ledger),
        Arc::clone(&clock),
    )?;
    let world = World {
        scenario,
        cloud,
        store,
        ledger,
        truth,
        rules,
        clock,
        chosen: mutant.map_or_else(Chosen::default, Chosen::new),
    };
    world.live().await?;
    Ok(world.ledger.outcome())
}

impl World<'_> {
    async fn live(&self) -> Result<(), Broken> {
        let mut client = Client {
            done: 0,
            who: names::client()?,
            truth: self.truth.clone(),
            rules: self.rules.clone(),
            ledger: Arc::clone(&self.ledger),
            dice: Dice::for_purpose(self.scenario.seed, 3),
        };
        loop {
            let settled = tokio::select! {
                biased;
                () = self.ledger.death() => false,
                settled = self.process(&mut client) => { settled?; true }
            };
            if settled || self.ledger.is_violated() {
                return Ok(());
            }
            sleep(self.ledger.revive()).await;
            self.check().status().await;
        }
    }

    /// One process, from its start until the world has settled.
    async fn process(&self, client: &mut Client) -> Result<(), Broken> {
        let (controller, monitor, servers) = (self.controller()?, self.monitor()?, self.servers()?);
        let story = async {
            client.ask(self.scenario, &servers).await;
            client.recover();
            self.settle().await;
        };
        tokio::select! {
            biased;
            () = story => {}
            () = controller.run() => {}
            () = monitor.run() => {}
        }
        Ok(())
    }

    /// Waits until everything is as it was asked for, twice in a row.
    async fn settle(&self) {
        let mut last = Ok(());
        let mut in_a_row = 0;
        for _ in 0..ROUNDS {
            sleep(ROUND).await;
            self.check().status().await;
            last = self.check().settled().await;
            in_a_row = if last.is_ok() { in_a_row + 1 } else { 0 };
            if in_a_row == 2 {
                return;
            }
        }
        if let Err(problem) = last {
            self.ledger.violated(format!("never settled: {problem}"));
        }
    }

    fn check(&self) -> Check<'_> {
        Check {
            rules: &self.rules,
            store: &self.store,
            retags: !self
                .scenario
                .without
                .contains(&fleetwright::OptionalVerb::UpdateTags),
        }
    }

    fn store(&self, actor: Actor) -> Arc<dyn Store> {
        Arc::new(FaultyStore {
            actor,
            inner: self.store.clone(),
            ledger: Arc::clone(&self.ledger),
            truth: self.truth.clone(),
        })
    }

    fn handle(&self, actor: Actor) -> Arc<dyn InstanceProvisioner> {
        Arc::new(FaultyCloud {
            actor,
            inner: Arc::new(self.cloud.provisioner()),
            ledger: Arc::clone(&self.ledger),
            truth: self.truth.clone(),
            rules: self.rules.clone(),
            clock: Arc::clone(&self.clock),
        })
    }

    fn servers(&self) -> Result<Servers, Broken> {
        let (store, clock) = (self.store(Actor::Service), Arc::clone(&self.clock));
        let servers = Servers::new(store, clock, Arc::new(Anywhere), SshKeys::Without)?;
        let verbs = self.handle(Actor::Service).capabilities().verbs.clone();
        Ok(servers.with_region(names::region(), verbs))
    }

    fn controller(&self) -> Result<Controller, Broken> {
        let mut rules = controller::Rules::default();
        rules.boot_patience = Duration::from_secs(120);
        rules.end_patience = Duration::from_secs(30);
        rules.first_backoff = BACKOFF;
        rules.max_backoff = Duration::from_secs(20);
        rules.refused_backoff = Duration::from_secs(30);
        rules.chosen = self.chosen;
        let controller = Controller::new(
            names::region(),
            self.store(Actor::Controller),
            self.handle(Actor::Controller),
            Arc::new(names::Planner),
            Arc::clone(&self.clock),
        )?;
        Ok(controller.with_rules(rules))
    }

    fn monitor(&self) -> Result<Monitor, Broken> {
        let mut policy = Policy::default();
        policy.tick = Duration::from_secs(2);
        policy.stuck_after = Duration::from_secs(60);
        policy.orphan_age = Duration::from_secs(30);
        policy.sweep = Sweep::Destroy;
        policy.limit = Limit::new(12, 50);
        policy.chosen = self.chosen;
        let monitor = Monitor::new(
            names::region(),
            self.store(Actor::Monitor),
            self.handle(Actor::Monitor),
            Arc::clone(&self.clock),
        )?;
        Ok(monitor.with_policy(policy))
    }
}
