//! Those who may not: whoever may look may do nothing, and to another tenant there is nothing.

use fleetwright::Reboot;
use fleetwright_compute::{
    ComputeError,
    service::{ListInstances, UpdateInstance},
};
use fleetwright_region::snapshot::NewSnapshot;

use super::{Asked, Client};
use crate::{
    names::{self, PLACES},
    world::Process,
};

impl Client {
    pub(super) async fn probe(&mut self, process: &Process, slot: usize) -> Asked {
        let id = self.town.id(slot);
        let Some(instance) = self.rules.instance(id.server()).await else {
            return Asked::Over;
        };
        let tenant = PLACES[slot].tenant;
        let (reader, stranger) = (names::reader(tenant), names::user(1 - tenant));
        let calls = &process.instances;
        let wanted = UpdateInstance::of(&instance);
        let image = NewSnapshot::new(names::image("stolen"), names::name("stolen"));
        for (is_stranger, who) in [(false, &reader), (true, &stranger)] {
            let answers = [
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
            for (verb, answer) in answers {
                let right = match &answer {
                    // What is gone meanwhile is gone for everybody, and a store that fails says nothing.
                    Some(ComputeError::NotFound(_)) if is_stranger => true,
                    Some(ComputeError::NotFound(_)) => self.gone(slot).await,
                    Some(ComputeError::Refused(_)) => !is_stranger,
                    Some(error) => is_of_store(error),
                    None => false,
                };
                if !right {
                    self.journal.violated(format!(
                        "{} tries {verb} on instance {id} and is told: {answer:?}",
                        who.actor()
                    ));
                }
            }
        }
        self.seen(process, slot).await;
        Asked::Over
    }

    /// Who looks sees it, in lists too; a stranger does not.
    async fn seen(&self, process: &Process, slot: usize) {
        let (id, tenant) = (self.town.id(slot), PLACES[slot].tenant);
        let who = [names::reader(tenant), names::user(1 - tenant)];
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
                self.journal.violated(format!(
                    "{} looks at instance {id}: {:?}, and it is in the list: {listed:?}",
                    who.actor(),
                    read.map(|view| view.provisioning)
                ));
            }
        }
    }

    async fn gone(&self, slot: usize) -> bool {
        self.rules.instance(self.town.server(slot)).await.is_none()
    }
}

fn is_of_store(error: &ComputeError) -> bool {
    error.meaning() == fleetwright_compute::Meaning::Unavailable
}
