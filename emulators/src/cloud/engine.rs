//! The state that every cloud's engine has: knobs, time, ids, random numbers, machines in
//! use and public addresses.
//!
//! Owns only what is the same in all clouds. What a resource is, and what an event does, belongs to
//! the engine of each cloud.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright_chaos::{Clock, SeededRng};

use super::{
    CommonKnobs, address_pool::AddressPool, capacity::CapacityUsage, ids::IdGenerator, index::Seq,
    schedule::Schedule,
};

/// The common part of an engine, with the cloud's knobs `K` and its events `E`.
#[derive(Debug)]
pub(crate) struct EngineCore<K, E> {
    /// The current knobs.
    pub(crate) knobs: K,
    /// The current time, and the events of the future.
    pub(crate) schedule: Schedule<E>,
    /// The random numbers of lags and choices.
    pub(crate) rng: SeededRng,
    /// The machines that are in use.
    pub(crate) usage: CapacityUsage,
    /// The public addresses that are free.
    pub(crate) public_ips: AddressPool,
    /// How many records calls have read. Tests use it to prove that the cost of a call does
    /// not grow with the fleet.
    pub(crate) records_read: u64,
    /// The number of the newest record.
    last_seq: Seq,
    /// The ids of requests, from their own random numbers, so that a call does not change the ids
    /// of resources.
    request_ids: IdGenerator,
}

/// The values that [`EngineCore::pause_observation`] has saved.
#[derive(Debug)]
#[must_use = "observation stays paused until it is resumed"]
pub(crate) struct PausedObservation {
    /// The number of records that calls had read.
    records_read: u64,
    /// The lag of writes.
    write_lag: Duration,
}

impl<K: CommonKnobs, E: Ord> EngineCore<K, E> {
    /// Creates the common part of an engine without any records.
    pub(crate) fn new(knobs: K, clock: Arc<dyn Clock>) -> Self {
        let seed = knobs.seed();
        Self {
            schedule: Schedule::new(clock),
            rng: SeededRng::for_purpose(seed, 1),
            usage: CapacityUsage::default(),
            public_ips: AddressPool::public(),
            records_read: 0,
            last_seq: 0,
            request_ids: IdGenerator::new(seed ^ u64::MAX),
            knobs,
        }
    }

    /// Returns the current time of the engine.
    pub(crate) const fn now(&self) -> Duration {
        self.schedule.now()
    }

    /// Returns the calendar date at a time.
    pub(crate) fn date(&self, time: Duration) -> DateTime<Utc> {
        self.schedule.date(time)
    }

    /// Returns the number of the next record.
    pub(crate) const fn next_seq(&mut self) -> Seq {
        self.last_seq += 1;
        self.last_seq
    }

    /// Returns the id of the next request, a UUID.
    pub(crate) fn request_id(&mut self) -> String {
        self.request_ids.request()
    }

    /// Lets an external actor find everything at once, and does not count what it reads.
    pub(crate) fn pause_observation(&mut self) -> PausedObservation {
        PausedObservation {
            records_read: self.records_read,
            write_lag: std::mem::take(&mut self.knobs.lag_mut().writes),
        }
    }

    /// Restores the values that [`EngineCore::pause_observation`] has saved.
    pub(crate) fn resume_observation(&mut self, paused: &PausedObservation) {
        self.records_read = paused.records_read;
        self.knobs.lag_mut().writes = paused.write_lag;
    }
}
