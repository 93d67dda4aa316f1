//! The simulated cloud itself: instances, what is attached to them, and time.
//!
//! Owns the truth. Everything here is synchronous and happens at one moment; waiting, faults and
//! lost replies are the [wire](crate::wire)'s. Transitions are events in a queue, carried out at
//! their due times whenever somebody calls, so the cost of a call does not grow with the fleet.
//!
//! | file | what it does |
//! | --- | --- |
//! | `record` | an instance and the versions of it that a lagging read may still see |
//! | `launch` | launching, tokens, finding a launch |
//! | `power` | stop, start, terminate, reboot |
//! | `change` | tags, type, image |
//! | `console` | console output and sessions, snapshots |
//! | `read` | describing, and pages of a list |
//! | `index` | finding instances by tag without touching the others |
//! | `limits` | quota and capacity |
//! | `pool` | ids and addresses |

mod change;
mod console;
mod index;
mod launch;
mod limits;
mod pool;
mod power;
mod read;
mod record;
#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap},
    sync::Arc,
    time::Duration,
};

use fleetwright::{ImageId, InstanceId, LaunchToken, Tags, Zone};
use fleetwright_chaos::{Clock, SeededRng};

pub(crate) use launch::{Launched, Order};
pub(crate) use read::Lag;
pub(crate) use record::{Disk, Record, Version, View};

use crate::{config::Knobs, error::Refusal, state::NativeState};
use index::TagIndex;
use launch::TokenEntry;
use limits::Usage;
pub(crate) use pool::AddressPool;
use pool::Names;

/// The order in which instances were launched; never reused.
pub(crate) type Seq = u64;

/// The whole account.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) knobs: Knobs,
    clock: Arc<dyn Clock>,
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    events_made: u64,
    last_seq: Seq,
    names: Names,
    pub(crate) private: AddressPool,
    pub(crate) public: AddressPool,
    pub(crate) records: BTreeMap<Seq, Record>,
    by_id: HashMap<InstanceId, Seq>,
    index: TagIndex,
    tokens: HashMap<LaunchToken, TokenEntry>,
    usage: Usage,
    pub(crate) images: BTreeMap<String, Image>,
    image_ids: BTreeSet<ImageId>,
    zones_down: BTreeSet<Zone>,
    lag_dice: SeededRng,
    session_dice: SeededRng,
    pub(crate) records_touched: u64,
}

/// An image made of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The image.
    pub id: ImageId,
    /// The name it was made under.
    pub name: String,
    /// The instance it was made of.
    pub source: InstanceId,
    /// Its tags.
    pub tags: Tags,
}

/// Something that happens at its due time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A transition ends, unless another one has begun since (the number tells).
    Settle(Seq, u64),
    /// A version of an instance can no longer be seen by a lagging read.
    Prune(Seq),
    /// A terminated instance vanishes.
    Vanish(Seq),
    /// A token whose instances are terminated is forgotten.
    Forget(LaunchToken),
}

impl World {
    pub(crate) fn new(knobs: Knobs, clock: Arc<dyn Clock>) -> Self {
        let seed = knobs.seed;
        Self {
            knobs,
            clock,
            now: Duration::ZERO,
            events: BinaryHeap::new(),
            events_made: 0,
            last_seq: 0,
            names: Names::new(seed),
            private: AddressPool::private(),
            public: AddressPool::public(),
            records: BTreeMap::new(),
            by_id: HashMap::new(),
            index: TagIndex::default(),
            tokens: HashMap::new(),
            usage: Usage::default(),
            images: BTreeMap::new(),
            image_ids: BTreeSet::new(),
            zones_down: BTreeSet::new(),
            lag_dice: SeededRng::for_purpose(seed, 1),
            session_dice: SeededRng::for_purpose(seed, 2),
            records_touched: 0,
        }
    }

    /// Carries out everything that is due by now.
    pub(crate) fn catch_up(&mut self) {
        let now = self.clock.elapsed().max(self.now);
        while let Some(Reverse((due, _, _))) = self.events.peek() {
            if *due > now {
                break;
            }
            if let Some(Reverse((due, _, event))) = self.events.pop() {
                self.now = due;
                self.happen(event);
            }
        }
        self.now = now;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Settle(seq, transition) => self.settle(seq, transition),
            Event::Prune(seq) => self.prune(seq),
            Event::Vanish(seq) => self.vanish(seq),
            Event::Forget(token) => self.forget(&token),
        }
    }

    fn after(&mut self, delay: Duration, event: Event) {
        self.events_made += 1;
        self.events.push(Reverse((
            self.now.saturating_add(delay),
            self.events_made,
            event,
        )));
    }

    /// Gives an instance a new version as of now, and keeps the index true.
    fn revise(&mut self, seq: Seq, change: impl FnOnce(&mut Version)) {
        let (now, window) = (self.now, self.knobs.capabilities.consistency_window);
        let Some(record) = self.records.get_mut(&seq) else {
            return;
        };
        let before = record.standings();
        let mut next = record.current().clone();
        change(&mut next);
        next.since = now;
        record.versions.push_back(next);
        if window.is_zero() {
            record.prune(now);
        } else {
            self.after(window, Event::Prune(seq));
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
        let before = record.standings();
        record.prune(oldest);
        self.reindex(seq, &before);
    }

    fn reindex(&mut self, seq: Seq, before: &[index::Standing]) {
        let after = self
            .records
            .get(&seq)
            .map(Record::standings)
            .unwrap_or_default();
        self.index.change(seq, before, &after);
    }

    /// A terminated instance is forgotten.
    fn vanish(&mut self, seq: Seq) {
        if let Some(record) = self.records.get(&seq) {
            let before = record.standings();
            self.by_id.remove(&record.id.clone());
            self.records.remove(&seq);
            self.reindex(seq, &before);
        }
    }

    /// The truth about an instance, or why it cannot be had.
    fn find(&mut self, id: &InstanceId) -> Result<&Record, Refusal> {
        self.records_touched += 1;
        let record = self.record(id);
        let record = record.ok_or_else(|| Refusal::NoSuchInstance(id.clone()))?;
        if self.zones_down.contains(&record.zone) {
            return Err(Refusal::ZoneDown(record.zone.clone()));
        }
        Ok(record)
    }

    /// An instance that is neither destroyed nor about to be, in one of the states that `fits`.
    fn find_in(
        &mut self,
        id: &InstanceId,
        needed: &'static str,
        fits: impl FnOnce(NativeState) -> bool,
    ) -> Result<Seq, Refusal> {
        let record = self.find(id)?;
        let state = record.current().state;
        if state.is_ending() || !fits(state) {
            return Err(Refusal::WrongState {
                id: id.clone(),
                state,
                needed,
            });
        }
        Ok(record.seq)
    }

    /// Lets somebody act who needs no wire: no record counts as touched, no zone is out of reach.
    pub(crate) fn past_the_wire<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let (down, touched) = (std::mem::take(&mut self.zones_down), self.records_touched);
        let answer = work(self);
        (self.zones_down, self.records_touched) = (down, touched);
        answer
    }

    /// The record of an instance, if there is one.
    pub(crate) fn record(&self, id: &InstanceId) -> Option<&Record> {
        self.records.get(self.by_id.get(id)?)
    }

    /// Makes a zone unreachable, or reachable again.
    pub(crate) fn set_zone_down(&mut self, zone: Zone, down: bool) {
        if down {
            self.zones_down.insert(zone);
        } else {
            self.zones_down.remove(&zone);
        }
    }

    /// The zones that a list cannot see now.
    pub(crate) fn zones_down(&self) -> Vec<Zone> {
        self.zones_down.iter().cloned().collect()
    }

    /// What the calendar says at a moment of the simulation.
    pub(crate) fn date_at(&self, elapsed: Duration) -> chrono::DateTime<chrono::Utc> {
        self.clock.date_at(elapsed)
    }
}
