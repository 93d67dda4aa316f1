//! The engine of the emulated region: instances, their volumes and interfaces, and time.
//!
//! Owns the true state. Everything here is synchronous; the wire handles requests, faults and lost
//! responses. Transitions are events in a queue. The next call processes those that are due, so
//! nothing runs in the background, and the cost of a call does not grow with the fleet.
//!
//! | file | purpose |
//! | --- | --- |
//! | `record` | an instance and the versions that a lagging read may still return |
//! | `launch`, `plan`, `token` | launching, the checked plan of a launch, client tokens |
//! | `power`, `transition` | stop, start, reboot, terminate; the begin and the end of a transition |
//! | `change`, `tags`, `tag_list` | attributes, tags, the list of tags |
//! | `network`, `rule`, `key`, `address` | VPCs, subnets, security groups and their rules, key pairs, elastic addresses |
//! | `table` | resources that are found by their ids |
//! | `spot`, `volume` | requests for spot instances; what clients do with volumes |
//! | `storage`, `image`, `snapshot` | volumes and network interfaces; images created from instances, and their data |
//! | `read`, `filter`, `attributes` | describing |
//! | `limits`, `permission` | capacity and quota; permissions that depend on tags |
//! | `ids` | ids |
//! | `external_action` | external actions on the account, which bypass the wire |

pub(crate) mod address;
mod attributes;
pub(crate) mod change;
pub(crate) mod external_action;
pub(crate) mod filter;
mod ids;
pub(crate) mod image;
#[cfg(test)]
mod invariants;
pub(crate) mod key;
pub(crate) mod launch;
mod limits;
pub(crate) mod network;
mod permission;
mod plan;
mod power;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod rule;
pub(crate) mod snapshot;
pub(crate) mod spot;
pub(crate) mod storage;
pub(crate) mod table;
pub(crate) mod tag_list;
pub(crate) mod tags;
mod token;
mod transition;
pub(crate) mod volume;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, SecondsFormat, SubsecRound as _, Utc};
use fleetwright_chaos::Clock;

use super::{error::Refusal, knobs::Knobs};
use crate::cloud::{self, address_pool::AddressPool, engine::EngineCore, records::Records};
pub(crate) use crate::cloud::{index::Seq, lag::ReadLag, page};
use address::Address;
use ids::ResourceIds;
use image::ImageRecord;
use network::Network;
use record::{Instance, Version};
use snapshot::SnapshotRecord;
use spot::SpotRequest;
use storage::{Nic, Volume};
use table::Table;
use token::{TokenEntry, TokenKey};

/// The state of one account in one region.
#[derive(Debug)]
pub struct Engine {
    /// Knobs, clock, schedule, random numbers and usage, which every cloud has.
    pub(crate) core: EngineCore<Knobs, Event>,
    /// Generates ids and hardware addresses.
    ids: ResourceIds,
    /// All instances; terminated ones until they are no longer described.
    pub(crate) instances: Records<Instance>,
    /// The instances by id.
    by_id: HashMap<String, Seq>,
    /// The client tokens that are remembered.
    tokens: HashMap<TokenKey, TokenEntry>,
    /// All volumes.
    pub(crate) volumes: BTreeMap<Seq, Volume>,
    /// The volumes by id.
    volume_ids: HashMap<String, Seq>,
    /// The client tokens of created volumes, each with a digest of the parameters and the volume.
    volume_tokens: HashMap<String, (uuid::Uuid, String)>,
    /// All network interfaces.
    pub(crate) nics: BTreeMap<Seq, Nic>,
    /// The network interfaces by id.
    nic_ids: HashMap<String, Seq>,
    /// All images, those of the catalog first.
    pub(crate) images: BTreeMap<Seq, ImageRecord>,
    /// The images by id.
    image_ids: HashMap<String, Seq>,
    /// The images that were deregistered, and when.
    deregistered_images: BTreeMap<Seq, (Duration, ImageRecord)>,
    /// The snapshots of the images that were created from instances.
    pub(crate) snapshots: BTreeMap<Seq, SnapshotRecord>,
    /// The snapshots by id.
    snapshot_ids: HashMap<String, Seq>,
    /// VPCs, subnets, groups and keys.
    pub(crate) network: Network,
    /// Elastic addresses.
    pub(crate) addresses: Table<Address>,
    /// Requests for spot instances.
    pub(crate) spot_requests: Table<SpotRequest>,
    /// The private addresses, by subnet.
    subnet_pools: BTreeMap<String, AddressPool>,
}

/// An event in the schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The end of a transition. It is ignored if another transition, with a higher number, has
    /// begun since.
    FinishTransition(Seq, u64),
    /// No lagging read can return an old version of an instance any longer.
    Prune(Seq),
    /// A terminated instance is no longer described.
    Remove(Seq),
    /// A spent token expires.
    Forget(TokenKey),
}

/// Whether a call is executed or is a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The call is executed.
    Execute,
    /// Only checks whether the call would succeed.
    DryRun,
}

impl Mode {
    /// Ends a dry run: EC2 reports its success as the refusal `DryRunOperation`.
    pub(crate) fn check_dry_run(self) -> Result<(), Refusal> {
        match self {
            Self::Execute => Ok(()),
            Self::DryRun => Err(Refusal::dry_run()),
        }
    }
}

impl cloud::CloudEngine for Engine {
    type Knobs = Knobs;

    fn new(knobs: Knobs, clock: Arc<dyn Clock>) -> Self {
        let seed = knobs.seed;
        let mut engine = Self {
            ids: ResourceIds::new(seed),
            instances: Records::default(),
            by_id: HashMap::new(),
            tokens: HashMap::new(),
            volumes: BTreeMap::new(),
            volume_ids: HashMap::new(),
            volume_tokens: HashMap::new(),
            nics: BTreeMap::new(),
            nic_ids: HashMap::new(),
            images: BTreeMap::new(),
            image_ids: HashMap::new(),
            deregistered_images: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            snapshot_ids: HashMap::new(),
            subnet_pools: BTreeMap::new(),
            network: Network::default(),
            addresses: Table::default(),
            spot_requests: Table::default(),
            core: EngineCore::new(knobs, clock),
        };
        engine.load_catalog_images();
        engine.load_catalog_networks(None);
        engine
    }

    fn set_knobs(&mut self, knobs: Knobs) {
        let old = std::mem::replace(&mut self.core.knobs, knobs);
        self.load_catalog_images();
        self.load_catalog_networks(Some(&old));
    }

    fn catch_up(&mut self) {
        while let Some(event) = self.core.schedule.due() {
            self.handle_event(event);
        }
    }

    fn knobs(&self) -> &Knobs {
        &self.core.knobs
    }

    fn request_id(&mut self) -> String {
        self.core.request_id()
    }
}

impl Engine {
    /// Handles an event that is due.
    fn handle_event(&mut self, event: Event) {
        match event {
            Event::FinishTransition(seq, transition) => self.finish_transition(seq, transition),
            Event::Prune(seq) => self.prune(seq),
            Event::Remove(seq) => self.remove_expired(seq),
            Event::Forget(key) => self.forget(&key),
        }
    }

    /// Schedules an event.
    fn after(&mut self, delay: Duration, event: Event) {
        self.core.schedule.after(delay, event);
    }

    /// Returns a new sequence number. Lists return resources in this order.
    const fn next_seq(&mut self) -> Seq {
        self.core.next_seq()
    }

    /// Returns the calendar date at a time.
    pub(crate) fn date(&self, moment: Duration) -> DateTime<Utc> {
        self.core.date(moment)
    }

    /// Returns a time as EC2 writes it: RFC 3339 in UTC, in whole seconds with three zeros.
    pub(crate) fn stamp(&self, moment: Duration) -> String {
        self.date(moment)
            .trunc_subsecs(0)
            .to_rfc3339_opts(SecondsFormat::Millis, true)
    }

    /// Returns the current time, since the start of the emulator.
    pub(crate) const fn now(&self) -> Duration {
        self.core.now()
    }

    /// Adds a version to an instance. The old one stays readable for the knob `lag.reads`.
    fn revise(&mut self, seq: Seq, change: impl FnOnce(&mut Version)) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        if self.instances.revise(seq, (now, window), change) {
            self.after(window, Event::Prune(seq));
        }
    }

    /// Drops the versions of an instance that no lagging read can return any longer.
    fn prune(&mut self, seq: Seq) {
        let oldest = self.now().saturating_sub(self.core.knobs.lag.reads);
        self.instances.prune(seq, oldest);
    }

    /// Removes the record of a terminated instance. Its id does not exist from then on.
    fn remove_expired(&mut self, seq: Seq) {
        if let Some(instance) = self.instances.remove(seq) {
            self.by_id.remove(&instance.fixed.id);
        }
    }

    /// Finds the instances that a call changes, each once.
    ///
    /// # Errors
    ///
    /// `InvalidInstanceID.Malformed` or `InvalidInstanceID.NotFound` if any id is wrong or
    /// missing. A new instance that the knob `lag` hides counts as missing.
    pub(crate) fn find(&mut self, ids: &[String]) -> Result<Vec<Seq>, Refusal> {
        read::check_ids(ids, "i", "InvalidInstanceID.Malformed")?;
        let now = self.now();
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        // An id that is given twice is one instance.
        let mut named = BTreeSet::new();
        for id in ids.iter().filter(|id| named.insert(id.as_str())) {
            self.core.records_read += 1;
            let seq = self.by_id.get(id).copied();
            let instance = seq.and_then(|seq| self.instances.get(&seq));
            match instance {
                Some(instance)
                    if !self.core.knobs.lag.hides(
                        instance.versions.created_at(),
                        now,
                        &mut self.core.rng,
                    ) =>
                {
                    found.push(instance.seq);
                }
                Some(_) | None => missing.push(id.as_str()),
            }
        }
        if missing.is_empty() {
            return Ok(found);
        }
        Err(Refusal::not_found(
            "InvalidInstanceID.NotFound",
            "instance",
            &missing,
        ))
    }
}
