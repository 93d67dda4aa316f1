//! The requests of tenants and operators, and what they may expect afterwards.

use std::sync::Arc;

use fleetwright::{PublicAddress, Reboot, UserData};
use fleetwright_compute::{
    ComputeError,
    instance::{Instance, InstanceId},
    service::UpdateInstance,
};
use fleetwright_identity::{AuditEntry, Principal, Verb};
use fleetwright_region::{
    network::{IfUsed, RecordError},
    server::{Consent, Power},
};

use super::{Client, OpResult};
use crate::{
    constants::{self, SLOT_COUNT, SLOTS},
    journal::PendingUpdate,
    scenario::{Change, UpdateMode},
    world::Process,
};

impl Client {
    pub(super) fn user(slot: usize) -> Principal {
        constants::user(SLOTS[slot].tenant)
    }

    pub(super) async fn create(&mut self, process: &Process, slot: usize) -> OpResult {
        let (principal, new) = (Self::user(slot), self.fixtures.new_instance(slot));
        let created = process.instances.create(&principal, &new).await;
        self.record_creation(process, slot, created.map(|view| view.instance))
            .await
    }

    /// Records the result of a creation. "Name taken" may mean that an earlier attempt succeeded
    /// and its response was lost.
    pub(super) async fn record_creation(
        &mut self,
        process: &Process,
        slot: usize,
        created: Result<Instance, ComputeError>,
    ) -> OpResult {
        let instance = match created {
            Ok(instance) => instance,
            Err(ComputeError::NameTaken { id, .. }) => {
                let found = process.instances.read(&Self::user(slot), id).await;
                match found {
                    Ok(view) => view.instance,
                    Err(error) => return self.after_error(&error),
                }
            }
            Err(error) => return self.after_error(&error),
        };
        let expected = (instance.spec.clone(), instance.intent.power);
        if instance.deletion.is_none()
            && !self.expected.deleted_networks.contains(&instance.network)
        {
            self.expected.live.insert(instance.id, expected);
        }
        OpResult::Done
    }

    pub(super) async fn update(
        &mut self,
        process: &Process,
        slot: usize,
        change: Change,
        mode: UpdateMode,
    ) -> OpResult {
        let (principal, id) = (Self::user(slot), self.fixtures.id(slot));
        let found = match process.instances.read(&principal, id).await {
            Ok(view) => view.instance,
            Err(error) => return self.after_error(&error),
        };
        let mut wanted = UpdateInstance::of(&found);
        self.apply(&mut wanted, slot, change);
        wanted.consent = match mode {
            UpdateMode::WithConsent => Consent::Destroy,
            UpdateMode::WithoutConsent | UpdateMode::PlanOnly => Consent::KeepEverything,
        };
        if mode == UpdateMode::PlanOnly {
            let before = self
                .rules
                .instance(id.server())
                .await
                .map(|now| now.generation);
            let planned = process.instances.plan_update(&principal, id, &wanted).await;
            let after = self
                .rules
                .instance(id.server())
                .await
                .map(|now| now.generation);
            if before.is_some() && after.is_some_and(|after| Some(after) != before) {
                self.journal
                    .report_violation(format!("a dry run changed instance {id}"));
            }
            return planned.map_or_else(|error| self.after_error(&error), |_| OpResult::Done);
        }
        let pending_update = PendingUpdate {
            id,
            spec: wanted.spec.clone(),
            consent: wanted.consent,
        };
        self.journal
            .facts(|facts| facts.pending_update = Some(pending_update));
        let result = process.instances.update(&principal, id, &wanted).await;
        self.journal.facts(|facts| facts.pending_update = None);
        match result {
            Ok(_) => {
                if let Some((spec, _)) = self.expected.live.get_mut(&id) {
                    *spec = wanted.spec;
                }
                OpResult::Done
            }
            Err(error) => self.after_error(&error),
        }
    }

    fn apply(&self, wanted: &mut UpdateInstance, slot: usize, change: Change) {
        let spec = &mut wanted.spec;
        let network = SLOTS[slot].network;
        match change {
            Change::Small => spec.flavor = constants::flavor("small"),
            Change::Large => spec.flavor = constants::flavor(constants::RETIRED_FLAVOR),
            Change::Gpu => spec.flavor = constants::flavor("gpu"),
            Change::Debian => spec.image = constants::image("debian"),
            Change::Rocky => spec.image = constants::image("rocky"),
            // The key is neither empty nor reserved.
            Change::Tag(number) => drop(wanted.tags.insert("mark", number.to_string())),
            Change::Group => {
                spec.networking.security_groups = [self.fixtures.groups[network]].into();
            }
            Change::NoGroup => spec.networking.security_groups.clear(),
            Change::Public => spec.networking.public_ip = PublicAddress::Assigned,
            Change::Private => spec.networking.public_ip = PublicAddress::Absent,
            // The second tenant has no authority and may not use another tenant's.
            Change::Authority => spec.ssh_authority = Some(self.fixtures.authority),
            Change::UserData(number) => {
                spec.user_data = UserData::new(format!("#!/bin/sh\necho {number}\n")).ok();
            }
            Change::LongUserData => {
                let text = "x".repeat(constants::MAX_USER_DATA);
                spec.user_data = UserData::new(format!("#!/bin/sh\n# {text}\n")).ok();
            }
            Change::Description(number) => wanted.description = Some(format!("number {number}")),
        }
    }

    pub(super) async fn power(&mut self, process: &Process, slot: usize, power: Power) -> OpResult {
        let (principal, id) = (Self::user(slot), self.fixtures.id(slot));
        let result = match power {
            Power::Stopped => process.instances.stop(&principal, id).await,
            Power::Running | Power::Deleted => process.instances.start(&principal, id).await,
        };
        match result {
            Ok(_) => {
                if let Some((_, expected)) = self.expected.live.get_mut(&id) {
                    *expected = power;
                }
                OpResult::Done
            }
            Err(error) => self.after_error(&error),
        }
    }

    pub(super) async fn reboot(&mut self, process: &Process, slot: usize) -> OpResult {
        let (principal, id) = (Self::user(slot), self.fixtures.id(slot));
        let result = process.instances.reboot(&principal, id, Reboot::Soft).await;
        result.map_or_else(|error| self.after_error(&error), |_| OpResult::Done)
    }

    pub(super) async fn replace(&mut self, process: &Process, slot: usize) -> OpResult {
        let (principal, id) = (Self::user(slot), self.fixtures.id(slot));
        self.journal
            .facts(|facts| *facts.requested_replacements.entry(id).or_default() += 1);
        let result = process.instances.replace(&principal, id).await;
        result.map_or_else(|error| self.after_error(&error), |_| OpResult::Done)
    }

    pub(super) async fn delete(&mut self, process: &Process, slot: usize) -> OpResult {
        let (principal, id) = (Self::user(slot), self.fixtures.id(slot));
        self.journal
            .facts(|facts| facts.requested_deletions.insert(id));
        match process.instances.delete(&principal, id).await {
            Ok(()) | Err(ComputeError::NotFound(_)) => {
                self.expected.live.remove(&id);
                OpResult::Done
            }
            Err(error) => self.after_error(&error),
        }
    }

    /// Reads console and key, and checks that the audit log has it.
    pub(super) async fn read_key_and_console(
        &mut self,
        process: &Process,
        slot: usize,
    ) -> OpResult {
        let (principal, id) = (Self::user(slot), self.fixtures.id(slot));
        if let Err(error) = process.instances.console_output(&principal, id, None).await {
            return self.after_error(&error);
        }
        match process.instances.ssh_key(&principal, id).await {
            Ok(_) => self.check_audit_entry(id).await,
            Err(error) => return self.after_error(&error),
        }
        OpResult::Done
    }

    async fn check_audit_entry(&self, id: InstanceId) {
        let entries: Vec<Arc<AuditEntry>> = self.rules.all("audit-entry").await;
        let id = id.to_string();
        let is_key_read =
            |entry: &Arc<AuditEntry>| entry.record == id && entry.verb == Verb::SshKey;
        if !entries.iter().any(is_key_read) {
            self.journal.report_violation(format!(
                "the key of instance {id} was read without an entry in the audit log"
            ));
        }
    }

    pub(super) async fn delete_network(&mut self, process: &Process, network: usize) -> OpResult {
        let (principal, id) = (
            constants::user(constants::NETWORKS[network]),
            self.fixtures.networks[network],
        );
        self.journal
            .facts(|facts| facts.deleted_networks.insert(id));
        let result = process
            .networks
            .delete(&principal, id, IfUsed::DeleteFirst)
            .await;
        match result {
            Ok(_) | Err(RecordError::NotFound { .. }) => {
                self.expected.deleted_networks.insert(id);
                let on_network = |slot: &usize| SLOTS[*slot].network == network;
                for slot in (0..SLOT_COUNT).filter(on_network) {
                    self.expected.live.remove(&self.fixtures.id(slot));
                }
                OpResult::Done
            }
            Err(error) => self.after_error(&error.into()),
        }
    }
}
