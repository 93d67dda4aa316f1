//! Disks: created with an instance, and deleted with it or left behind.

use std::time::Duration;

use super::{
    Engine,
    operation::{NewOperation, Work},
    record::Labels,
    spec::{DiskSpec, InstanceSpec, Source},
};
use crate::{
    cloud::index::Seq,
    gcp::{
        error::Refusal,
        wire::route::{Scope, Target},
    },
};

/// A disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) project: String,
    pub(crate) zone: String,
    pub(crate) gib: u32,
    pub(crate) kind: String,
    pub(crate) labels: Labels,
    pub(crate) description: Option<String>,
    pub(crate) architecture: Option<String>,
    /// The path and the id of the image that it was made of.
    pub(crate) image: Option<(String, u64)>,
    pub(crate) created: Duration,
    pub(crate) attached: Option<Duration>,
    pub(crate) detached: Option<Duration>,
    /// The instance that has it.
    pub(crate) user: Option<Seq>,
}

impl Disk {
    /// The path of the disk.
    pub(crate) fn path(&self) -> String {
        let Self {
            project,
            zone,
            name,
            ..
        } = self;
        format!("projects/{project}/zones/{zone}/disks/{name}")
    }
}

impl Engine {
    /// Returns a disk by its name.
    pub(crate) fn disk(&self, project: &str, zone: &str, name: &str) -> Option<(Seq, &Disk)> {
        let address = (project.to_owned(), zone.to_owned(), name.to_owned());
        let seq = *self.disk_names.get(&address)?;
        Some((seq, self.disks.get(&seq)?))
    }

    pub(super) fn check_disk_name(
        &self,
        project: &str,
        zone: &str,
        name: &str,
    ) -> Result<(), Refusal> {
        match self.disk(project, zone, name) {
            Some((_, disk)) => Err(Refusal::already_exists(&disk.path())),
            None => Ok(()),
        }
    }

    /// Refuses a disk that does not exist or that another instance uses.
    pub(super) fn check_attachable(&self, spec: &InstanceSpec, name: &str) -> Result<(), Refusal> {
        let InstanceSpec { project, zone, .. } = spec;
        let Some((_, disk)) = self.disk(project, zone, name) else {
            let path = format!("projects/{project}/zones/{zone}/disks/{name}");
            return Err(Refusal::not_found(&path));
        };
        match disk.user.and_then(|user| self.instances.get(&user)) {
            Some(user) => Err(Refusal::in_use(&disk.path(), &user.fixed.path())),
            None => Ok(()),
        }
    }

    /// Creates a disk for an instance.
    pub(super) fn create_disk(
        &mut self,
        spec: &InstanceSpec,
        disk: &DiskSpec,
        name: &str,
        user: Seq,
    ) -> Seq {
        let image = match &disk.source {
            Source::Image(image) => Some(image),
            Source::Blank | Source::Existing(_) | Source::Local => None,
        };
        let now = self.now();
        let created_at = Disk {
            id: self.next_id(),
            name: name.to_owned(),
            project: spec.project.clone(),
            zone: spec.zone.clone(),
            gib: disk.gib,
            kind: disk.kind.clone(),
            labels: disk.labels.clone(),
            description: disk.description.clone(),
            architecture: image.map(|image| image.architecture.clone()),
            image: image.map(|image| (image.path(), image.id)),
            created: now,
            attached: Some(now),
            detached: None,
            user: Some(user),
        };
        self.add_disk(created_at)
    }

    pub(super) fn add_disk(&mut self, disk: Disk) -> Seq {
        let seq = self.next_seq();
        let address = (disk.project.clone(), disk.zone.clone(), disk.name.clone());
        self.disk_names.insert(address, seq);
        self.disks.insert(seq, disk);
        seq
    }

    /// Attaches an existing disk, and returns its size.
    pub(super) fn attach_disk(
        &mut self,
        spec: &InstanceSpec,
        name: &str,
        user: Seq,
    ) -> (Option<Seq>, u32) {
        let now = self.now();
        let seq = self
            .disk(&spec.project, &spec.zone, name)
            .map(|(seq, _)| seq);
        let disk = seq.and_then(|seq| self.disks.get_mut(&seq));
        let gib = disk.map_or(0, |disk| {
            (disk.user, disk.attached) = (Some(user), Some(now));
            disk.gib
        });
        (seq, gib)
    }

    /// Deletes or detaches the disks of a removed instance, as requested. One that never ran leaves
    /// none that were made for it.
    pub(super) fn release_disks(&mut self, seq: Seq, never_ran: bool) {
        let now = self.now();
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        let created_at = instance.versions.created_at();
        for attached in std::mem::take(&mut instance.disks) {
            let Some(seq) = attached.disk else { continue };
            let Some(disk) = self.disks.get_mut(&seq) else {
                continue;
            };
            if attached.auto_delete || (never_ran && disk.created == created_at) {
                self.remove_disk(seq);
            } else {
                (disk.user, disk.detached) = (None, Some(now));
            }
        }
    }

    pub(super) fn remove_disk(&mut self, seq: Seq) {
        if let Some(disk) = self.disks.remove(&seq) {
            self.disk_names
                .remove(&(disk.project, disk.zone, disk.name));
        }
    }

    /// Begins to delete a disk that is not attached.
    pub(crate) fn delete_disk(&mut self, target: &Target) -> Result<Seq, Refusal> {
        let Scope::Zone(zone) = &target.scope else {
            return Err(Refusal::no_such_path());
        };
        let Some((seq, disk)) = self.disk(&target.project, zone, &target.name) else {
            return Err(Refusal::not_found(&target.path("disks")));
        };
        if let Some(user) = disk.user.and_then(|user| self.instances.get(&user)) {
            return Err(Refusal::in_use(&disk.path(), &user.fixed.path()));
        }
        let (id, path) = (disk.id, disk.path());
        Ok(self.create_operation_with_work(
            NewOperation {
                project: target.project.clone(),
                scope: target.scope.clone(),
                kind: "delete",
                target: path,
                target_id: Some(id),
            },
            self.core.knobs.timing.delete,
            Work::DeleteDisk(seq),
        ))
    }
}
