//! Creates an instance with its disks, and the operation that does it.

use std::sync::Arc;

use super::{
    Engine, Event,
    operation::About,
    order::{InstanceSpec, Source},
    record::{Attached, CurrentStep, Fixed, Instance, Status, Version},
};
use crate::{
    cloud::{fault::Failure, history::History, index::Seq},
    gcp::{catalog::region_of, error::Refusal, wire::route::Scope},
};

impl Engine {
    /// Begins to create an instance, and returns the operation. With `planned_failures` it fails.
    pub(crate) fn insert(
        &mut self,
        order: &InstanceSpec,
        planned_failures: &[Failure],
    ) -> Result<Seq, Refusal> {
        self.check_names(order)?;
        let late = self.check_limits(order)?;
        let planned_failures = if planned_failures.is_empty() {
            late
        } else {
            planned_failures.to_vec()
        };
        Ok(self.make(order, planned_failures))
    }

    /// Refuses names that are taken, of the instance and of its disks.
    pub(super) fn check_names(&self, order: &InstanceSpec) -> Result<(), Refusal> {
        let address = (
            order.project.clone(),
            order.zone.clone(),
            order.name.clone(),
        );
        if self.live(&address).is_some() {
            return Err(Refusal::already_exists(&order.path()));
        }
        for (number, disk) in order.disks.iter().enumerate() {
            match &disk.source {
                Source::Local => {}
                Source::Existing(name) => self.check_attachable(order, name)?,
                Source::Blank | Source::Image(_) => {
                    let name = disk_name(order, number);
                    self.check_disk_name(&order.project, &order.zone, &name)?;
                }
            }
        }
        Ok(())
    }

    /// Creates an instance in PROVISIONING.
    pub(super) fn make(&mut self, order: &InstanceSpec, planned_failures: Vec<Failure>) -> Seq {
        let (seq, id, now) = (self.next_seq(), self.next_id(), self.now());
        let disks = self.make_disks(order, seq);
        let image = order.disks.iter().find_map(|disk| match &disk.source {
            Source::Image(image) if disk.boot => Some(image.path()),
            Source::Image(_) | Source::Blank | Source::Existing(_) | Source::Local => None,
        });
        let region = region_of(&order.zone).to_owned();
        let fixed = Fixed {
            id,
            name: order.name.clone(),
            project: order.project.clone(),
            zone: order.zone.clone(),
            network: order.network.clone(),
            subnetwork: order.subnetwork.clone(),
            internal_ip: self.take_internal(&region, &order.subnetwork),
            access: order.access.clone(),
            scheduling: order.scheduling.clone(),
            tags: order.tags.clone(),
            can_ip_forward: order.can_ip_forward,
            deletion_protection: order.deletion_protection,
            hostname: order.hostname.clone(),
            image,
            request_id: order.request_id,
            external: order.external,
            echo: order.echo.clone(),
        };
        let version = Version {
            status: Status::Provisioning,
            machine_type: order.machine_type.clone(),
            nat_ip: None,
            labels: Arc::new(order.labels.clone()),
            metadata: Arc::new(order.metadata.clone()),
            last_start: None,
            last_stop: None,
            last_suspended: None,
        };
        let address = fixed.address();
        let operation = self.open(About {
            project: order.project.clone(),
            scope: Scope::Zone(order.zone.clone()),
            kind: "insert",
            target: order.path(),
            target_id: Some(id),
        });
        let doomed = !planned_failures.is_empty();
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
        if !doomed {
            self.take_machine(seq);
        }
        self.after(self.core.knobs.timing.provision, Event::FinishStep(seq, 0));
        operation
    }

    fn make_disks(&mut self, order: &InstanceSpec, instance: Seq) -> Vec<Attached> {
        let mut attached = Vec::new();
        for (number, disk) in order.disks.iter().enumerate() {
            let (seq, gib) = match &disk.source {
                Source::Local => (None, disk.gib),
                Source::Existing(name) => self.attach_disk(order, name, instance),
                Source::Blank | Source::Image(_) => {
                    let name = disk_name(order, number);
                    let seq = self.make_disk(order, disk, &name, instance);
                    (Some(seq), disk.gib)
                }
            };
            attached.push(Attached {
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

/// What a new disk is called.
fn disk_name(order: &InstanceSpec, number: usize) -> String {
    let given = order.disks.get(number).and_then(|disk| disk.name.clone());
    given.unwrap_or_else(|| match number {
        0 => order.name.clone(),
        number => format!("{}-{number}", order.name),
    })
}
