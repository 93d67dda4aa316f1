//! What tenants ask for, and what they may count on afterwards.

use fleetwright::{PublicAddress, Reboot, UserData};
use fleetwright_compute::{
    ComputeError,
    instance::{Instance, InstanceId},
    service::UpdateInstance,
};
use fleetwright_identity::Principal;
use fleetwright_region::{
    catalog::LoadError,
    network::{IfUsed, RecordError},
    server::{Consent, Power, ServerError},
    snapshot::NewSnapshot,
};
use fleetwright_store::Advice;

use super::{Asked, Client};
use crate::{
    journal::Asking,
    names::{self, PLACES, SLOTS},
    scenario::{Change, Word},
    world::Process,
};

impl Client {
    pub(super) fn user(slot: usize) -> Principal {
        names::user(PLACES[slot].tenant)
    }

    pub(super) async fn create(&mut self, process: &Process, slot: usize) -> Asked {
        let (who, new) = (Self::user(slot), self.town.new_instance(slot));
        let made = process.instances.create(&who, &new).await;
        self.created(process, slot, made.map(|view| view.instance))
            .await
    }

    /// An instance that is there already is what was asked for before, if an answer was lost.
    pub(super) async fn created(
        &mut self,
        process: &Process,
        slot: usize,
        made: Result<Instance, ComputeError>,
    ) -> Asked {
        let instance = match made {
            Ok(instance) => instance,
            Err(ComputeError::NameTaken { id, .. }) => {
                let found = process.instances.read(&Self::user(slot), id).await;
                match found {
                    Ok(view) => view.instance,
                    Err(error) => return self.judged(&error),
                }
            }
            Err(error) => return self.judged(&error),
        };
        let promised = (instance.spec.clone(), instance.intent.power);
        if instance.deletion.is_none() && !self.promised.condemned.contains(&instance.network) {
            self.promised.live.insert(instance.id, promised);
        }
        Asked::Over
    }

    pub(super) async fn update(
        &mut self,
        process: &Process,
        slot: usize,
        change: Change,
        word: Word,
    ) -> Asked {
        let (who, id) = (Self::user(slot), self.town.id(slot));
        let found = match process.instances.read(&who, id).await {
            Ok(view) => view.instance,
            Err(error) => return self.judged(&error),
        };
        let mut wanted = UpdateInstance::of(&found);
        self.apply(&mut wanted, slot, change);
        wanted.consent = match word {
            Word::Agreed => Consent::Destroy,
            Word::Keep | Word::Dry => Consent::KeepEverything,
        };
        if word == Word::Dry {
            let before = self
                .rules
                .instance(id.server())
                .await
                .map(|now| now.generation);
            let planned = process.instances.plan_update(&who, id, &wanted).await;
            let after = self
                .rules
                .instance(id.server())
                .await
                .map(|now| now.generation);
            if before.is_some() && after.is_some_and(|after| Some(after) != before) {
                self.journal
                    .violated(format!("a plan of instance {id} changed it"));
            }
            return planned.map_or_else(|error| self.judged(&error), |_| Asked::Over);
        }
        let asking = Asking {
            id,
            spec: wanted.spec.clone(),
            consent: wanted.consent,
        };
        self.journal.notes(|notes| notes.asking = Some(asking));
        let answer = process.instances.update(&who, id, &wanted).await;
        self.journal.notes(|notes| notes.asking = None);
        match answer {
            Ok(_) => {
                if let Some((spec, _)) = self.promised.live.get_mut(&id) {
                    *spec = wanted.spec;
                }
                Asked::Over
            }
            Err(error) => self.judged(&error),
        }
    }

    fn apply(&self, wanted: &mut UpdateInstance, slot: usize, change: Change) {
        let spec = &mut wanted.spec;
        let network = PLACES[slot].network;
        match change {
            Change::Small => spec.flavor = names::flavor("small"),
            Change::Large => spec.flavor = names::flavor(names::RETIRED),
            Change::Gpu => spec.flavor = names::flavor("gpu"),
            Change::Linux => spec.image = names::image("linux"),
            Change::Bsd => spec.image = names::image("bsd"),
            // The key is neither empty nor reserved.
            Change::Tag(number) => drop(wanted.tags.insert("mark", number.to_string())),
            Change::Group => spec.networking.security_groups = [self.town.groups[network]].into(),
            Change::NoGroup => spec.networking.security_groups.clear(),
            Change::Public => spec.networking.public_ip = PublicAddress::Assigned,
            Change::Private => spec.networking.public_ip = PublicAddress::Absent,
            // The second tenant has none, and may not have another's.
            Change::Authority => spec.ssh_authority = Some(self.town.authority),
            Change::UserData(number) => {
                spec.user_data = UserData::new(format!("#!/bin/sh\necho {number}\n")).ok();
            }
            Change::Words(number) => wanted.description = Some(format!("number {number}")),
        }
    }

    pub(super) async fn power(&mut self, process: &Process, slot: usize, power: Power) -> Asked {
        let (who, id) = (Self::user(slot), self.town.id(slot));
        let asked = match power {
            Power::Stopped => process.instances.stop(&who, id).await,
            Power::Running | Power::Deleted => process.instances.start(&who, id).await,
        };
        match asked {
            Ok(_) => {
                if let Some((_, promised)) = self.promised.live.get_mut(&id) {
                    *promised = power;
                }
                Asked::Over
            }
            Err(error) => self.judged(&error),
        }
    }

    pub(super) async fn reboot(&mut self, process: &Process, slot: usize) -> Asked {
        let (who, id) = (Self::user(slot), self.town.id(slot));
        let asked = process.instances.reboot(&who, id, Reboot::Soft).await;
        asked.map_or_else(|error| self.judged(&error), |_| Asked::Over)
    }

    pub(super) async fn replace(&mut self, process: &Process, slot: usize) -> Asked {
        let (who, id) = (Self::user(slot), self.town.id(slot));
        self.journal
            .notes(|notes| *notes.replaces.entry(id).or_default() += 1);
        let asked = process.instances.replace(&who, id).await;
        asked.map_or_else(|error| self.judged(&error), |_| Asked::Over)
    }

    pub(super) async fn delete(&mut self, process: &Process, slot: usize) -> Asked {
        let (who, id) = (Self::user(slot), self.town.id(slot));
        match process.instances.delete(&who, id).await {
            Ok(()) | Err(ComputeError::NotFound(_)) => {
                self.promised.live.remove(&id);
                Asked::Over
            }
            Err(error) => self.judged(&error),
        }
    }

    pub(super) async fn snapshot(&mut self, process: &Process, slot: usize) -> Asked {
        let (who, id, image) = (Self::user(slot), self.town.id(slot), names::snapshot(slot));
        let new = NewSnapshot::new(image.clone(), names::name("made"));
        match process.instances.snapshot(&who, id, &new).await {
            Ok(_) => {
                self.promised.images.insert(image);
                Asked::Over
            }
            Err(error) => self.judged(&error),
        }
    }

    /// What is shown is of its machine, and that it was shown is in the record.
    pub(super) async fn look(&mut self, process: &Process, slot: usize) -> Asked {
        let (who, id) = (Self::user(slot), self.town.id(slot));
        if let Err(error) = process.instances.console_output(&who, id, None).await {
            return self.judged(&error);
        }
        match process.instances.ssh_key(&who, id).await {
            Ok(_) => self.was_told(id).await,
            Err(error) => return self.judged(&error),
        }
        Asked::Over
    }

    async fn was_told(&self, id: InstanceId) {
        let Some(instance) = self.rules.instance(id.server()).await else {
            return;
        };
        let words = |event: &fleetwright_compute::instance::Event| event.message.contains("key");
        if !instance.events.iter().any(words) {
            self.journal.violated(format!(
                "the key of instance {id} was shown, and no event tells of it"
            ));
        }
    }

    pub(super) async fn condemn(&mut self, process: &Process, network: usize) -> Asked {
        let (who, id) = (
            names::user(names::NETWORKS[network]),
            self.town.networks[network],
        );
        let asked = process.networks.delete(&who, id, IfUsed::DeleteFirst).await;
        match asked {
            Ok(_) | Err(RecordError::NotFound { .. }) => {
                self.promised.condemned.insert(id);
                let gone = |slot: &usize| PLACES[*slot].network == network;
                for slot in (0..SLOTS).filter(gone) {
                    self.promised.live.remove(&self.town.id(slot));
                }
                Asked::Over
            }
            Err(error) => self.judged(&error.into()),
        }
    }

    pub(super) async fn load(&mut self, process: &Process, whole: bool) -> Asked {
        match process.catalog.load(&names::catalog(whole)).await {
            Ok(_) => Asked::Over,
            Err(LoadError::Store(error)) if error.advice() != Advice::GiveUp => Asked::Again,
            Err(error) => {
                self.journal
                    .violated(format!("the catalog is not taken: {error}"));
                Asked::Over
            }
        }
    }

    /// An operator deletes a server: nobody does that, and it happens.
    pub(super) async fn order(&mut self, process: &Process, slot: usize) -> Asked {
        let id = self.town.id(slot);
        self.journal.notes(|notes| notes.ordered.insert(id));
        match process
            .servers
            .delete(&names::operator(), id.server())
            .await
        {
            Ok(_) | Err(ServerError::NotFound(_)) => Asked::Over,
            Err(error) => self.judged(&error.into()),
        }
    }
}
