//! What this handle remembers of its own launches, stops and deletions, and of instances that have ended.
//!
//! Owns that memory. The handle that changed an instance knows the operation by name and can read it
//! with one call, so it does not list operations: Compute Engine charges such a list for every
//! operation of the project. The memory ends with the process, and other handles do not have it; they
//! list operations where a read is unclear.
//!
//! Instances are remembered by their number, which is never reused.

use std::time::Duration;

use fleetwright::{CloudInstanceState, InstanceInfo};
use fleetwright_provider_support::RecentMap;
use google_cloud_compute_v1::model::Operation;

/// How long a stop can take. An instance that is stopping later is stopping for another reason.
const LONGEST_STOP: Duration = Duration::from_secs(10 * 60);

/// The changes and ends that this handle knows of.
#[derive(Debug)]
pub(crate) struct Memory {
    /// How long an entry is kept.
    kept: Duration,
    /// The operations that created instances.
    inserts: RecentMap<u64, String>,
    /// The instances that this handle has launched.
    launches: RecentMap<u64, ()>,
    /// The instances that this handle has stopped.
    stops: RecentMap<u64, ()>,
    /// The operations that delete instances.
    deletes: RecentMap<u64, String>,
    /// The instances that have ended, as they were reported.
    ended: RecentMap<u64, InstanceInfo>,
}

impl Memory {
    /// Creates an empty memory that keeps entries for `kept`.
    pub(crate) fn new(kept: Duration) -> Self {
        Self {
            kept,
            inserts: RecentMap::default(),
            launches: RecentMap::default(),
            stops: RecentMap::default(),
            deletes: RecentMap::default(),
            ended: RecentMap::default(),
        }
    }

    /// Records the operation of a launch.
    pub(crate) fn record_insert(&self, operation: &Operation) {
        record(&self.inserts, operation, self.kept);
        let number = operation.target_id.map(|number| (number, ()));
        self.launches.record(number, self.kept);
    }

    /// Whether this handle launched an instance more than `window` ago. A read that does not show it is not from before
    /// its launch.
    pub(crate) fn is_older_than(&self, number: u64, window: Duration) -> bool {
        let is_launched = self.launches.get(&number, self.kept).is_some();
        is_launched && self.launches.get(&number, window).is_none()
    }

    /// Records the operation of a deletion.
    pub(crate) fn record_delete(&self, operation: &Operation) {
        record(&self.deletes, operation, self.kept);
    }

    /// Records that this handle has stopped an instance.
    pub(crate) fn record_stop(&self, number: u64) {
        self.stops.record([(number, ())], LONGEST_STOP);
    }

    /// Records an instance that is reported as terminated. It is never reported otherwise again.
    pub(crate) fn record_end(&self, number: u64, info: &InstanceInfo) {
        if info.state == CloudInstanceState::Terminated {
            self.ended.record([(number, info.clone())], self.kept);
        }
    }

    /// Forgets that this handle has stopped an instance, because it starts it.
    pub(crate) fn forget_stop(&self, number: u64) {
        self.stops.remove(&number);
    }

    /// Forgets a deletion that failed.
    pub(crate) fn forget_delete(&self, number: u64) {
        self.deletes.remove(&number);
    }

    /// Returns the operation that created an instance, and whether a read may not show it yet.
    pub(crate) fn insert(&self, number: u64, window: Duration) -> Option<(String, bool)> {
        let operation = self.inserts.get(&number, self.kept)?;
        Some((operation, self.inserts.get(&number, window).is_some()))
    }

    /// Returns the operation that deletes an instance, and whether it was sent less than `window` ago.
    pub(crate) fn delete(&self, number: u64, window: Duration) -> Option<(String, bool)> {
        let operation = self.deletes.get(&number, self.kept)?;
        Some((operation, self.deletes.get(&number, window).is_some()))
    }

    /// Whether this handle has stopped the instance and it can still be stopping.
    pub(crate) fn is_stopping(&self, number: u64) -> bool {
        self.stops.get(&number, LONGEST_STOP).is_some()
    }

    /// Returns an instance that was reported as terminated.
    pub(crate) fn end(&self, number: u64) -> Option<InstanceInfo> {
        self.ended.get(&number, self.kept)
    }
}

/// Records an operation under the number of its instance.
fn record(map: &RecentMap<u64, String>, operation: &Operation, kept: Duration) {
    if let (Some(number), Some(name)) = (operation.target_id, operation.name.clone()) {
        map.record([(number, name)], kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::InstanceId;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn entries_are_kept_as_long_as_operations() {
        let (memory, window) = (Memory::new(HOUR), Duration::from_secs(20));
        let operation = Operation::new()
            .set_name("operation-1")
            .set_target_id(7_u64);
        memory.record_insert(&operation);
        memory.record_delete(&operation);
        memory.record_stop(7);
        let id = InstanceId::new("gce://p/us-central1-a/fw-1/7").unwrap();
        memory.record_end(
            7,
            &InstanceInfo::new(id.clone(), CloudInstanceState::Terminating),
        );
        assert_eq!(memory.end(7), None, "it has not ended");
        memory.record_end(7, &InstanceInfo::new(id, CloudInstanceState::Terminated));
        let name = "operation-1".to_owned();
        assert_eq!(memory.insert(7, window), Some((name.clone(), true)));
        assert!(memory.is_stopping(7) && memory.end(7).is_some());
        assert!(!memory.is_older_than(7, window) && !memory.is_older_than(8, window));
        tokio::time::advance(LONGEST_STOP).await;
        assert!(!memory.is_stopping(7) && memory.is_older_than(7, window));
        assert!(!memory.is_older_than(8, window), "it may be younger");
        assert_eq!(memory.insert(7, window), Some((name.clone(), false)));
        assert_eq!(memory.delete(7, window), Some((name, false)));
        tokio::time::advance(HOUR).await;
        assert_eq!(memory.insert(7, window), None);
        assert_eq!(memory.delete(7, window), None);
        assert_eq!(memory.end(7), None);
    }

    #[tokio::test(start_paused = true)]
    async fn operation_without_target_is_not_recorded_and_failed_deletes_are_forgotten() {
        let memory = Memory::new(HOUR);
        memory.record_delete(&Operation::new().set_name("operation-1"));
        memory.record_delete(&Operation::new().set_target_id(7_u64));
        assert_eq!(memory.delete(7, HOUR), None);
        memory.record_delete(&Operation::new().set_name("o").set_target_id(7_u64));
        assert!(memory.delete(7, HOUR).is_some());
        memory.forget_delete(7);
        assert_eq!(memory.delete(7, HOUR), None);
        memory.record_stop(7);
        memory.forget_stop(7);
        assert!(!memory.is_stopping(7));
    }
}
