//! Images: public ones from the catalog, and those created from disks.
//!
//! A new image is `PENDING` for `timing.image` and then `READY`; an instance can use only a ready
//! one. Images of the catalog are always ready and cannot be deleted through the API.

use std::time::Duration;

use super::{
    Engine,
    operation::{NewOperation, Work},
    record::Labels,
};
use crate::{
    cloud::index::Seq,
    gcp::{
        error::Refusal,
        wire::route::{Scope, Target},
    },
};

/// An image.
#[derive(Clone, Debug)]
pub(crate) struct ImageRecord {
    /// The numeric id, which never repeats.
    pub(crate) id: u64,
    /// The project that owns it.
    pub(crate) project: String,
    /// The name, unique in its project.
    pub(crate) name: String,
    /// The family. The newest image of a family is the one with the highest sequence number.
    pub(crate) family: Option<String>,
    /// The size of the disk that it needs, in GiB.
    pub(crate) gib: u32,
    /// `X86_64` or `ARM64`.
    pub(crate) architecture: String,
    /// The description of the insert, returned unchanged.
    pub(crate) description: Option<String>,
    /// The labels of the insert.
    pub(crate) labels: Labels,
    /// The path and the id of the disk that it was created from; `None` for catalog images.
    pub(crate) source: Option<(String, u64)>,
    /// When it was created.
    pub(crate) created: Duration,
    /// The time from which it can be used.
    pub(crate) ready: Duration,
}

impl ImageRecord {
    /// Returns the path of the image below the API root.
    pub(crate) fn path(&self) -> String {
        format!("projects/{}/global/images/{}", self.project, self.name)
    }
}

/// The parsed parameters of an image insert.
#[derive(Debug)]
pub(crate) struct ImageSpec {
    /// The project that gets the image.
    pub(crate) project: String,
    /// The name of the image.
    pub(crate) name: String,
    /// The family, if it belongs to one.
    pub(crate) family: Option<String>,
    /// The description.
    pub(crate) description: Option<String>,
    /// The labels, which the caller has checked.
    pub(crate) labels: Labels,
    /// Project, zone and name of the source disk.
    pub(crate) disk: super::Address,
    /// Whether the disk of a running instance is accepted (`forceCreate`). Default false.
    pub(crate) force: bool,
}

impl Engine {
    /// Adds the images of the knobs that are missing. Runs at the start and after each change of
    /// the knobs.
    pub(super) fn load_catalog_images(&mut self) {
        for image in self.core.knobs.images.clone() {
            if self.image(&image.project, &image.name).is_some() {
                continue;
            }
            let record = ImageRecord {
                id: self.next_id(),
                project: image.project,
                name: image.name,
                family: image.family,
                gib: image.gib,
                architecture: image.architecture,
                description: None,
                labels: Labels::new(),
                source: None,
                created: Duration::ZERO,
                ready: Duration::ZERO,
            };
            let seq = self.next_seq();
            self.images.insert(seq, record);
        }
    }

    /// Returns an image by its name.
    pub(crate) fn image(&self, project: &str, name: &str) -> Option<(Seq, &ImageRecord)> {
        let matches =
            |(_, image): &(&Seq, &ImageRecord)| image.project == project && image.name == name;
        self.images
            .iter()
            .find(matches)
            .map(|(seq, image)| (*seq, image))
    }

    /// Returns the newest image of a family.
    pub(crate) fn image_of_family(&self, project: &str, family: &str) -> Option<&ImageRecord> {
        let matches = |image: &&ImageRecord| {
            image.project == project && image.family.as_deref() == Some(family)
        };
        self.images.values().rev().find(matches)
    }

    /// Begins to create an image of a disk and returns the operation, which takes `timing.image`.
    ///
    /// # Errors
    ///
    /// 409 for a name in use, 404 for a missing disk, 400 `resourceInUseByAnotherResource` for the
    /// disk of an instance that has a machine, unless `force` is set.
    pub(crate) fn insert_image(&mut self, spec: &ImageSpec) -> Result<Seq, Refusal> {
        if let Some((_, image)) = self.image(&spec.project, &spec.name) {
            return Err(Refusal::already_exists(&image.path()));
        }
        let (project, zone, name) = &spec.disk;
        let Some((_, disk)) = self.disk(project, zone, name) else {
            let path = format!("projects/{project}/zones/{zone}/disks/{name}");
            return Err(Refusal::not_found(&path));
        };
        let user = disk.user.and_then(|user| self.instances.get(&user));
        if let Some(user) = user.filter(|user| user.holds_machine && !spec.force) {
            return Err(Refusal::in_use(&disk.path(), &user.fixed.path()));
        }
        let (source, gib) = ((disk.path(), disk.id), disk.gib);
        let architecture = disk
            .architecture
            .clone()
            .unwrap_or_else(|| "X86_64".to_owned());
        let (now, duration) = (self.now(), self.core.knobs.timing.image);
        let image = ImageRecord {
            id: self.next_id(),
            project: spec.project.clone(),
            name: spec.name.clone(),
            family: spec.family.clone(),
            gib,
            architecture,
            description: spec.description.clone(),
            labels: spec.labels.clone(),
            source: Some(source),
            created: now,
            ready: now.saturating_add(duration),
        };
        let new_operation = NewOperation {
            project: spec.project.clone(),
            scope: Scope::Global,
            kind: "insert",
            target: image.path(),
            target_id: Some(image.id),
        };
        let operation = self.create_operation_with_work(new_operation, duration, Work::Nothing);
        let seq = self.next_seq();
        self.images.insert(seq, image);
        Ok(operation)
    }

    /// Begins to delete an image and returns the operation, which takes `timing.delete`.
    ///
    /// # Errors
    ///
    /// 404 for a missing image, 403 `forbidden` for one of a public project.
    pub(crate) fn delete_image(&mut self, target: &Target) -> Result<Seq, Refusal> {
        let Some((seq, image)) = self.image(&target.project, &target.name) else {
            return Err(Refusal::not_found(&target.path("images")));
        };
        if self.is_public(&image.project) {
            return Err(Refusal::forbidden(&image.path()));
        }
        let (id, path) = (image.id, image.path());
        let new_operation = NewOperation {
            project: target.project.clone(),
            scope: Scope::Global,
            kind: "delete",
            target: path,
            target_id: Some(id),
        };
        Ok(self.create_operation_with_work(
            new_operation,
            self.core.knobs.timing.delete,
            Work::DeleteImage(seq),
        ))
    }

    /// Returns whether a project is one of those that only have public images.
    pub(crate) fn is_public(&self, project: &str) -> bool {
        self.core
            .knobs
            .images
            .iter()
            .any(|image| image.project == project)
    }
}
