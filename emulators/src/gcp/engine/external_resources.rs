//! Instances and disks that external actions create.

use std::collections::BTreeMap;

use serde_json::Map;

use super::{
    Address, Engine,
    disk::Disk,
    record::{AccessConfig, Labels, Scheduling},
    rules::{self, Metadata},
    spec::{DiskSpec, InstanceSpec, Source},
};
use crate::gcp::{
    error::Refusal,
    wire::route::{Scope, is_name},
};

impl Engine {
    /// Creates a blank disk and returns its id.
    ///
    /// # Errors
    ///
    /// 400 for an unknown zone or an invalid name, 409 `alreadyExists` if another disk of the zone has it.
    pub(super) fn add_external_disk(
        &mut self,
        (project, zone, name): Address,
        gib: u32,
        labels: Labels,
    ) -> Result<Vec<String>, Refusal> {
        if !is_name(&name) {
            return Err(Refusal::mismatch("name", &name));
        }
        self.check_zone(&zone)?;
        self.check_disk_name(&project, &zone, &name)?;
        let disk = Disk {
            id: self.next_id(),
            name,
            project,
            zone,
            gib,
            kind: "pd-standard".to_owned(),
            labels,
            description: None,
            architecture: None,
            image: None,
            created: self.now(),
            attached: None,
            detached: None,
            user: None,
        };
        let (id, path, project) = (disk.id, disk.path(), disk.project.clone());
        let scope = Scope::Zone(disk.zone.clone());
        self.add_disk(disk);
        self.record_done_on(&project, scope, "insert", (path, id));
        Ok(vec![id.to_string()])
    }

    /// Creates `count` instances and returns their ids.
    ///
    /// # Errors
    ///
    /// 400 `limitExceeded` if the operation of an instance would fail for a limit: none is created then. A caller
    /// that seeds a fleet reads no operations, and would miss that a part of it disappears. Otherwise the error of the
    /// first insert that fails; the instances before it stay.
    pub(super) fn launch_external(
        &mut self,
        spec: &InstanceSpec,
        name: &str,
        count: u32,
    ) -> Result<Vec<String>, Refusal> {
        let mut ids = Vec::new();
        let others = u64::from(count.saturating_sub(1));
        if let Some(failure) = self.check_limits_with_pending(spec, others)?.first() {
            return Err(Refusal::limit_of_external_launch(count, failure));
        }
        for number in 0..count {
            let name = match (number, count) {
                (_, 1) => name.to_owned(),
                (number, _) => format!("{name}-{number}"),
            };
            if !is_name(&name) {
                return Err(Refusal::mismatch("name", &name));
            }
            let operation = self.insert(&spec.with_name(&name), &[])?;
            let operation = self.operations.get(&operation);
            let id = operation.and_then(|operation| operation.target_id);
            ids.extend(id.map(|id| id.to_string()));
        }
        Ok(ids)
    }

    /// Returns the spec of an external instance: one boot disk of the first image, the default
    /// network with an external address, on demand.
    ///
    /// # Errors
    ///
    /// 400 for an unknown zone, a machine type that the zone does not offer, or invalid labels.
    pub(super) fn external_spec(
        &self,
        project: String,
        zone: Option<String>,
        machine_type: Option<String>,
        labels: Labels,
        metadata: BTreeMap<String, String>,
    ) -> Result<InstanceSpec, Refusal> {
        let zone = zone.or_else(|| self.core.knobs.zones.first().cloned());
        let zone = zone.ok_or_else(|| Refusal::required("zone"))?;
        self.check_zone(&zone)?;
        let default_type = || Some(self.core.knobs.machine_types.first()?.name.clone());
        let machine_type = machine_type
            .or_else(default_type)
            .ok_or_else(|| Refusal::required("machineType"))?;
        let offered = self.machine_type(&machine_type);
        if offered.is_none_or(|offered| !offered.is_in(&zone)) {
            let why = format!("Machine type does not exist in zone '{zone}'.");
            return Err(Refusal::invalid("machineType", &machine_type, &why));
        }
        rules::check_labels("labels", &labels)?;
        let image = self.images.values().next().cloned();
        let gib = image.as_ref().map_or(10, |image| image.gib);
        let boot = DiskSpec {
            name: None,
            device: None,
            boot: true,
            auto_delete: true,
            gib,
            kind: "pd-standard".to_owned(),
            labels: Labels::new(),
            description: None,
            interface: "SCSI".to_owned(),
            mode: "READ_WRITE".to_owned(),
            source: image.map_or(Source::Blank, Source::Image),
        };
        Ok(InstanceSpec {
            project,
            zone,
            name: String::new(),
            machine_type,
            disks: vec![boot],
            network: "default".to_owned(),
            subnetwork: "default".to_owned(),
            access: Some(AccessConfig::standard()),
            labels,
            metadata: Metadata(metadata.into_iter().collect()),
            tags: Vec::new(),
            scheduling: Scheduling::standard(),
            deletion_protection: false,
            can_ip_forward: false,
            hostname: None,
            request_id: None,
            external: true,
            echo: Map::new(),
        })
    }

    /// Refuses a zone that does not exist, like the API.
    fn check_zone(&self, zone: &str) -> Result<(), Refusal> {
        let known = self.core.knobs.zones.iter().any(|known| known == zone);
        known
            .then_some(())
            .ok_or_else(|| Refusal::invalid("zone", zone, "Unknown zone."))
    }
}
