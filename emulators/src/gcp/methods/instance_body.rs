//! Parses an instance's body and checks that everything it names exists.
//!
//! The result is a complete spec with all defaults. Fields that Compute Engine has and the
//! emulator does not are refused, never ignored.

use serde_json::{Map, Value};

use super::{Call, scheduling};
use crate::gcp::{
    catalog::region_of,
    engine::{
        Engine,
        record::AccessConfig,
        rules::{self, Metadata},
        spec::InstanceSpec,
    },
    error::Refusal,
    wire::{
        body::Fields as _,
        link::ResourceLink,
        route::{Scope, is_name},
        schema,
    },
};

/// How a body names machine types and disk types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// By links, as insert does. A bare name is refused.
    Links,
    /// By bare names, as bulkInsert does. A link is refused.
    Bare,
}

/// Parses the body of an insert.
///
/// # Errors
///
/// 400 `required` or `invalid` with the path of the field; 404 for a missing network, subnetwork
/// or image family.
pub(super) fn read(
    call: &Call,
    body: &Map<String, Value>,
    engine: &Engine,
) -> Result<InstanceSpec, Refusal> {
    let name = body
        .text("name")
        .ok_or_else(|| Refusal::required("resource.name"))?;
    if !is_name(name) {
        return Err(Refusal::mismatch("resource.name", name));
    }
    let mut spec = read_properties(call, body, engine, ("resource", Naming::Links))?;
    name.clone_into(&mut spec.name);
    spec.deletion_protection = body.flag("deletionProtection").unwrap_or(false);
    spec.hostname = body.text("hostname").map(str::to_owned);
    Ok(spec)
}

/// Parses the properties of an instance other than its name. `at` is their path in the body, for
/// errors.
///
/// # Errors
///
/// As `read`.
pub(super) fn read_properties(
    call: &Call,
    body: &Map<String, Value>,
    engine: &Engine,
    (at, naming): (&str, Naming),
) -> Result<InstanceSpec, Refusal> {
    let Scope::Zone(zone) = &call.target.scope else {
        return Err(Refusal::no_such_path());
    };
    let reader = Reader {
        engine,
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
    Ok(InstanceSpec {
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
        external: false,
        echo: echo.collect(),
    })
}

/// Returns the entries of a body's metadata, in their order. A missing value is empty.
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

/// Parses a body for a zone of a project.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    /// The engine, to look up names.
    pub(super) engine: &'a Engine,
    /// The project of the call.
    pub(super) project: &'a str,
    /// The zone of the call.
    pub(super) zone: &'a str,
    /// The path of the properties in the body, for errors.
    pub(super) at: &'a str,
    /// How types are named.
    pub(super) naming: Naming,
}

impl Reader<'_> {
    /// Parses the machine type, which is required.
    fn machine_type(&self, body: &Map<String, Value>) -> Result<String, Refusal> {
        let field = format!("{}.machineType", self.at);
        let given = body
            .text("machineType")
            .ok_or_else(|| Refusal::required(&field))?;
        machine_type(self.engine, self.zone, &field, given, self.naming)
    }

    /// Parses the only network interface: network, subnetwork and external address.
    ///
    /// # Errors
    ///
    /// 400 `invalid` without an interface, 400 `notSupported` for several.
    fn nic(
        &self,
        body: &Map<String, Value>,
    ) -> Result<(String, String, Option<AccessConfig>), Refusal> {
        let field = format!("{}.networkInterfaces", self.at);
        let nics = body.objects("networkInterfaces");
        let nic = match &*nics {
            [] => {
                let problem = "At least one network interface is required.";
                return Err(Refusal::invalid(&field, "", problem));
            }
            [nic] => nic,
            _ => return Err(Refusal::not_emulated("More than one network interface")),
        };
        let region = region_of(self.zone);
        let subnetwork = match (nic.text("subnetwork"), nic.text("network")) {
            (Some(link), _) => self.subnetwork(&field, link)?,
            (None, network) => self.subnetwork_of(network.unwrap_or("global/networks/default"))?,
        };
        let known = self.engine.core.knobs.subnetworks.iter();
        let mut known = known.filter(|known| known.region == region);
        let network = known.find(|known| known.name == subnetwork);
        let network = network.map_or_else(|| "default".to_owned(), |known| known.network.clone());
        Ok((network, subnetwork, self.access(&field, nic)?))
    }

    /// Parses the link of a subnetwork, which must be in the region of the zone.
    fn subnetwork(&self, field: &str, link: &str) -> Result<String, Refusal> {
        let parsed =
            ResourceLink::parse(link).ok_or_else(|| malformed(field, "subnetwork", link))?;
        let ["regions", region, "subnetworks", name] = *parsed.parts() else {
            return Err(malformed(field, "subnetwork", link));
        };
        let mut known = self.engine.core.knobs.subnetworks.iter();
        if region == region_of(self.zone)
            && known.any(|known| known.region == region && known.name == name)
        {
            return Ok(name.to_owned());
        }
        let project = self.project;
        let path = format!("projects/{project}/regions/{region}/subnetworks/{name}");
        Err(Refusal::not_found(&path))
    }

    /// Returns the first subnetwork that a network has in the region.
    fn subnetwork_of(&self, link: &str) -> Result<String, Refusal> {
        let parsed =
            ResourceLink::parse(link).ok_or_else(|| malformed(self.at, "network", link))?;
        let ["global", "networks", name] = *parsed.parts() else {
            return Err(malformed(self.at, "network", link));
        };
        let region = region_of(self.zone);
        let mut known = self.engine.core.knobs.subnetworks.iter();
        let found = known.find(|known| known.network == name && known.region == region);
        found.map(|known| known.name.clone()).ok_or_else(|| {
            let path = format!("projects/{}/global/networks/{name}", self.project);
            Refusal::not_found(&path)
        })
    }

    /// Parses the access config of an interface; an interface without one gets no external
    /// address.
    ///
    /// # Errors
    ///
    /// 400 `invalid` for several configs, or for `natIP`, because there are no static addresses.
    fn access(
        &self,
        field: &str,
        nic: &Map<String, Value>,
    ) -> Result<Option<AccessConfig>, Refusal> {
        let configs = nic.objects("accessConfigs");
        let config = match &*configs {
            [] => return Ok(None),
            [config] => config,
            _ => {
                let problem = "At most one access config currently supported.";
                return Err(Refusal::invalid(
                    &format!("{field}[0].accessConfigs"),
                    "",
                    problem,
                ));
            }
        };
        if let Some(address) = config.text("natIP") {
            let region = region_of(self.zone);
            let field = format!("{field}[0].accessConfigs[0].natIP");
            let problem = format!(
                "The specified external IP address '{address}' was not found in region '{region}'."
            );
            return Err(Refusal::invalid(&field, address, &problem));
        }
        let standard = AccessConfig::standard();
        let text = |name: &str, default: String| config.text(name).map_or(default, str::to_owned);
        Ok(Some(AccessConfig {
            name: text("name", standard.name),
            tier: text("networkTier", standard.tier),
        }))
    }

    /// Parses the network tags, which must be names.
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
}

/// The message of a link that cannot be parsed.
pub(super) const MALFORMED: &str = "The URL is malformed.";

/// Returns the refusal of a malformed link in an interface.
fn malformed(field: &str, name: &str, link: &str) -> Refusal {
    Refusal::invalid(&format!("{field}[0].{name}"), link, MALFORMED)
}

/// Returns the machine type that a field names.
///
/// # Errors
///
/// 400 `invalid` for a malformed name, and for a type that the zone does not offer.
pub(super) fn machine_type(
    engine: &Engine,
    zone: &str,
    field: &str,
    given: &str,
    naming: Naming,
) -> Result<String, Refusal> {
    let name = type_name(zone, field, given, naming, "machineTypes")?;
    if engine
        .machine_type(&name)
        .is_some_and(|spec| spec.is_in(zone))
    {
        return Ok(name);
    }
    let problem = format!("Machine type with name '{name}' does not exist in zone '{zone}'.");
    Err(Refusal::invalid(field, given, &problem))
}

/// Returns the name of a machine or disk type from its link or from its bare name.
///
/// # Errors
///
/// 400 `invalid` for the other form, and for a link to another zone.
pub(super) fn type_name(
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
    let parsed =
        ResourceLink::parse(given).ok_or_else(|| Refusal::invalid(field, given, MALFORMED))?;
    match *parsed.parts() {
        ["zones", named_zone, found, name] if found == collection => {
            if named_zone == zone {
                Ok(name.to_owned())
            } else {
                let problem =
                    format!("The zone '{named_zone}' is not the zone of the instance, '{zone}'.");
                Err(Refusal::invalid(field, given, &problem))
            }
        }
        _ => Err(Refusal::invalid(field, given, MALFORMED)),
    }
}
