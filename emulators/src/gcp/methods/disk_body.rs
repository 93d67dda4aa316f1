//! Parses the disks of an instance's body: new, existing and local ones, and their images.
//!
//! The first disk must be the boot disk. A new disk is blank or has the content of an image; the
//! size defaults to that of the image, or to 10 GiB.

use serde_json::{Map, Value};

use super::instance_body::{MALFORMED, Reader, type_name};
use crate::gcp::{
    catalog::DISK_TYPES,
    engine::{
        image::ImageRecord,
        rules,
        spec::{DiskSpec, Source},
    },
    error::Refusal,
    wire::{body::Fields as _, link::ResourceLink, route::is_name},
};

/// The size of a local SSD in GiB.
const LOCAL_GIB: u32 = 375;

impl Reader<'_> {
    /// Parses all disks.
    ///
    /// # Errors
    ///
    /// 400 `invalid` without disks, for a boot disk that is not the first one, or for an image of
    /// another architecture than the machine type.
    pub(super) fn disks(
        &self,
        body: &Map<String, Value>,
        machine_type: &str,
    ) -> Result<Vec<DiskSpec>, Refusal> {
        let given = body.objects("disks");
        let field = format!("{}.disks", self.at);
        if given.is_empty() {
            return Err(Refusal::invalid(&field, "", "No disks are specified."));
        }
        let mut disks = Vec::new();
        for (number, disk) in given.into_iter().enumerate() {
            let at = format!("{field}[{number}]");
            let disk = self.disk(disk, &at)?;
            if disk.boot != (number == 0) {
                let problem = "The first disk must be the boot disk, and no other.";
                return Err(Refusal::invalid(
                    &format!("{at}.boot"),
                    &disk.boot.to_string(),
                    problem,
                ));
            }
            if let Source::Image(image) = &disk.source {
                self.check_architecture(image, machine_type, &at)?;
            }
            disks.push(disk);
        }
        Ok(disks)
    }

    /// Parses one disk. `at` is its path in the body.
    fn disk(&self, disk: &Map<String, Value>, at: &str) -> Result<DiskSpec, Refusal> {
        let none = Map::new();
        let new = disk.object("initializeParams").unwrap_or(&none);
        let kind = self.disk_type(new, at)?;
        let source = self.source(disk, new, at)?;
        let requested = new.long("diskSizeGb").or_else(|| disk.long("diskSizeGb"));
        let labels = new.texts("labels");
        rules::check_labels(&format!("{at}.initializeParams.labels"), &labels)?;
        let name = new.text("diskName");
        if let Some(name) = name.filter(|name| !is_name(name)) {
            return Err(Refusal::mismatch(
                &format!("{at}.initializeParams.diskName"),
                name,
            ));
        }
        let text = |name: &str, default: &str| disk.text(name).unwrap_or(default).to_owned();
        Ok(DiskSpec {
            name: name.map(str::to_owned),
            device: disk.text("deviceName").map(str::to_owned),
            boot: disk.flag("boot").unwrap_or(false),
            auto_delete: disk.flag("autoDelete").unwrap_or(false),
            gib: size(&source, requested, at)?,
            kind,
            labels,
            description: new.text("description").map(str::to_owned),
            interface: text("interface", "SCSI"),
            mode: text("mode", "READ_WRITE"),
            source,
        })
    }

    /// Parses the disk type. Default `pd-standard`.
    ///
    /// # Errors
    ///
    /// 400 `invalid` for an unknown type.
    fn disk_type(&self, new: &Map<String, Value>, at: &str) -> Result<String, Refusal> {
        let Some(given) = new.text("diskType") else {
            return Ok("pd-standard".to_owned());
        };
        let field = format!("{at}.initializeParams.diskType");
        let name = type_name(self.zone, &field, given, self.naming, "diskTypes")?;
        if DISK_TYPES.contains(&&*name) {
            return Ok(name);
        }
        let problem = format!(
            "Disk type with name '{name}' does not exist in zone '{}'.",
            self.zone
        );
        Err(Refusal::invalid(&field, given, &problem))
    }

    /// Parses where the data of a disk comes from: `source`, then `sourceImage`, then the type
    /// `SCRATCH`, else blank.
    ///
    /// # Errors
    ///
    /// 400 `invalid` for a malformed link, a disk of another zone, or a boot disk without data.
    fn source(
        &self,
        disk: &Map<String, Value>,
        new: &Map<String, Value>,
        at: &str,
    ) -> Result<Source, Refusal> {
        if let Some(link) = disk.text("source") {
            let field = format!("{at}.source");
            let parsed = ResourceLink::parse(link);
            let parsed = parsed.ok_or_else(|| Refusal::invalid(&field, link, MALFORMED))?;
            return match *parsed.parts() {
                ["zones", zone, "disks", name] if zone == self.zone => {
                    Ok(Source::Existing(name.to_owned()))
                }
                _ => Err(Refusal::invalid(&field, link, MALFORMED)),
            };
        }
        if let Some(link) = new.text("sourceImage") {
            let field = format!("{at}.initializeParams.sourceImage");
            return self.image(&field, link).map(Source::Image);
        }
        if disk.text("type") == Some("SCRATCH") {
            return Ok(Source::Local);
        }
        if disk.flag("boot").unwrap_or(false) {
            let problem = "A boot disk needs a source or an image.";
            return Err(Refusal::invalid(
                &format!("{at}.initializeParams"),
                "",
                problem,
            ));
        }
        Ok(Source::Blank)
    }

    /// Finds the image that a link names, directly or by its family.
    ///
    /// # Errors
    ///
    /// 404 for a missing family, 400 `invalid` for a missing image, 400 `resourceNotReady` for a
    /// pending one.
    fn image(&self, field: &str, link: &str) -> Result<ImageRecord, Refusal> {
        let parsed = ResourceLink::parse(link);
        let parsed = parsed.ok_or_else(|| Refusal::invalid(field, link, MALFORMED))?;
        let project = parsed.project.as_deref().unwrap_or(self.project);
        let image = match *parsed.parts() {
            // gcloud requests the newest image in the zone.
            ["global", "images", "family", family] | ["zones", _, "imageFamilyViews", family] => {
                let path = format!("projects/{project}/global/images/family/{family}");
                let found = self.engine.image_of_family(project, family);
                found.ok_or_else(|| Refusal::not_found(&path))?
            }
            ["global", "images", name] => {
                let found = self.engine.image(project, name).map(|(_, image)| image);
                let problem = "The referenced image resource cannot be found.";
                found.ok_or_else(|| Refusal::invalid(field, link, problem))?
            }
            _ => return Err(Refusal::invalid(field, link, MALFORMED)),
        };
        if image.ready > self.engine.now() {
            return Err(Refusal::not_ready(&image.path()));
        }
        Ok(image.clone())
    }

    /// Refuses an image that the machine type cannot run, with 400 `invalid`.
    fn check_architecture(
        &self,
        image: &ImageRecord,
        machine_type: &str,
        at: &str,
    ) -> Result<(), Refusal> {
        let spec = self.engine.machine_type(machine_type);
        if spec.is_none_or(|spec| spec.architecture == image.architecture) {
            return Ok(());
        }
        let field = format!("{at}.initializeParams.sourceImage");
        let problem = format!(
            "The image's architecture '{}' is not supported by the machine type '{machine_type}'.",
            image.architecture
        );
        Err(Refusal::invalid(&field, &image.path(), &problem))
    }
}

/// Returns the size of a disk in GiB: the requested one, or the default of its source.
///
/// # Errors
///
/// 400 `invalid` for a size outside 1 to 65536, or below that of the image.
fn size(source: &Source, requested: Option<i64>, at: &str) -> Result<u32, Refusal> {
    let minimum = match source {
        Source::Local => return Ok(LOCAL_GIB),
        Source::Existing(_) => return Ok(0),
        Source::Image(image) => image.gib,
        Source::Blank => 10,
    };
    let Some(requested) = requested else {
        return Ok(minimum);
    };
    let field = format!("{at}.initializeParams.diskSizeGb");
    let gib = u32::try_from(requested)
        .ok()
        .filter(|gib| (1..=65_536).contains(gib));
    let Some(gib) = gib else {
        let problem = "Disk size must be between 1 GB and 65536 GB.";
        return Err(Refusal::invalid(&field, &requested.to_string(), problem));
    };
    if matches!(source, Source::Image(_)) && gib < minimum {
        let problem =
            format!("Requested disk size cannot be smaller than the image size ({minimum} GB)");
        return Err(Refusal::invalid(&field, &requested.to_string(), &problem));
    }
    Ok(gib)
}
