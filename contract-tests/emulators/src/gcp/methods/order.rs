//! From an instance's body to an order: everything is there, fits, and exists.

use serde_json::{Map, Value};

use super::{Call, scheduling};
use crate::gcp::{
    catalog::{DISK_TYPES, region_of},
    engine::{
        World,
        image::ImageRecord,
        order::{DiskOrder, Order, Source},
        record::Access,
        rules::{self, Metadata},
    },
    error::Refusal,
    wire::{
        body::Fields as _,
        link::Named,
        route::{Scope, is_name},
        schema,
    },
};

/// The size of a local disk.
const LOCAL_GIB: u32 = 375;

/// How a body names machine types and disk types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    Links,
    /// By bare names, as bulkInsert does.
    Bare,
}

/// Reads the body of an insert.
pub(super) fn read(
    call: &Call,
    body: &Map<String, Value>,
    world: &World,
) -> Result<Order, Refusal> {
    let name = body
        .text("name")
        .ok_or_else(|| Refusal::required("resource.name"))?;
    if !is_name(name) {
        return Err(Refusal::mismatch("resource.name", name));
    }
    let mut order = read_properties(call, body, world, ("resource", Naming::Links))?;
    name.clone_into(&mut order.name);
    order.deletion_protection = body.flag("deletionProtection").unwrap_or(false);
    order.hostname = body.text("hostname").map(str::to_owned);
    Ok(order)
}

/// Reads what an instance has besides its name.
pub(super) fn read_properties(
    call: &Call,
    body: &Map<String, Value>,
    world: &World,
    (at, naming): (&str, Naming),
) -> Result<Order, Refusal> {
    let Scope::Zone(zone) = &call.target.scope else {
        return Err(Refusal::no_such_path());
    };
    let reader = Reader {
        world,
        project: &call.target.project,
        zone,
        at,
        naming,
    };
    let machine_type = reader.machine_type(body)?;
    let (network, subnetwork, access) = reader.nic(body)?;
    let labels = body.texts("labels");
    rules::check_labels(&format!("{at}.labels"), &labels)?;
    let metadata = body.object("metadata").map(metadata).unwrap_or_default();
    rules::check_metadata(&format!("{at}.metadata"), &metadata)?;
    let echo = schema::ECHOED.into_iter();
    let echo = echo.filter_map(|name| Some((name.to_owned(), body.get(name)?.clone())));
    Ok(Order {
        project: reader.project.to_owned(),
        zone: zone.clone(),
        name: String::new(),
        disks: reader.disks(body, &machine_type)?,
        machine_type,
        network,
        subnetwork,
        access,
        labels,
        metadata,
        tags: reader.tags(body)?,
        scheduling: scheduling::read(body, at)?,
        deletion_protection: false,
        can_ip_forward: body.flag("canIpForward").unwrap_or(false),
        hostname: None,
        request_id: call.query.request_id()?,
        foreign: false,
        echo: echo.collect(),
    })
}

/// The entries of a body's metadata.
pub(super) fn metadata(body: &Map<String, Value>) -> Metadata {
    let items = body.objects("items").into_iter();
    let text = |item: &Map<String, Value>, name: &str| {
        item.text(name).map(str::to_owned).unwrap_or_default()
    };
    Metadata(
        items
            .map(|item| (text(item, "key"), text(item, "value")))
            .collect(),
    )
}

struct Reader<'a> {
    world: &'a World,
    project: &'a str,
    zone: &'a str,
    at: &'a str,
    naming: Naming,
}

impl Reader<'_> {
    fn machine_type(&self, body: &Map<String, Value>) -> Result<String, Refusal> {
        let field = format!("{}.machineType", self.at);
        let given = body
            .text("machineType")
            .ok_or_else(|| Refusal::required(&field))?;
        machine_type(self.world, self.zone, &field, given, self.naming)
    }

    fn nic(&self, body: &Map<String, Value>) -> Result<(String, String, Option<Access>), Refusal> {
        let field = format!("{}.networkInterfaces", self.at);
        let nics = body.objects("networkInterfaces");
        let nic = match &*nics {
            [] => {
                let why = "At least one network interface is required.";
                return Err(Refusal::invalid(&field, "", why));
            }
            [nic] => nic,
            _ => return Err(Refusal::not_emulated("More than one network interface")),
        };
        let region = region_of(self.zone);
        let subnetwork = match (nic.text("subnetwork"), nic.text("network")) {
            (Some(link), _) => self.subnetwork(&field, link)?,
            (None, network) => self.subnetwork_of(network.unwrap_or("global/networks/default"))?,
        };
        let known = self.world.knobs.subnetworks.iter();
        let mut known = known.filter(|known| known.region == region);
        let network = known.find(|known| known.name == subnetwork);
        let network = network.map_or_else(|| "default".to_owned(), |known| known.network.clone());
        Ok((network, subnetwork, self.access(&field, nic)?))
    }

    fn subnetwork(&self, field: &str, link: &str) -> Result<String, Refusal> {
        let named = Named::read(link).ok_or_else(|| malformed(field, "subnetwork", link))?;
        let ["regions", region, "subnetworks", name] = *named.parts() else {
            return Err(malformed(field, "subnetwork", link));
        };
        let mut known = self.world.knobs.subnetworks.iter();
        if region == region_of(self.zone)
            && known.any(|known| known.region == region && known.name == name)
        {
            return Ok(name.to_owned());
        }
        let project = self.project;
        let path = format!("projects/{project}/regions/{region}/subnetworks/{name}");
        Err(Refusal::not_found(&path))
    }

    /// The first subnetwork that a network has in the region.
    fn subnetwork_of(&self, link: &str) -> Result<String, Refusal> {
        let named = Named::read(link).ok_or_else(|| malformed(self.at, "network", link))?;
        let ["global", "networks", name] = *named.parts() else {
            return Err(malformed(self.at, "network", link));
        };
        let region = region_of(self.zone);
        let mut known = self.world.knobs.subnetworks.iter();
        let found = known.find(|known| known.network == name && known.region == region);
        found.map(|known| known.name.clone()).ok_or_else(|| {
            let path = format!("projects/{}/global/networks/{name}", self.project);
            Refusal::not_found(&path)
        })
    }

    fn access(&self, field: &str, nic: &Map<String, Value>) -> Result<Option<Access>, Refusal> {
        let configs = nic.objects("accessConfigs");
        let config = match &*configs {
            [] => return Ok(None),
            [config] => config,
            _ => {
                let why = "At most one access config currently supported.";
                return Err(Refusal::invalid(
                    &format!("{field}[0].accessConfigs"),
                    "",
                    why,
                ));
            }
        };
        if let Some(address) = config.text("natIP") {
            let region = region_of(self.zone);
            let field = format!("{field}[0].accessConfigs[0].natIP");
            let why = format!(
                "The specified external IP address '{address}' was not found in region '{region}'."
            );
            return Err(Refusal::invalid(&field, address, &why));
        }
        let standard = Access::standard();
        let text = |name: &str, default: String| config.text(name).map_or(default, str::to_owned);
        Ok(Some(Access {
            name: text("name", standard.name),
            tier: text("networkTier", standard.tier),
        }))
    }

    fn tags(&self, body: &Map<String, Value>) -> Result<Vec<String>, Refusal> {
        let tags = body
            .object("tags")
            .map(|tags| tags.list("items"))
            .unwrap_or_default();
        for (number, tag) in tags.iter().enumerate() {
            if !is_name(tag) {
                let field = format!("{}.tags.items[{number}]", self.at);
                return Err(Refusal::mismatch(&field, tag));
            }
        }
        Ok(tags)
    }

    fn disks(
        &self,
        body: &Map<String, Value>,
        machine_type: &str,
    ) -> Result<Vec<DiskOrder>, Refusal> {
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
                let why = "The first disk must be the boot disk, and no other.";
                return Err(Refusal::invalid(
                    &format!("{at}.boot"),
                    &disk.boot.to_string(),
                    why,
                ));
            }
            if let Source::Image(image) = &disk.source {
                self.check_architecture(image, machine_type, &at)?;
            }
            disks.push(disk);
        }
        Ok(disks)
    }

    fn disk(&self, disk: &Map<String, Value>, at: &str) -> Result<DiskOrder, Refusal> {
        let none = Map::new();
        let new = disk.object("initializeParams").unwrap_or(&none);
        let kind = self.disk_type(new, at)?;
        let source = self.source(disk, new, at)?;
        let asked = new.long("diskSizeGb").or_else(|| disk.long("diskSizeGb"));
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
        Ok(DiskOrder {
            name: name.map(str::to_owned),
            device: disk.text("deviceName").map(str::to_owned),
            boot: disk.flag("boot").unwrap_or(false),
            auto_delete: disk.flag("autoDelete").unwrap_or(false),
            gib: size(&source, asked, at)?,
            kind,
            labels,
            description: new.text("description").map(str::to_owned),
            interface: text("interface", "SCSI"),
            mode: text("mode", "READ_WRITE"),
            source,
        })
    }

    fn disk_type(&self, new: &Map<String, Value>, at: &str) -> Result<String, Refusal> {
        let Some(given) = new.text("diskType") else {
            return Ok("pd-standard".to_owned());
        };
        let field = format!("{at}.initializeParams.diskType");
        let name = typed(self.zone, &field, given, self.naming, "diskTypes")?;
        if DISK_TYPES.contains(&&*name) {
            return Ok(name);
        }
        let why = format!(
            "Disk type with name '{name}' does not exist in zone '{}'.",
            self.zone
        );
        Err(Refusal::invalid(&field, given, &why))
    }

    fn source(
        &self,
        disk: &Map<String, Value>,
        new: &Map<String, Value>,
        at: &str,
    ) -> Result<Source, Refusal> {
        if let Some(link) = disk.text("source") {
            let field = format!("{at}.source");
            let named = Named::read(link);
            let named = named.ok_or_else(|| Refusal::invalid(&field, link, MALFORMED))?;
            return match *named.parts() {
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
            let why = "A boot disk needs a source or an image.";
            return Err(Refusal::invalid(&format!("{at}.initializeParams"), "", why));
        }
        Ok(Source::Blank)
    }

    fn image(&self, field: &str, link: &str) -> Result<ImageRecord, Refusal> {
        let named = Named::read(link);
        let named = named.ok_or_else(|| Refusal::invalid(field, link, MALFORMED))?;
        let project = named.project.as_deref().unwrap_or(self.project);
        let image = match *named.parts() {
            // gcloud asks for the image that is newest in the zone.
            ["global", "images", "family", family] | ["zones", _, "imageFamilyViews", family] => {
                let path = format!("projects/{project}/global/images/family/{family}");
                let found = self.world.image_of_family(project, family);
                found.ok_or_else(|| Refusal::not_found(&path))?
            }
            ["global", "images", name] => {
                let found = self.world.image(project, name).map(|(_, image)| image);
                let why = "The referenced image resource cannot be found.";
                found.ok_or_else(|| Refusal::invalid(field, link, why))?
            }
            _ => return Err(Refusal::invalid(field, link, MALFORMED)),
        };
        if image.ready > self.world.now() {
            return Err(Refusal::not_ready(&image.path()));
        }
        Ok(image.clone())
    }

    fn check_architecture(
        &self,
        image: &ImageRecord,
        machine_type: &str,
        at: &str,
    ) -> Result<(), Refusal> {
        let spec = self.world.machine_type(machine_type);
        if spec.is_none_or(|spec| spec.architecture == image.architecture) {
            return Ok(());
        }
        let field = format!("{at}.initializeParams.sourceImage");
        let why = format!(
            "The image's architecture '{}' is not supported by the machine type '{machine_type}'.",
            image.architecture
        );
        Err(Refusal::invalid(&field, &image.path(), &why))
    }
}

const MALFORMED: &str = "The URL is malformed.";

fn malformed(field: &str, name: &str, link: &str) -> Refusal {
    Refusal::invalid(&format!("{field}[0].{name}"), link, MALFORMED)
}

/// The machine type that a field names, if the zone has it.
pub(super) fn machine_type(
    world: &World,
    zone: &str,
    field: &str,
    given: &str,
    naming: Naming,
) -> Result<String, Refusal> {
    let name = typed(zone, field, given, naming, "machineTypes")?;
    if world
        .machine_type(&name)
        .is_some_and(|spec| spec.is_in(zone))
    {
        return Ok(name);
    }
    let why = format!("Machine type with name '{name}' does not exist in zone '{zone}'.");
    Err(Refusal::invalid(field, given, &why))
}

/// The name of a type that a zone has, from its link or bare.
fn typed(
    zone: &str,
    field: &str,
    given: &str,
    naming: Naming,
    collection: &str,
) -> Result<String, Refusal> {
    if naming == Naming::Bare {
        return if is_name(given) {
            Ok(given.to_owned())
        } else {
            Err(Refusal::mismatch(field, given))
        };
    }
    let named = Named::read(given).ok_or_else(|| Refusal::invalid(field, given, MALFORMED))?;
    match *named.parts() {
        ["zones", of, found, name] if found == collection => {
            if of == zone {
                Ok(name.to_owned())
            } else {
                let why = format!("The zone '{of}' is not the zone of the instance, '{zone}'.");
                Err(Refusal::invalid(field, given, &why))
            }
        }
        _ => Err(Refusal::invalid(field, given, MALFORMED)),
    }
}

/// How large a disk is to be.
fn size(source: &Source, asked: Option<i64>, at: &str) -> Result<u32, Refusal> {
    let least = match source {
        Source::Local => return Ok(LOCAL_GIB),
        Source::Existing(_) => return Ok(0),
        Source::Image(image) => image.gib,
        Source::Blank => 10,
    };
    let Some(asked) = asked else {
        return Ok(least);
    };
    let field = format!("{at}.initializeParams.diskSizeGb");
    let gib = u32::try_from(asked)
        .ok()
        .filter(|gib| (1..=65_536).contains(gib));
    let Some(gib) = gib else {
        let why = "Disk size must be between 1 GB and 65536 GB.";
        return Err(Refusal::invalid(&field, &asked.to_string(), why));
    };
    if matches!(source, Source::Image(_)) && gib < least {
        let why = format!("Requested disk size cannot be smaller than the image size ({least} GB)");
        return Err(Refusal::invalid(&field, &asked.to_string(), &why));
    }
    Ok(gib)
}
