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
        let image = NewSnapshot::new(constants::image("stolen"), constants::name("stolen"));
        for (is_stranger, who) in [(false, &reader), (true, &stranger)] {
            let results = [
                ("update", calls.update(who, id, &wanted).await.err()),
                ("plan", calls.plan_update(who, id, &wanted).await.err()),
                ("stop", calls.stop(who, id).await.err()),
                ("start", calls.start(who, id).await.err()),
                ("reboot", calls.reboot(who, id, Reboot::Hard).await.err()),
                ("replace", calls.replace(who, id).await.err()),
                ("delete", calls.delete(who, id).await.err()),
                ("key", calls.ssh_key(who, id).await.err()),
                ("console", calls.console_session(who, id).await.err()),
                ("snapshot", calls.snapshot(who, id, &image).await.err()),
            ];
            for (verb, result) in results {
                let right = match &result {
                    // An instance may be removed meanwhile, and a failing store proves nothing.
                    Some(ComputeError::NotFound(_)) if is_stranger => true,
                    Some(ComputeError::NotFound(_)) => self.gone(slot).await,
                    Some(ComputeError::Refused(_)) => !is_stranger,
                    Some(error) => is_of_store(error),
                    None => false,
                };
                if !right {
                    self.journal.report_violation(format!(
                        "{} called {verb} on instance {id} and got: {result:?}",
                        who.actor()
                    ));
                }
            }
        }
        self.seen(process, slot).await;
        OpResult::Done
    }

    /// Checks that a reader sees the instance, also in lists, and a stranger does not.
    async fn seen(&self, process: &Process, slot: usize) {
        let (id, tenant) = (self.fixtures.id(slot), SLOTS[slot].tenant);
        let who = [constants::reader(tenant), constants::user(1 - tenant)];
        for (stranger, who) in who.iter().enumerate() {
            let read = process.instances.read(who, id).await;
            let listed = process.instances.list(who, &ListInstances::default()).await;
            let listed = listed.map(|page| {
                let mut all = page.instances.iter();
                all.any(|view| view.instance.id == id)
            });
            let right = match (&read, &listed) {
                (Ok(_), Ok(true)) => stranger == 0,
                (Err(ComputeError::NotFound(_)), Ok(false)) => {
                    stranger == 1 || self.gone(slot).await
                }
                (Err(error), _) | (_, Err(error)) if is_of_store(error) => true,
                (_, _) => self.gone(slot).await,
            };
            if !right {
                self.journal.report_violation(format!(
                    "{} read instance {id}: {:?}, listed: {listed:?}",
                    who.actor(),
                    read.map(|view| view.provisioning)
                ));
            }
        }
    }

    async fn gone(&self, slot: usize) -> bool {
        self.rules
            .instance(self.fixtures.server(slot))
            .await
            .is_none()
    }
}

fn is_of_store(error: &ComputeError) -> bool {
    error.meaning() == fleetwright_compute::Meaning::Unavailable
}
