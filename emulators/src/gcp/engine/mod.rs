//! The engine of the emulated cloud: instances, disks, images, operations, and time.
//!
//! Owns the true state. Everything here is synchronous; the wire handles requests, faults and lost
//! responses. Steps are events in a queue. The next call processes those that are due, so nothing
//! runs in the background, and the cost of a call does not grow with the fleet.
//!
//! | file | purpose |
//! | --- | --- |
//! | `record` | an instance and the versions that a lagging read may still return |
//! | `spec`, `insert`, `bulk` | the parsed parameters; creating one instance, or many |
//! | `power`, `transition` | stop, start, reset, suspend, resume, delete; the begin and the end of a step |
//! | `change` | labels, metadata, machine type |
//! | `operation`, `request` | operations, and repeated requests |
//! | `disk`, `image` | disks and images |
//! | `read` | reads |
//! | `limits` | capacity, quota, addresses |
//! | `filtered_lists` | the quota of lists with a filter |
//! | `rules` | the rules of labels and metadata, and their fingerprints |
//! | `external_action` | external actions on a project, which bypass the wire |

pub(crate) mod bulk;
mod change;
pub(crate) mod disk;
pub(crate) mod external_action;
mod external_resources;
mod filtered_lists;
pub(crate) mod image;
mod insert;
mod limits;
pub(crate) mod operation;
mod power;
pub(crate) mod read;
pub(crate) mod record;
mod request;
pub(crate) mod rules;
pub(crate) mod spec;
mod transition;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, FixedOffset, SecondsFormat, TimeDelta, Utc};
use fleetwright_chaos::Clock;

use super::knobs::Knobs;
use crate::cloud::{
    self,
    address_pool::AddressPool,
    engine::EngineCore,
    ids::IdGenerator,
    index::{Index, Seq},
    records::Records,
};
use disk::Disk;
use filtered_lists::FilteredLists;
use image::ImageRecord;
use operation::{Operation, OperationKey};
use record::{Instance, Version};
use request::{Remembered, RequestKey};

/// Project, zone and name of a zonal resource.
pub(crate) type Address = (String, String, String);

/// The true state of all projects.
#[derive(Debug)]
pub struct Engine {
    /// Knobs, clock, schedule, random numbers and usage, which every cloud has.
    pub(crate) core: EngineCore<Knobs, Event>,
    /// Generates numeric ids.
    ids: IdGenerator,
    /// All instances, deleted ones until no lagging read can return them.
    pub(crate) instances: Records<Instance>,
    /// The instances that had a name, the newest last.
    by_name: HashMap<Address, Vec<Seq>>,
    /// All disks.
    pub(crate) disks: BTreeMap<Seq, Disk>,
    /// The disks by project, zone and name.
    disk_names: HashMap<Address, Seq>,
    /// All images, those of the catalog first.
    pub(crate) images: BTreeMap<Seq, ImageRecord>,
    /// All operations that have not expired.
    pub(crate) operations: BTreeMap<Seq, Operation>,
    /// The operations by name.
    operation_names: HashMap<String, Seq>,
    /// The operations by scope and target, for lists.
    operation_index: Index<OperationKey>,
    /// The request ids that are remembered.
    requests: HashMap<RequestKey, Remembered>,
    /// The internal addresses, by region and subnetwork.
    pools: BTreeMap<(String, String), AddressPool>,
    /// What the filtered lists of each project have read in the current minute.
    filtered_lists: FilteredLists,
}

/// An event in the schedule. The next call handles those that are due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// An operation changes from `PENDING` to `RUNNING`.
    Begin(Seq),
    /// An operation does its work and becomes `DONE`.
    Finish(Seq),
    /// The end of an instance's step. It is ignored if another step, with a higher number, has
    /// begun since.
    FinishStep(Seq, u64),
    /// No lagging read can return an old version of an instance any longer.
    Prune(Seq),
    /// No lagging read can return a deleted instance any longer.
    Remove(Seq),
    /// An operation expires.
    Forget(Seq),
    /// A request id expires.
    ForgetRequest(RequestKey),
}

impl cloud::CloudEngine for Engine {
    type Knobs = Knobs;

    fn new(knobs: Knobs, clock: Arc<dyn Clock>) -> Self {
        let seed = knobs.seed;
        let mut engine = Self {
            ids: IdGenerator::new(seed),
            instances: Records::default(),
            by_name: HashMap::new(),
            disks: BTreeMap::new(),
            disk_names: HashMap::new(),
            images: BTreeMap::new(),
            operations: BTreeMap::new(),
            operation_names: HashMap::new(),
            operation_index: Index::default(),
            requests: HashMap::new(),
            pools: BTreeMap::new(),
            filtered_lists: FilteredLists::default(),
            core: EngineCore::new(knobs, clock),
        };
        engine.load_catalog_images();
        engine
    }

    fn set_knobs(&mut self, knobs: Knobs) {
        self.core.knobs = knobs;
        self.load_catalog_images();
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
            Event::Begin(seq) => self.begin_operation(seq),
            Event::Finish(seq) => self.finish_work(seq),
            Event::FinishStep(seq, step) => self.finish_step(seq, step),
            Event::Prune(seq) => self.prune(seq),
            Event::Remove(seq) => self.remove_expired(seq),
            Event::Forget(seq) => self.forget_operation(seq),
            Event::ForgetRequest(key) => self.forget_request(&key),
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

    /// Returns a new resource id, which never repeats.
    fn next_id(&mut self) -> u64 {
        self.ids.number()
    }

    /// Returns the current time, since the start of the emulator.
    pub(crate) const fn now(&self) -> Duration {
        self.core.now()
    }

    /// Returns a time on the cloud's own calendar, which the knob `clock_behind` shifts.
    pub(crate) fn calendar(&self, moment: Duration) -> DateTime<Utc> {
        let date = self.core.date(moment);
        let behind = TimeDelta::from_std(self.core.knobs.clock_behind).unwrap_or(TimeDelta::MAX);
        date.checked_sub_signed(behind)
            .unwrap_or(DateTime::<Utc>::MIN_UTC)
    }

    /// Returns a time as Compute Engine writes it: RFC 3339 with milliseconds, at the fixed offset
    /// of -08:00.
    pub(crate) fn stamp(&self, moment: Duration) -> String {
        let date = self.calendar(moment);
        match FixedOffset::west_opt(8 * 3600) {
            Some(home) => date
                .with_timezone(&home)
                .to_rfc3339_opts(SecondsFormat::Millis, false),
            None => date.to_rfc3339_opts(SecondsFormat::Millis, true),
        }
    }

    /// Returns a time in milliseconds since 1970.
    fn unix_millis(&self, moment: Duration) -> i64 {
        self.calendar(moment).timestamp_millis()
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

    /// Removes a deleted instance for good.
    fn remove_expired(&mut self, seq: Seq) {
        let Some(instance) = self.instances.remove(seq) else {
            return;
        };
        let address = instance.fixed.address();
        if let Some(seqs) = self.by_name.get_mut(&address) {
            seqs.retain(|other| *other != seq);
            if seqs.is_empty() {
                self.by_name.remove(&address);
            }
        }
    }
}
