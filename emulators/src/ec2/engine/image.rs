//! Images: those of the catalog, and those created from instances.
//!
//! A created image is `pending` for `timing.image` and then `available`; only an available one can
//! be launched. A read that lags does not show an image that was created since, and still shows one that was
//! deregistered since; launches never lag.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Engine, Mode, Seq,
    filter::{self, Filter, Filtered},
    page::{Page, PageRequest},
    read::check_ids,
    record::{State, Tags},
};
use crate::ec2::{catalog::Image, error::Refusal};

/// An image.
#[derive(Clone, Debug)]
pub(crate) struct ImageRecord {
    /// The id, which begins with `ami-`.
    pub(crate) id: String,
    /// The name, unique among the account's images.
    pub(crate) name: String,
    /// The description; empty if there is none.
    pub(crate) description: String,
    /// The owner's account.
    pub(crate) owner: String,
    /// `x86_64` or `arm64`.
    pub(crate) architecture: String,
    /// The device name of the root volume.
    pub(crate) root_device: String,
    /// The size of the root volume in GiB. A launch cannot use a smaller one.
    pub(crate) root_gib: u32,
    /// The id of the root volume's snapshot. Those of the catalog's images are not shown.
    pub(crate) snapshot: String,
    /// The tags.
    pub(crate) tags: Tags,
    /// When it was created.
    pub(crate) created: Duration,
    /// The instance that it was created from; `None` for images of the catalog.
    pub(crate) source: Option<String>,
    /// The time from which it can be launched.
    pub(crate) available: Duration,
    /// Whether it could be launched at the time of the read.
    pub(crate) is_available: bool,
}

/// The parameters of CreateImage.
#[derive(Clone, Debug)]
pub(crate) struct ImageRequest {
    /// The instance to create it from.
    pub(crate) instance: String,
    /// The name.
    pub(crate) name: String,
    /// The description; empty if there is none.
    pub(crate) description: String,
    /// The tags of the image.
    pub(crate) tags: Tags,
    /// The tags of the snapshot.
    pub(crate) snapshot_tags: Tags,
}

/// Amazon's own account, as DescribeImages returns it.
pub(crate) const AMAZON: &str = "137112412989";

impl Engine {
    /// Creates an image of an instance and returns its id. The instance does not reboot.
    ///
    /// # Errors
    ///
    /// `InvalidInstanceID.NotFound`, `InvalidAMIName.Malformed`, `InvalidAMIName.Duplicate`,
    /// `IncorrectInstanceState` unless the instance runs, stops or is stopped.
    pub(crate) fn create_image(
        &mut self,
        request: &ImageRequest,
        mode: Mode,
    ) -> Result<String, Refusal> {
        let found = self.find(std::slice::from_ref(&request.instance))?;
        check_name(&request.name)?;
        let Some(instance) = found.first().and_then(|seq| self.instances.get(seq)) else {
            return Err(Refusal::internal());
        };
        match instance.current().state {
            State::Running | State::Stopping | State::Stopped => {}
            State::Pending | State::ShuttingDown | State::Terminated => {
                let message = format!(
                    "The instance '{}' is not in a state from which an image can be made.",
                    request.instance
                );
                return Err(Refusal::wrong_state(message));
            }
        }
        if let Some(other) = self
            .images
            .values()
            .find(|image| image.name == request.name && image.owner == self.core.knobs.account)
        {
            let message = format!(
                "AMI name {} is already in use by AMI {}",
                request.name, other.id
            );
            return Err(Refusal::client("InvalidAMIName.Duplicate", message));
        }
        mode.check_dry_run()?;
        let fixed = std::sync::Arc::clone(&instance.fixed);
        let root = instance
            .volumes
            .iter()
            .filter_map(|seq| self.volumes.get(seq))
            .find(|volume| volume.device.name == fixed.root_device);
        let image = ImageRecord {
            root_gib: root.map_or(8, |volume| volume.device.gib),
            id: self.ids.next("ami"),
            snapshot: self.ids.next("snap"),
            name: request.name.clone(),
            description: request.description.clone(),
            owner: self.core.knobs.account.clone(),
            architecture: fixed.architecture.clone(),
            root_device: fixed.root_device.clone(),
            tags: request.tags.clone(),
            created: self.now(),
            source: Some(request.instance.clone()),
            available: self.now().saturating_add(self.core.knobs.timing.image),
            is_available: false,
        };
        let id = image.id.clone();
        let volume = root.map(|volume| volume.id.clone()).unwrap_or_default();
        self.add_snapshot(&image, volume, &request.snapshot_tags);
        self.add_image(image);
        Ok(id)
    }

    /// Deregisters an image and returns its snapshot.
    ///
    /// # Errors
    ///
    /// `InvalidAMIID.Malformed`, `InvalidAMIID.NotFound`, `InvalidAMIID.Unavailable` for a deregistered one (API
    /// reference, "Error codes": "the specified AMI has been deregistered or is no longer available"), or
    /// `AuthFailure` for an image of somebody else.
    pub(crate) fn deregister_image(&mut self, id: &str, mode: Mode) -> Result<String, Refusal> {
        check_ids(&[id.to_owned()], "ami", "InvalidAMIID.Malformed")?;
        let Some(image) = self.image(id) else {
            if self
                .deregistered_images
                .values()
                .any(|(_, old)| old.id == id)
            {
                let message = format!("The image ID '{id}' is no longer available");
                return Err(Refusal::client("InvalidAMIID.Unavailable", message));
            }
            return Err(image_not_found(id));
        };
        if image.owner != self.core.knobs.account {
            let message = format!("Not authorized for image:{id}");
            return Err(Refusal::new(403, "AuthFailure", message));
        }
        mode.check_dry_run()?;
        let seq = self.image_ids.remove(id);
        let removed = seq.and_then(|seq| Some((seq, self.images.remove(&seq)?)));
        if let Some((seq, record)) = removed {
            self.deregistered_images.insert(seq, (self.now(), record));
        }
        Ok(image.snapshot)
    }

    /// Returns whether a read of `moment` shows an image.
    pub(crate) fn shows_image(&self, id: &str, moment: Option<Duration>) -> bool {
        let registered = self.images.values().map(|image| (None, image));
        let deregistered = self.deregistered_images.values();
        let mut all = registered.chain(deregistered.map(|(end, image)| (Some(*end), image)));
        all.any(|(end, image)| image.id == id && is_shown(image, end, moment))
    }

    /// Adds the images of the knobs, and removes those that the knobs no longer name.
    pub(crate) fn load_catalog_images(&mut self) {
        let listed = self.core.knobs.images.clone();
        let removed: Vec<(Seq, String)> = self
            .images
            .iter()
            .filter(|(_, image)| {
                image.source.is_none() && !listed.iter().any(|other| other.id == image.id)
            })
            .map(|(seq, image)| (*seq, image.id.clone()))
            .collect();
        for (seq, id) in removed {
            self.images.remove(&seq);
            self.image_ids.remove(&id);
        }
        for image in listed {
            if !self.image_ids.contains_key(&image.id) {
                let record = self.image_record(image);
                self.add_image(record);
            }
        }
    }

    /// Stores an image under its id.
    fn add_image(&mut self, image: ImageRecord) {
        let seq = self.next_seq();
        self.image_ids.insert(image.id.clone(), seq);
        self.images.insert(seq, image);
    }

    /// Returns the record of an image of the knobs, which is available at once.
    fn image_record(&self, image: Image) -> ImageRecord {
        ImageRecord {
            snapshot: format!("snap-{}", image.id.trim_start_matches("ami-")),
            owner: if image.owner.is_empty() {
                AMAZON.to_owned()
            } else {
                image.owner
            },
            id: image.id,
            name: image.name,
            description: image.description,
            architecture: image.architecture,
            root_device: image.root_device,
            root_gib: image.root_gib,
            tags: image.tags,
            created: Duration::ZERO,
            source: None,
            available: self.now(),
            is_available: true,
        }
    }

    /// Returns an image by its id, as it is now.
    pub(crate) fn image(&self, id: &str) -> Option<ImageRecord> {
        let mut image = self.images.get(self.image_ids.get(id)?)?.clone();
        image.is_available = image.available <= self.now();
        Some(image)
    }

    /// Returns an image that can be launched.
    ///
    /// # Errors
    ///
    /// `InvalidAMIID.Malformed`, `InvalidAMIID.NotFound`, or `InvalidAMIID.Unavailable` for a
    /// pending one.
    pub(super) fn image_for_launch(&self, id: &str) -> Result<ImageRecord, Refusal> {
        check_ids(&[id.to_owned()], "ami", "InvalidAMIID.Malformed")?;
        let image = self.image(id).ok_or_else(|| image_not_found(id))?;
        if image.is_available {
            return Ok(image);
        }
        let message = format!("The image ID '{id}' is not available");
        Err(Refusal::client("InvalidAMIID.Unavailable", message))
    }

    /// Returns a page of images, in the order of creation.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for an unknown filter.
    pub(crate) fn images_page(
        &mut self,
        filters: &[Filter],
        paging: &PageRequest,
        moment: Option<Duration>,
    ) -> Result<Page<ImageRecord>, Refusal> {
        filter::check::<ImageRecord>(filters)?;
        let now = self.now();
        let first = paging.position.after + 1;
        let registered = self.images.range(first..);
        let mut all: BTreeMap<Seq, _> = registered
            .map(|(seq, image)| (*seq, (None, image)))
            .collect();
        let deregistered = self.deregistered_images.range(first..);
        all.extend(deregistered.map(|(seq, (end, image))| (*seq, (Some(*end), image))));
        let (page, records_read) = paging.take(all.into_iter().map(|(seq, (end, image))| {
            let mut read = image.clone();
            read.is_available = image.available <= now;
            let passes = is_shown(image, end, moment) && filter::passes(&read, filters);
            (seq, passes.then_some(read))
        }));
        self.core.records_read += records_read;
        Ok(page)
    }
}

/// Returns whether a read of `moment` shows an image, which was deregistered at `end` if at all. Images of the
/// catalog are always shown.
fn is_shown(image: &ImageRecord, end: Option<Duration>, moment: Option<Duration>) -> bool {
    if image.source.is_none() {
        return end.is_none();
    }
    moment.is_some_and(|moment| image.created <= moment && end.is_none_or(|end| moment < end))
}

/// Refuses a name with `InvalidAMIName.Malformed`, unless it has 3 to 128 characters that EC2
/// allows.
fn check_name(name: &str) -> Result<(), Refusal> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "()[] ./-'@_".contains(c);
    if (3..=128).contains(&name.len()) && name.chars().all(plain) {
        return Ok(());
    }
    let message = "AMI names must be between 3 and 128 characters long, and may contain letters, numbers, '(', ')', '[', \
                   ']', ' ', '.', '/', '-', ''', '@' and '_'";
    Err(Refusal::client("InvalidAMIName.Malformed", message))
}

/// Returns the refusal of an image that does not exist: `InvalidAMIID.NotFound`.
pub(crate) fn image_not_found(id: &str) -> Refusal {
    Refusal::client(
        "InvalidAMIID.NotFound",
        format!("The image id '[{id}]' does not exist"),
    )
}

/// The filters of DescribeImages. Only images of the catalog are public.
impl Filtered for ImageRecord {
    /// The filters of images.
    const NAMES: &'static [&'static str] = &[
        "architecture",
        "block-device-mapping.snapshot-id",
        "description",
        "image-id",
        "image-type",
        "is-public",
        "name",
        "owner-alias",
        "owner-id",
        "root-device-name",
        "root-device-type",
        "state",
        "virtualization-type",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        let one = |value: &str| vec![value.to_owned()];
        match name {
            "architecture" => one(&self.architecture),
            "block-device-mapping.snapshot-id" => one(&self.snapshot),
            "description" => one(&self.description),
            "image-id" => one(&self.id),
            "image-type" => one("machine"),
            "is-public" => one(if self.source.is_none() {
                "true"
            } else {
                "false"
            }),
            "name" => one(&self.name),
            "owner-alias" if self.owner == AMAZON => one("amazon"),
            "owner-id" => one(&self.owner),
            "root-device-name" => one(&self.root_device),
            "root-device-type" => one("ebs"),
            "state" => one(if self.is_available {
                "available"
            } else {
                "pending"
            }),
            "virtualization-type" => one("hvm"),
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
