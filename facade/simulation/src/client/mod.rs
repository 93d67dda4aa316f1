//! Whoever asks for instances, and all those who meddle. They outlive the processes, as people do.

mod meddle;
mod probe;
mod race;
mod tenant;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fleetwright_chaos::SeededRng;
use fleetwright_compute::{
    ComputeError, Meaning,
    instance::{InstanceId, InstanceSpec},
};
use fleetwright_region::{
    ids::{ImageId, NetworkId},
    server::Power,
};
use tokio::time::sleep;

use crate::{
    journal::Journal,
    rules::Rules,
    scenario::{Op, Scenario},
    town::Town,
    truth::Truth,
    world::Process,
};

/// How long a wish that could not be taken down waits.
const AGAIN: Duration = Duration::from_secs(1);
/// How often a wish that is to come later is asked for again.
const PATIENCE: usize = 20;

/// What tenants were told that they would get: what everything must come to.
#[derive(Debug, Default)]
pub struct Promised {
    /// The instances that were accepted, as they were last asked for.
    pub live: BTreeMap<InstanceId, (InstanceSpec, Power)>,
    /// Networks that were asked to go.
    pub condemned: BTreeSet<NetworkId>,
    /// Images that are to be made.
    pub images: BTreeSet<ImageId>,
}

/// Goes through a scenario.
#[derive(Debug)]
pub struct Client {
    /// How far it is.
    pub done: usize,
    /// What was accepted.
    pub promised: Promised,
    /// The cloud, past every handle.
    pub truth: Truth,
    /// The records as they are.
    pub rules: Rules,
    /// What stands where.
    pub town: Arc<Town>,
    /// Where it is told.
    pub journal: Arc<Journal>,
    /// Its own chance.
    pub dice: SeededRng,
}

/// What comes of an operation.
enum Asked {
    /// It is done, or nobody insists.
    Over,
    /// Nobody knows, or not now: the same again.
    Again,
}

impl Client {
    /// Asks for everything that is left of a scenario, through the services of a process.
    pub async fn ask(&mut self, scenario: &Scenario, process: &Process) {
        while let Some((gap, op)) = scenario.ops.get(self.done).copied() {
            sleep(gap).await;
            self.journal.tell(&format!("{op:?}"));
            for _ in 0..PATIENCE {
                match self.one(op, process).await {
                    Asked::Over => break,
                    Asked::Again => sleep(AGAIN).await,
                }
            }
            self.done += 1;
        }
    }

    /// The end of the troubles: everything can be had again.
    pub async fn relent(&mut self, process: &Process) {
        self.recover();
        for _ in 0..PATIENCE {
            match self.load(process, true).await {
                Asked::Over => return,
                Asked::Again => sleep(AGAIN).await,
            }
        }
    }

    async fn one(&mut self, op: Op, process: &Process) -> Asked {
        match op {
            Op::Create(slot) => self.create(process, slot).await,
            Op::Crowd => self.crowd(process).await,
            Op::Update(slot, change, word) => self.update(process, slot, change, word).await,
            Op::Race(slot) => self.race(process, slot).await,
            Op::Stop(slot) => self.power(process, slot, Power::Stopped).await,
            Op::Start(slot) => self.power(process, slot, Power::Running).await,
            Op::Reboot(slot) => self.reboot(process, slot).await,
            Op::Replace(slot) => self.replace(process, slot).await,
            Op::Delete(slot) => self.delete(process, slot).await,
            Op::Snapshot(slot) => self.snapshot(process, slot).await,
            Op::Look(slot) => self.look(process, slot).await,
            Op::Probe(slot) => self.probe(process, slot).await,
            Op::Condemn(network) => self.condemn(process, network).await,
            Op::Retire => self.load(process, false).await,
            Op::Offer => self.load(process, true).await,
            Op::Order(slot) => self.order(process, slot).await,
            Op::OutsideStop(_)
            | Op::OutsideStart(_)
            | Op::OutsideTerminate(_)
            | Op::OutsideRetag(_)
            | Op::Decoy(_)
            | Op::Orphan
            | Op::Foreign
            | Op::Doom(_)
            | Op::Capacity(_)
            | Op::CutOff
            | Op::Recover => {
                self.meddle(op).await;
                Asked::Over
            }
        }
    }

    /// What an error leads to: what may have been done, or can be done later, is asked for again.
    fn judged(&self, error: &ComputeError) -> Asked {
        self.journal.tell(&format!("  {error}"));
        match error.meaning() {
            Meaning::Unavailable => Asked::Again,
            Meaning::Internal => {
                self.journal
                    .violated(format!("a call failed inside: {}", whole(error)));
                Asked::Over
            }
            Meaning::Conflict if matches!(error, ComputeError::NameGoing { .. }) => Asked::Again,
            Meaning::InvalidRequest
            | Meaning::Forbidden
            | Meaning::NotFound
            | Meaning::Conflict
            | Meaning::Unprocessable
            | Meaning::NotOffered => Asked::Over,
        }
    }
}

/// An error with all its causes.
fn whole(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", whole(cause)),
        None => error.to_string(),
    }
}
