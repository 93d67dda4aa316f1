//! Principals without permission: a reader may change nothing, and another tenant sees nothing.

use fleetwright::Reboot;
use fleetwright_compute::{
    ComputeError,
    service::{ListInstances, UpdateInstance},
};
use fleetwright_region::snapshot::NewSnapshot;

use super::{Client, OpResult};
use crate::{
    constants::{self, SLOTS},
    world::Process,
};

impl Client {
    pub(super) async fn probe(&mut self, process: &Process, slot: usize) -> OpResult {
        let id = self.fixtures.id(slot);
        let Some(instance) = self.rules.instance(id.server()).await else {
            return OpResult::Done;
        };
        let tenant = SLOTS[slot].tenant;
        let (reader, stranger) = (constants::reader(tenant), constants::user(1 - tenant));
        let calls = &process.instances;
        let wanted = UpdateInstance::of(&instance);
        let image = NewSnapshot::new(constants::name("stolen"));
        for (is_stranger, principal) in [(false, &reader), (true, &stranger)] {
            let results = [
                ("update", calls.update(principal, id, &wanted).await.err()),
                (
                    "plan",
                    calls.plan_update(principal, id, &wanted).await.err(),
                ),
                ("stop", calls.stop(principal, id).await.err()),
                ("start", calls.start(principal, id).await.err()),
                (
                    "reboot",
                    calls.reboot(principal, id, Reboot::Hard).await.err(),
                ),
                ("replace", calls.replace(principal, id).await.err()),
                ("delete", calls.delete(principal, id).await.err()),
                ("key", calls.ssh_key(principal, id).await.err()),
                ("console", calls.console_session(principal, id).await.err()),
                (
                    "snapshot",
                    calls.snapshot(principal, id, &image).await.err(),
                ),
            ];
            for (verb, result) in results {
                let expected = match &result {
                    // An instance may be removed meanwhile, and a failing store proves nothing.
                    Some(ComputeError::NotFound(_)) if is_stranger => true,
                    Some(ComputeError::NotFound(_)) => self.is_removed(slot).await,
                    Some(ComputeError::Refused(_)) => !is_stranger,
                    Some(error) => is_unavailable(error),
                    None => false,
                };
                if !expected {
                    self.journal.report_violation(format!(
                        "{} called {verb} on instance {id} and got: {result:?}",
                        principal.actor()
                    ));
                }
            }
        }
        self.check_visibility(process, slot).await;
        OpResult::Done
    }

    /// Checks that a reader sees the instance, also in lists, and a stranger does not.
    async fn check_visibility(&self, process: &Process, slot: usize) {
        let (id, tenant) = (self.fixtures.id(slot), SLOTS[slot].tenant);
        let principals = [constants::reader(tenant), constants::user(1 - tenant)];
        for (stranger, principal) in principals.iter().enumerate() {
            let read = process.instances.read(principal, id).await;
            let listed = process
                .instances
                .list(principal, &ListInstances::default())
                .await;
            let listed = listed.map(|page| {
                let mut all = page.instances.iter();
                all.any(|view| view.instance.id == id)
            });
            let expected = match (&read, &listed) {
                (Ok(_), Ok(true)) => stranger == 0,
                (Err(ComputeError::NotFound(_)), Ok(false)) => {
                    stranger == 1 || self.is_removed(slot).await
                }
                (Err(error), _) | (_, Err(error)) if is_unavailable(error) => true,
                (_, _) => self.is_removed(slot).await,
            };
            if !expected {
                self.journal.report_violation(format!(
                    "{} read instance {id}: {:?}, listed: {listed:?}",
                    principal.actor(),
                    read.map(|view| view.provisioning)
                ));
            }
        }
    }

    async fn is_removed(&self, slot: usize) -> bool {
        self.rules
            .instance(self.fixtures.server(slot))
            .await
            .is_none()
    }
}

fn is_unavailable(error: &ComputeError) -> bool {
    error.meaning() == fleetwright_compute::Meaning::Unavailable
}
