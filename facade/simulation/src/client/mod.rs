//! The clients of the façade: tenants, operators and external actors. They outlive the processes.

mod external;
mod image;
mod operator;
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
use fleetwright_facade_testkit::error_chain;
use fleetwright_region::{
    ids::{ImageId, NetworkId},
    server::Power,
};
use tokio::time::sleep;

use crate::{
    constants,
    environment::{Environment, MappingFile},
    fixtures::Fixtures,
    journal::Journal,
    oracle::Oracle,
    rules::Rules,
    scenario::{Op, Scenario},
    world::{Process, Slots},
};

/// The delay before a request is sent again.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long a pause takes.
const PAUSE: Duration = Duration::from_secs(300);
/// How often a request is sent.
const MAX_TRIES: usize = 20;

/// What tenants may expect after their accepted requests.
#[derive(Debug, Default)]
pub struct Expected {
    /// The accepted instances, as they were last requested.
    pub live: BTreeMap<InstanceId, (InstanceSpec, Power)>,
    /// Networks whose deletion was accepted.
    pub deleted_networks: BTreeSet<NetworkId>,
    /// Images that were accepted, with the slot of the instance that they were created from.
    pub images: BTreeMap<ImageId, usize>,
    /// Images whose deletion was accepted.
    pub deleted_images: BTreeSet<ImageId>,
}

/// Runs the operations of a scenario.
#[derive(Debug)]
pub struct Client {
    /// How many operations are done.
    pub done: usize,
    /// What must come true.
    pub expected: Expected,
    /// The cloud's real state.
    pub oracle: Oracle,
    /// The records as they are stored.
    pub rules: Rules,
    /// The networks and other dependencies of instances.
    pub fixtures: Arc<Fixtures>,
    /// What operators set for each process.
    pub environments: Vec<Arc<Environment>>,
    /// The entries that are missing in the catalog file.
    pub retired: BTreeSet<&'static str>,
    /// Where operations are logged.
    pub journal: Arc<Journal>,
    /// The source of its random choices.
    pub rng: SeededRng,
}

/// The result of an operation.
enum OpResult {
    /// It succeeded, or the client gives up.
    Done,
    /// The outcome is unknown, or the request may succeed later: send it again.
    Retry,
}

impl Client {
    /// Runs the remaining operations of a scenario. A request whose process crashes is sent again, to
    /// whichever process runs then.
    pub async fn run(&mut self, scenario: &Scenario, slots: &Slots) {
        while let Some((gap, op)) = scenario.ops.get(self.done).copied() {
            sleep(gap).await;
            self.journal.log(format!("{op:?}"));
            self.repeat(op, slots).await;
            self.done += 1;
        }
    }

    /// Ends all disruptions: every zone, all capacity and every flavor are available again, and every
    /// process has the right credentials, mapping and clock.
    pub async fn end_disruptions(&mut self, slots: &Slots) {
        self.recover();
        self.correct_environments();
        self.repeat(Op::CorrectMapping(None), slots).await;
        self.repeat(Op::OfferFlavor, slots).await;
    }

    /// Sends a request until its result is known.
    async fn repeat(&mut self, op: Op, slots: &Slots) {
        let mut tries = 0;
        while tries < MAX_TRIES {
            let process = slots.any(&mut self.rng).await;
            let result = tokio::select! {
                biased;
                () = process.life.wait_for_end() => None,
                result = self.run_op(op, &process, slots) => Some(result),
            };
            match result {
                Some(OpResult::Done) => return,
                Some(OpResult::Retry) => {
                    tries += 1;
                    sleep(RETRY_DELAY).await;
                }
                None => {
                    // The process crashed.
                    self.journal.facts(|facts| facts.pending_update = None);
                    sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    async fn run_op(&mut self, op: Op, process: &Process, slots: &Slots) -> OpResult {
        match op {
            Op::Create(slot) => self.create(process, slot).await,
            Op::CreateAllAtOnce => self.create_all_at_once(process).await,
            Op::Update(slot, change, mode) => self.update(process, slot, change, mode).await,
            Op::Race(slot) => self.race(process, slot).await,
            Op::Stop(slot) => self.power(process, slot, Power::Stopped).await,
            Op::Start(slot) => self.power(process, slot, Power::Running).await,
            Op::Reboot(slot) => self.reboot(process, slot).await,
            Op::Replace(slot) => self.replace(process, slot).await,
            Op::Delete(slot) => self.delete(process, slot).await,
            Op::Snapshot(slot) => self.snapshot(process, slot).await,
            Op::DeleteImage(slot) => self.delete_image(process, slot).await,
            Op::ReadKeyAndConsole(slot) => self.read_key_and_console(process, slot).await,
            Op::Probe(slot) => self.probe(process, slot).await,
            Op::DeleteNetwork(network) => self.delete_network(process, network).await,
            Op::RetireFlavor => {
                self.retired.insert(constants::RETIRED_FLAVOR);
                self.load_catalog(process).await
            }
            Op::RetireEntry(name) => {
                self.retired.insert(name);
                self.load_catalog(process).await
            }
            Op::OfferFlavor => {
                self.retired.clear();
                self.load_catalog(process).await
            }
            Op::KeepCatalog(process, keeps) => self.keep_catalog(process, keeps),
            Op::OperatorDeletesNetwork(network) => {
                self.delete_unused_network(process, network).await
            }
            Op::SetCredentials(process, credentials) => {
                self.set_credentials(process, credentials).await
            }
            Op::SetClock(process, seconds) => self.set_clock(process, seconds),
            Op::CorrectClock(process) => self.correct_clock(process),
            Op::RemoveMapping(process, entry) => {
                let edit = |mapping: &mut MappingFile| mapping.missing.extend([entry]);
                self.load_mapping(process, slots, edit)
            }
            Op::RenameMapping(process, entry) => {
                let edit = |mapping: &mut MappingFile| mapping.renamed.extend([entry]);
                self.load_mapping(process, slots, edit)
            }
            Op::BreakMapping(process) => {
                self.load_mapping(process, slots, |mapping| mapping.broken = true)
            }
            Op::CorrectMapping(process) => {
                self.load_mapping(process, slots, |mapping| *mapping = MappingFile::default())
            }
            Op::DeleteServer(slot) => self.delete_server(process, slot).await,
            Op::Pause => {
                sleep(PAUSE).await;
                OpResult::Done
            }
            Op::ExternalStop(_)
            | Op::ExternalStart(_)
            | Op::ExternalTerminate(_)
            | Op::ExternalRetag(_)
            | Op::ForeignWithServerTag(_)
            | Op::Orphan
            | Op::Foreign
            | Op::FailBoots(_)
            | Op::Capacity(_)
            | Op::DisconnectZone
            | Op::TerminateAll
            | Op::DeleteSubnet(_)
            | Op::WithdrawType(_)
            | Op::Recover => {
                self.act_externally(op).await;
                OpResult::Done
            }
        }
    }

    /// Decides whether a failed request is sent again: yes if it may have taken effect or may
    /// succeed later.
    fn after_error(&self, error: &ComputeError) -> OpResult {
        self.journal.log(format!("  {error}"));
        match error.meaning() {
            Meaning::Unavailable => OpResult::Retry,
            Meaning::Internal => {
                self.journal.report_violation(format!(
                    "a call failed with an internal error: {}",
                    error_chain(error)
                ));
                OpResult::Done
            }
            Meaning::Conflict if matches!(error, ComputeError::NameDeleting { .. }) => {
                OpResult::Retry
            }
            Meaning::InvalidRequest
            | Meaning::Forbidden
            | Meaning::NotFound
            | Meaning::Conflict
            | Meaning::Unprocessable
            | Meaning::NotOffered => OpResult::Done,
        }
    }
}
