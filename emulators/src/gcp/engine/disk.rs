//! Disks: created with an instance, and deleted with it or left behind.
//!
//! A persistent disk is a resource of its own with a name that is unique in its zone. Local SSDs
//! belong to the machine and have no record here.

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

/// A persistent disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    /// The numeric id, which never repeats.
    pub(crate) id: u64,
    /// The name, unique in its zone.
    pub(crate) name: String,
    /// The project that owns it.
    pub(crate) project: String,
    /// The zone that it is in. Only instances of this zone can attach it.
    pub(crate) zone: String,
    /// The size in GiB.
    pub(crate) gib: u32,
    /// The disk type, for example `pd-standard`.
    pub(crate) kind: String,
    /// The labels, which a client sets when it creates the disk.
    pub(crate) labels: Labels,
    /// The description of the insert, returned unchanged.
    pub(crate) description: Option<String>,
    /// The architecture of the image; `None` for a blank disk.
    pub(crate) architecture: Option<String>,
    /// The path and the id of the image that it was created from.
    pub(crate) image: Option<(String, u64)>,
    /// When it was created.
    pub(crate) created: Duration,
    /// When it was last attached.
    pub(crate) attached: Option<Duration>,
    /// When it was last detached.
    pub(crate) detached: Option<Duration>,
    /// The instance that it is attached to. At most one instance uses a disk here.
    pub(crate) user: Option<Seq>,
}

impl Disk {
    /// Returns the path of the disk below the API root.
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
    /// Returns a disk by its name, without counting a read.
    pub(crate) fn disk(&self, project: &str, zone: &str, name: &str) -> Option<(Seq, &Disk)> {
        let address = (project.to_owned(), zone.to_owned(), name.to_owned());
        let seq = *self.disk_names.get(&address)?;
        Some((seq, self.disks.get(&seq)?))
    }

    /// Refuses a name that another disk of the zone has, with 409 `alreadyExists`.
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

    /// Refuses a disk that does not exist (404 `notFound`) or that an instance uses (400
    /// `resourceInUseByAnotherResource`).
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

    /// Creates a disk for an instance, attaches it and returns it.
    ///
    /// The caller has checked the name.
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

    /// Stores a disk under its name.
    pub(super) fn add_disk(&mut self, disk: Disk) -> Seq {
        let seq = self.next_seq();
        let address = (disk.project.clone(), disk.zone.clone(), disk.name.clone());
        self.disk_names.insert(address, seq);
        self.disks.insert(seq, disk);
        seq
    }

    /// Attaches an existing disk and returns it with its size in GiB.
    ///
    /// Returns `None` and 0 if the disk was deleted since the check.
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

    /// Deletes or detaches the disks of a removed instance, as their `autoDelete` says.
    ///
    /// An instance that never ran leaves no disk behind that was created for it.
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

    /// Deletes a disk and frees its name.
    pub(super) fn remove_disk(&mut self, seq: Seq) {
        if let Some(disk) = self.disks.remove(&seq) {
            self.disk_names
                .remove(&(disk.project, disk.zone, disk.name));
        }
    }

    /// Begins to delete a disk and returns the operation, which takes `timing.delete`.
    ///
    /// # Errors
    ///
    /// 404 for a missing disk, 400 `resourceInUseByAnotherResource` for an attached one.
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
