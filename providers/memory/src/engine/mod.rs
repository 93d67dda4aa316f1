//! The simulated cloud: instances, their disks, network cards and addresses, and time.
//!
//! Owns the true state. Everything here is synchronous: it never waits, and it knows no faults;
//! those belong to the [wire](crate::wire). Transitions are events in a queue. Every access first
//! runs the events that are due, each at its own time, so the cost of a call does not grow with the
//! number of instances.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `record`, `records` | one instance and the old versions that a stale read may return; all of them by number |
//! | `launch` | launch, launch tokens, `find_launch` |
//! | `power` | stop, start, terminate, reboot |
//! | `change` | tags, type, image |
//! | `console` | console output and sessions, images |
//! | `read` | describe, and pages of a list, both with read lag |
//! | `index` | lookup of instances by tag |
//! | `limits` | quota and capacity |
//! | `pool` | unique ids, and address pools |

mod change;
mod console;
mod index;
mod launch;
mod limits;
mod pool;
mod power;
mod read;
mod record;
mod records;
#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use fleetwright::{ImageId, InstanceId, LaunchToken, Tags, Zone};
use fleetwright_chaos::{Clock, SeededRng};

pub(crate) use launch::{LaunchOutcome, LaunchRequest};
pub(crate) use read::Lag;
pub(crate) use record::{Disk, Record, Version, View};
use records::Records;

use crate::{config::Knobs, error::NativeError, state::NativeState};
use index::TagIndex;
use launch::TokenEntry;
use limits::Usage;
pub(crate) use pool::AddressPool;
use pool::IdGenerator;

/// The number of an instance, which follows from its id. Numbers grow in the order of launch, and are never reused.
pub(crate) type Seq = u64;

/// The whole state of the account.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) knobs: Knobs,
    clock: Arc<dyn Clock>,
    now: Duration,
    /// Scheduled events by due time, then in the order of scheduling.
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    events_scheduled: u64,
    ids: IdGenerator,
    pub(crate) private: AddressPool,
    pub(crate) public: AddressPool,
    pub(crate) records: Records,
    /// The reasons of states, which many instances share.
    reasons: BTreeSet<Arc<str>>,
    index: TagIndex,
    tokens: HashMap<LaunchToken, TokenEntry>,
    usage: Usage,
    pub(crate) images: BTreeMap<String, Image>,
    image_ids: BTreeSet<ImageId>,
    /// The images that were deleted. Without a catalog, every other name can be launched.
    deleted_images: BTreeSet<ImageId>,
    zones_down: BTreeSet<Zone>,
    /// Separate from the other generators, so that reads do not change later ids.
    lag_rng: SeededRng,
    session_rng: SeededRng,
    /// How many records were read to handle calls; see `Oracle::records_touched`.
    pub(crate) records_touched: u64,
}

/// An image that was created by a snapshot of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The id, which launches and reimages accept.
    pub id: ImageId,
    /// The name that the snapshot requested. Unique in the account.
    pub name: String,
    /// The instance of which it is a snapshot.
    pub source: InstanceId,
    /// The tags that the snapshot requested.
    pub tags: Tags,
    /// The size of the source's root disk. A launch from the image without a size has a disk of this size.
    pub disk_size_gb: NonZeroU32,
}

/// A change that the cloud makes by itself when it is due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Finishes a transition, unless a later one has started; the number identifies it.
    FinishTransition(Seq, u64),
    /// Drops versions of an instance that no stale read can return any more.
    Prune(Seq),
    /// Removes the record of a terminated instance.
    Purge(Seq),
    /// Removes a launch token after its retention.
    ExpireToken(LaunchToken),
}

impl World {
    pub(crate) fn new(knobs: Knobs, clock: Arc<dyn Clock>) -> Self {
        let seed = knobs.seed;
        Self {
            knobs,
            clock,
            now: Duration::ZERO,
            events: BinaryHeap::new(),
            events_scheduled: 0,
            ids: IdGenerator::new(seed),
            private: AddressPool::private(),
            public: AddressPool::public(),
            records: Records::default(),
            reasons: BTreeSet::new(),
            index: TagIndex::default(),
            tokens: HashMap::new(),
            usage: Usage::default(),
            images: BTreeMap::new(),
            image_ids: BTreeSet::new(),
            deleted_images: BTreeSet::new(),
            zones_down: BTreeSet::new(),
            lag_rng: SeededRng::for_purpose(seed, 1),
            session_rng: SeededRng::for_purpose(seed, 2),
            records_touched: 0,
        }
    }

    /// Runs all events that are due by now, each at its due time. Time never goes back, even if the
    /// clock does.
    pub(crate) fn run_due_events(&mut self) {
        let now = self.clock.elapsed().max(self.now);
        while let Some(Reverse((due, _, _))) = self.events.peek() {
            if *due > now {
                break;
            }
            if let Some(Reverse((due, _, event))) = self.events.pop() {
                self.now = due;
                self.run_event(event);
            }
        }
        self.now = now;
    }

    fn run_event(&mut self, event: Event) {
        match event {
            Event::FinishTransition(seq, transition) => self.finish_transition(seq, transition),
            Event::Prune(seq) => self.prune(seq),
            Event::Purge(seq) => self.purge(seq),
            Event::ExpireToken(token) => self.expire_token(&token),
        }
    }

    /// Schedules `event` after `delay`. Events with the same due time run in this order.
    fn schedule(&mut self, delay: Duration, event: Event) {
        self.events_scheduled += 1;
        self.events.push(Reverse((
            self.now.saturating_add(delay),
            self.events_scheduled,
            event,
        )));
    }

    /// Adds a new version of an instance as of now, and updates the index.
    fn revise(&mut self, seq: Seq, change: impl FnOnce(&mut Version)) {
        let (now, window) = (self.now, self.knobs.capabilities.consistency_window);
        let Some(record) = self.records.get_mut(&seq) else {
            return;
        };
        let before = record.index_entries();
        // No read can see an earlier version if there is no window.
        if !window.is_zero() {
            record.keep_current();
        }
        change(&mut record.latest);
        record.latest.since = now;
        if !window.is_zero() {
            self.schedule(window, Event::Prune(seq));
        }
        self.reindex(seq, &before);
    }

    fn prune(&mut self, seq: Seq) {
        let oldest = self
            .now
            .saturating_sub(self.knobs.capabilities.consistency_window);
        let Some(record) = self.records.get_mut(&seq) else {
            return;
        };
        let before = record.index_entries();
        record.prune(oldest);
        self.reindex(seq, &before);
    }

    /// Moves an instance in the index from its entries `before` to its current ones.
    fn reindex(&mut self, seq: Seq, before: &[index::IndexEntry]) {
        let after = self
            .records
            .get(&seq)
            .map(|record| record.index_entries())
            .unwrap_or_default();
        // A change of power changes neither tags nor existence.
        if before != after {
            self.index.change(seq, before, &after);
        }
    }

    /// Removes the record of a terminated instance.
    fn purge(&mut self, seq: Seq) {
        if let Some(record) = self.records.get(&seq) {
            let before = record.index_entries();
            self.records.remove(&seq);
            self.reindex(seq, &before);
        }
    }

    /// Returns the record of an instance and counts it as touched.
    ///
    /// # Errors
    ///
    /// `NoSuchInstance`, or `ZoneDown` if its zone is unreachable.
    fn find(&mut self, id: &InstanceId) -> Result<&Record, NativeError> {
        self.records_touched += 1;
        let record = self.record(id);
        let record = record.ok_or_else(|| NativeError::NoSuchInstance(id.clone()))?;
        if self.zones_down.contains(&record.zone) {
            return Err(NativeError::ZoneDown(record.zone.clone()));
        }
        Ok(record)
    }

    /// Returns an instance that is neither terminating nor terminated and whose state `fits`.
    /// `needed` names those states for the error.
    fn find_in(
        &mut self,
        id: &InstanceId,
        needed: &'static str,
        fits: impl FnOnce(NativeState) -> bool,
    ) -> Result<Seq, NativeError> {
        let record = self.find(id)?;
        let state = record.current().state;
        if state.is_ending() || !fits(state) {
            return Err(NativeError::WrongState {
                id: id.clone(),
                state,
                needed,
            });
        }
        Ok(record.seq)
    }

    /// Runs `work` for an external actor: unreachable zones are reachable, and records do not count
    /// as touched.
    pub(crate) fn out_of_band<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let (down, touched) = (std::mem::take(&mut self.zones_down), self.records_touched);
        let result = work(self);
        (self.zones_down, self.records_touched) = (down, touched);
        result
    }

    /// Returns the record of an instance without counting it.
    pub(crate) fn record(&self, id: &InstanceId) -> Option<&Record> {
        self.records.get(&self.ids.number_of(id)?)
    }

    /// Returns a text that records share. Only the first ones are kept, because a fault can bring any text.
    fn shared_reason(&mut self, reason: &str) -> Arc<str> {
        const KEPT: usize = 64;
        if let Some(known) = self.reasons.get(reason) {
            return Arc::clone(known);
        }
        let new: Arc<str> = reason.into();
        if self.reasons.len() < KEPT {
            self.reasons.insert(Arc::clone(&new));
        }
        new
    }

    /// Makes a zone unreachable, or reachable again.
    pub(crate) fn set_zone_down(&mut self, zone: Zone, down: bool) {
        if down {
            self.zones_down.insert(zone);
        } else {
            self.zones_down.remove(&zone);
        }
    }

    /// Returns the zones that are unreachable now.
    pub(crate) fn zones_down(&self) -> Vec<Zone> {
        self.zones_down.iter().cloned().collect()
    }

    /// Returns the date at a time of the simulation.
    pub(crate) fn date_at(&self, elapsed: Duration) -> chrono::DateTime<chrono::Utc> {
        self.clock.date_at(elapsed)
    }
}
