//! Creates an instance with its disks, and the operation that does it.
//!
//! The instance exists from the call on, in `PROVISIONING`, with an internal address and its
//! disks. Its operation ends when it is `RUNNING`, or fails, which removes the instance again.

use std::sync::Arc;

use super::{
    Engine, Event,
    operation::NewOperation,
    record::{AttachedDisk, CurrentStep, Fixed, Instance, Status, Version},
    spec::{InstanceSpec, Source},
};
use crate::{
    cloud::{fault::Failure, history::History, index::Seq},
    gcp::{catalog::region_of, error::Refusal, wire::route::Scope},
};

impl Engine {
    /// Begins to create an instance and returns the operation.
    ///
    /// With `planned_failures` the operation fails with them at the end of `PROVISIONING`; they
    /// take precedence over the failures of the knobs.
    ///
    /// # Errors
    ///
    /// 409 for a name in use, 404 or 400 for a disk that cannot be attached, and the refusal of an
    /// exhausted limit that the knobs report immediately.
    pub(crate) fn insert(
        &mut self,
        spec: &InstanceSpec,
        planned_failures: &[Failure],
    ) -> Result<Seq, Refusal> {
        self.check_names(spec)?;
        let late_failures = self.check_limits(spec)?;
        let planned_failures = if planned_failures.is_empty() {
            late_failures
        } else {
            planned_failures.to_vec()
        };
        Ok(self.create_instance(spec, planned_failures))
    }

    /// Refuses names that are in use, of the instance and of its new disks, and existing disks
    /// that cannot be attached.
    pub(super) fn check_names(&self, spec: &InstanceSpec) -> Result<(), Refusal> {
        let address = (spec.project.clone(), spec.zone.clone(), spec.name.clone());
        if self.live_instance(&address).is_some() {
            return Err(Refusal::already_exists(&spec.path()));
        }
        for (number, disk) in spec.disks.iter().enumerate() {
            match &disk.source {
                Source::Local => {}
                Source::Existing(name) => self.check_attachable(spec, name)?,
                Source::Blank | Source::Image(_) => {
                    let name = disk_name(spec, number);
                    self.check_disk_name(&spec.project, &spec.zone, &name)?;
                }
            }
        }
        Ok(())
    }

    /// Creates an instance in `PROVISIONING` and returns the operation.
    ///
    /// Takes a machine, unless the operation is going to fail. The next step begins after
    /// `timing.provision`, a failure after `timing.shortage` more.
    pub(super) fn create_instance(
        &mut self,
        spec: &InstanceSpec,
        planned_failures: Vec<Failure>,
    ) -> Seq {
        let (seq, id, now) = (self.next_seq(), self.next_id(), self.now());
        let disks = self.create_disks(spec, seq);
        let image = spec.disks.iter().find_map(|disk| match &disk.source {
            Source::Image(image) if disk.boot => Some(image.path()),
            Source::Image(_) | Source::Blank | Source::Existing(_) | Source::Local => None,
        });
        let region = region_of(&spec.zone).to_owned();
        let fixed = Fixed {
            id,
            name: spec.name.clone(),
            project: spec.project.clone(),
            zone: spec.zone.clone(),
            network: spec.network.clone(),
            subnetwork: spec.subnetwork.clone(),
            internal_ip: self.take_internal_ip(&region, &spec.subnetwork),
            access: spec.access.clone(),
            scheduling: spec.scheduling.clone(),
            tags: spec.tags.clone(),
            can_ip_forward: spec.can_ip_forward,
            deletion_protection: spec.deletion_protection,
            hostname: spec.hostname.clone(),
            image,
            request_id: spec.request_id,
            external: spec.external,
            echo: spec.echo.clone(),
        };
        let version = Version {
            status: Status::Provisioning,
            machine_type: spec.machine_type.clone(),
            nat_ip: None,
            labels: Arc::new(spec.labels.clone()),
            metadata: Arc::new(spec.metadata.clone()),
            last_start: None,
            last_stop: None,
            last_suspended: None,
        };
        let address = fixed.address();
        let operation = self.create_operation(NewOperation {
            project: spec.project.clone(),
            scope: Scope::Zone(spec.zone.clone()),
            kind: "insert",
            target: spec.path(),
            target_id: Some(id),
        });
        let will_fail = !planned_failures.is_empty();
        let instance = Instance {
            seq,
            fixed: Arc::new(fixed),
            disks,
            holds_machine: false,
            boots: 0,
            planned_failures,
            console: String::new(),
            step: 0,
            current_step: CurrentStep::Insert,
            operation: Some(operation),
            repeated_deletes: 0,
            versions: History::new(now, version),
        };
        self.by_name.entry(address).or_default().push(seq);
        self.instances.add(seq, instance);
        if !will_fail {
            self.take_machine(seq);
        }
        let timing = &self.core.knobs.timing;
        let duration = timing
            .provision
            .saturating_add(timing.shortage_of(will_fail));
        self.after(duration, Event::FinishStep(seq, 0));
        operation
    }

    /// Creates or attaches the disks of a new instance, in the order of the request.
    fn create_disks(&mut self, spec: &InstanceSpec, instance: Seq) -> Vec<AttachedDisk> {
        let mut attached = Vec::new();
        for (number, disk) in spec.disks.iter().enumerate() {
            let (seq, gib) = match &disk.source {
                Source::Local => (None, disk.gib),
                Source::Existing(name) => self.attach_disk(spec, name, instance),
                Source::Blank | Source::Image(_) => {
                    let name = disk_name(spec, number);
                    let seq = self.create_disk(spec, disk, &name, instance);
                    (Some(seq), disk.gib)
                }
            };
            attached.push(AttachedDisk {
                disk: seq,
                boot: disk.boot,
                auto_delete: disk.auto_delete,
                device: disk
                    .device
                    .clone()
                    .unwrap_or_else(|| format!("persistent-disk-{number}")),
                interface: disk.interface.clone(),
                mode: disk.mode.clone(),
                gib,
            });
        }
        attached
    }
}

/// Returns the name of a new disk: the given one, else the name of the instance for the first disk
/// and that name with the disk's number for the others.
fn disk_name(spec: &InstanceSpec, number: usize) -> String {
    let given = spec.disks.get(number).and_then(|disk| disk.name.clone());
    given.unwrap_or_else(|| match number {
        0 => spec.name.clone(),
        number => format!("{}-{number}", spec.name),
    })
}
