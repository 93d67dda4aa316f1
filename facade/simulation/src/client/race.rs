//! Concurrent requests.

use fleetwright::Reboot;
use fleetwright_compute::{ComputeError, service::UpdateInstance};
use fleetwright_region::server::Power;
use futures_util::future::{join_all, join5};

use super::{Client, OpResult};
use crate::{constants::SLOT_COUNT, world::Process};

impl Client {
    /// Creates every instance twice at once: one of the two calls gets "name taken", and no
    /// organization exceeds its quota.
    pub(super) async fn create_all_at_once(&mut self, process: &Process) -> OpResult {
        let calls = (0..SLOT_COUNT).chain(0..SLOT_COUNT).map(|slot| {
            let new = self.fixtures.new_instance(slot);
            let instances = &process.instances;
            async move { (slot, instances.create(&Self::user(slot), &new).await) }
        });
        let mut overall = OpResult::Done;
        for (slot, created) in join_all(calls).await {
            let created = created.map(|view| view.instance);
            let being_deleted = matches!(created, Err(ComputeError::NameDeleting { .. }));
            let result = self.record_creation(process, slot, created).await;
            if matches!(result, OpResult::Retry) && !being_deleted {
                overall = OpResult::Retry;
            }
        }
        overall
    }

    /// Stops an instance twice, reboots, tags and replaces it, all at once. Every accepted request
    /// must come true.
    pub(super) async fn race(&mut self, process: &Process, slot: usize) -> OpResult {
        let (principal, id) = (Self::user(slot), self.fixtures.id(slot));
        let found = match process.instances.read(&principal, id).await {
            Ok(view) => view.instance,
            Err(error) => return self.after_error(&error),
        };
        let mut tagged = UpdateInstance::of(&found);
        // The key is neither empty nor reserved.
        drop(tagged.tags.insert("raced", "yes"));
        self.journal
            .facts(|facts| *facts.requested_replacements.entry(id).or_default() += 1);
        let calls = &process.instances;
        let (one, two, rebooted, updated, replaced) = join5(
            calls.stop(&principal, id),
            calls.stop(&principal, id),
            calls.reboot(&principal, id, Reboot::Hard),
            calls.update(&principal, id, &tagged),
            calls.replace(&principal, id),
        )
        .await;
        if one.is_ok() || two.is_ok() {
            if let Some((_, power)) = self.expected.live.get_mut(&id) {
                *power = Power::Stopped;
            }
        }
        let errors = [
            one.err(),
            two.err(),
            rebooted.err(),
            updated.err(),
            replaced.err(),
        ];
        let results = errors.iter().flatten().map(|error| self.after_error(error));
        // Every error is logged, so none may be skipped.
        let results: Vec<_> = results.collect();
        let retry = |result: &OpResult| matches!(result, OpResult::Retry);
        if results.iter().any(retry) {
            OpResult::Retry
        } else {
            OpResult::Done
        }
    }
}
