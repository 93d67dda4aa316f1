//! Creates a virtual machine with its disks and interfaces.
//!
//! Everything is checked before anything is created, so a refused call leaves no disk and no
//! address behind. There is one exception: existing interfaces of a creation that is refused for
//! capacity or quota are reserved for that virtual machine.

use std::{sync::Arc, time::Duration};

use super::{
    Engine,
    limits::RequestedVm,
    plan::{NicPlan, Plan},
    task::Work,
    vm::{Provisioning, Vm},
};
use crate::{
    azure::{
        error::Refusal,
        wire::{body::Tags, id::Id, vm_body::VmBody},
    },
    cloud::{fault::Failure, index::Seq},
};

impl Engine {
    /// Begins to create a virtual machine, and returns its operation.
    ///
    /// The record, its interfaces and its disks exist immediately, with the provisioning state
    /// `Creating`; the machine runs after [`boot`](crate::azure::Timing). `external` marks the
    /// creation of an external actor.
    ///
    /// # Errors
    ///
    /// Every refusal of the checks in `plan`; 409 `OperationNotAllowed` for quota and 409
    /// `SkuNotAvailable` for capacity, if the knobs check them immediately.
    pub(crate) fn create_vm(
        &mut self,
        id: &Id,
        body: &VmBody,
        external: bool,
    ) -> Result<u64, Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        self.check_tags(body.tags.as_ref())?;
        let plan = self.plan(id, body)?;
        self.check_room(&plan.nics)?;
        let requested = RequestedVm {
            size: &plan.size,
            location: &plan.location,
            zone: plan.zone.as_deref(),
            market: plan.market,
        };
        let limit_failure = match self.limits(requested) {
            Ok(limit_failure) => limit_failure,
            Err(refusal) => {
                self.reserve(&existing_nics(&plan.nics), id);
                return Err(refusal);
            }
        };
        let zone = plan.zone.as_deref().unwrap_or_default();
        let late_failure = self.late_failure(&plan.size.name, zone);
        let planned_failure = late_failure.or(limit_failure.clone());
        let seq = self.insert_vm(id, body, &plan, external)?;
        if limit_failure.is_none() {
            self.allocate(seq);
        }
        let duration = self.boot_time(planned_failure.as_ref());
        Ok(self.begin(
            id,
            &plan.location,
            Work::CreateVm(seq),
            duration,
            planned_failure,
        ))
    }

    /// Retries a failed creation, and returns its operation. The virtual machine keeps its GUID,
    /// disks and interfaces, and gets new tags.
    pub(super) fn retry_creation(&mut self, seq: Seq, vm: &Vm, tags: Tags) -> u64 {
        let zone = vm.zone.as_deref().unwrap_or_default();
        let late_failure = self.late_failure(&vm.size, zone);
        let limit_failure = self.try_allocate(seq, vm);
        self.edit_vm(seq, |vm| {
            vm.provisioning = Provisioning::Creating;
            vm.tags = Arc::new(tags);
        });
        let planned_failure = late_failure.or(limit_failure);
        let duration = self.boot_time(planned_failure.as_ref());
        self.begin(
            &vm.id,
            &vm.location,
            Work::CreateVm(seq),
            duration,
            planned_failure,
        )
    }

    /// Returns how long a creation or start takes, with this failure or without one.
    pub(super) fn boot_time(&self, failure: Option<&Failure>) -> Duration {
        let timing = &self.core.knobs.timing;
        let shortage = failure.map_or(Duration::ZERO, |_| timing.shortage);
        timing.boot.saturating_add(shortage)
    }

    /// Returns the failure that [`late_failures`](crate::azure::Knobs) plans for a size and zone.
    fn late_failure(&self, size: &str, zone: &str) -> Option<Failure> {
        let mut rules = self.core.knobs.late_failures.iter();
        let rule = rules.find(|rule| rule.matches(size, zone))?;
        Some(Failure::new(&rule.code, &rule.message))
    }

    /// Creates the record of a virtual machine, and creates or attaches its interfaces and disks.
    fn insert_vm(
        &mut self,
        id: &Id,
        body: &VmBody,
        plan: &Plan,
        external: bool,
    ) -> Result<Seq, Refusal> {
        let nics = self.attach_nics(id, &plan.nics, &plan.location)?;
        let zone = plan.zone.as_deref();
        let disks = self.attach_disks(id, &plan.disks, &plan.location, zone);
        let (seq, now) = (self.next_seq(), self.now());
        let properties = &body.properties;
        let diagnostics = properties.diagnostics_profile.as_ref();
        let diagnostics = diagnostics.and_then(|it| it.boot_diagnostics.as_ref());
        let mut stored = body.clone();
        // The password is never returned, so it is not stored.
        if let Some(profile) = &mut stored.properties.os_profile {
            profile.admin_password = None;
            // A Linux machine has a configuration even if none was requested (azure-cli, recording
            // `test_vm_create_state_modifications`).
            if plan.image.os_type.eq_ignore_ascii_case("linux") {
                profile
                    .linux_configuration
                    .get_or_insert_with(Default::default);
            }
        }
        self.evicted.remove(&id.key());
        let vm = Vm {
            id: id.clone(),
            vm_id: self.names.request(),
            location: plan.location.clone(),
            zone: plan.zone.clone(),
            body: Arc::new(stored),
            image: Arc::new(plan.image.clone()),
            tags: Arc::new(body.tags.clone().unwrap_or_default()),
            size: plan.size.name.clone(),
            market: plan.market,
            eviction: plan.eviction,
            custom_data: plan.custom_data.clone(),
            user_data: properties.user_data.clone(),
            diagnostics: diagnostics.and_then(|it| it.enabled).unwrap_or(false),
            disks,
            detaching_disks: Vec::new(),
            nics,
            provisioning: Provisioning::Creating,
            power: None,
            previous_power: None,
            failure: None,
            created: now,
            changed: now,
            version: 1,
            generalized: false,
            allocated: false,
            boots: 0,
            console: Arc::default(),
            task: None,
            external,
        };
        let existing = self.existing.entry(vm.location.clone()).or_default();
        existing.reserve(vm.kind());
        self.vms.insert(seq, id, now, vm);
        Ok(seq)
    }
}

/// Returns the interfaces of a plan that exist already.
fn existing_nics(plans: &[NicPlan]) -> Vec<Seq> {
    let existing = |plan: &NicPlan| match plan {
        NicPlan::Existing(seq, _) => Some(*seq),
        NicPlan::Create(_) => None,
    };
    plans.iter().filter_map(existing).collect()
}
