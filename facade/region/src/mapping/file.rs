//! A region's mapping as people write it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    str::FromStr,
};

use fleetwright as native;

use crate::{
    catalog::{Catalog, EntryId},
    file::{Fields, Problems, among, parsed, read_document},
    ids::{FlavorId, ImageId, NetworkId, RegionId, SecurityGroupId},
};

/// What one region's provider calls things.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegionMapping {
    /// Which region.
    pub region: RegionId,
    /// What is behind it.
    pub provider: Provider,
    /// Where servers go whose network has no zone of its own.
    pub zone: Option<native::Zone>,
    /// The flavors that the region has.
    pub flavors: BTreeMap<FlavorId, native::InstanceType>,
    /// The images that the region has.
    pub images: BTreeMap<ImageId, native::ImageId>,
    /// Networks with an entry of their own.
    pub networks: BTreeMap<NetworkId, NetworkMapping>,
    /// What stands for all other networks.
    pub default_network: Option<NetworkMapping>,
    /// Security groups.
    pub security_groups: BTreeMap<SecurityGroupId, native::SecurityGroupId>,
}

/// What stands behind a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// EC2.
    Ec2,
    /// Compute Engine.
    Gcp,
    /// Azure.
    Azure,
    /// The simulated cloud.
    Memory,
}

/// What stands behind a network.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkMapping {
    /// The native network or subnet.
    pub subnet: native::NetworkId,
    /// The native security groups that all its servers get.
    pub security_groups: BTreeSet<native::SecurityGroupId>,
    /// Its zone, if it has one.
    pub zone: Option<native::Zone>,
}

impl RegionMapping {
    /// Reads a file and compares it with the catalog, or tells everything that is wrong with it. Entries of the
    /// catalog that are retired may be mapped, and should be for as long as something stands on them.
    pub fn parse(text: &str, catalog: &Catalog) -> Result<Self, Problems> {
        let read = read_document(text, |fields| Self::read(fields, catalog))?;
        // Whatever is missing was noted, and then nothing is answered.
        read.ok_or_else(|| Problems::only("the mapping could not be read"))
    }

    /// What the catalog offers and this region does not have.
    pub fn unmapped(&self, catalog: &Catalog) -> Vec<EntryId> {
        let flavors = catalog
            .flavors()
            .filter(|flavor| !flavor.retired && !self.flavors.contains_key(&flavor.id))
            .map(|flavor| flavor.id.clone().into());
        let images = catalog
            .images()
            .filter(|image| !image.retired && image.origin.is_file())
            .filter(|image| !self.images.contains_key(&image.id))
            .map(|image| image.id.clone().into());
        flavors.chain(images).collect()
    }

    fn read(fields: &mut Fields<'_, '_>, catalog: &Catalog) -> Option<Self> {
        let region = fields.required("region", |value| parsed("an id in quotes", value));
        let providers = [
            ("ec2", Provider::Ec2),
            ("gcp", Provider::Gcp),
            ("azure", Provider::Azure),
            ("memory", Provider::Memory),
        ];
        let provider = fields.required("provider", |value| among(&providers, value));
        let zone = zone(fields);
        let flavors = named(fields, "flavors", |id: &FlavorId| {
            catalog.flavor(id).is_some()
        });
        let images = named(fields, "images", |id: &ImageId| catalog.image(id).is_some());
        let (networks, default_network) = networks(fields);
        let security_groups = named(fields, "security-groups", |_: &SecurityGroupId| true);
        Some(Self {
            region: region?,
            provider: provider?,
            zone,
            flavors,
            images,
            networks,
            default_network,
            security_groups,
        })
    }
}

/// A table from our ids to native names, as long as each id is one that there is.
fn named<I, N>(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    exists: impl Fn(&I) -> bool,
) -> BTreeMap<I, N>
where
    I: FromStr<Err: Display> + Ord + Display,
    N: FromStr<Err: Display>,
{
    let Some(table) = fields.table(name) else {
        return BTreeMap::new();
    };
    let entries = table.keyed(|key, value| {
        if value.is_table() {
            return Err(format!(
                "a table stands here: want a name in quotes; if the id has a dot, put it in quotes too: \"{key}...\""
            ));
        }
        let id: I = key.parse().map_err(|wrong: I::Err| wrong.to_string())?;
        if !exists(&id) {
            return Err("the catalog never had it: want one that it has".to_owned());
        }
        Ok((id, parsed("a name in quotes", value)?))
    });
    entries.into_iter().collect()
}

fn networks(
    fields: &mut Fields<'_, '_>,
) -> (BTreeMap<NetworkId, NetworkMapping>, Option<NetworkMapping>) {
    let (mut networks, mut default) = (BTreeMap::new(), None);
    let Some(table) = fields.table("networks") else {
        return (networks, default);
    };
    for (key, inner) in table.keyed_tables() {
        match key.get_ref().as_ref() {
            "default" => default = NetworkMapping::read(inner),
            text => match text.parse() {
                Ok(id) => {
                    let read = NetworkMapping::read(inner);
                    networks.extend(read.map(|network| (id, network)));
                }
                Err(wrong) => inner.wrong(format!("{wrong}, or default")),
            },
        }
    }
    (networks, default)
}

impl NetworkMapping {
    fn read(mut fields: Fields<'_, '_>) -> Option<Self> {
        let subnet = fields.required("subnet", |value| parsed("a name in quotes", value));
        let security_groups =
            fields.each("security-groups", |value| parsed("a name in quotes", value));
        let zone = zone(&mut fields);
        fields.finish();
        Some(Self {
            subnet: subnet?,
            security_groups: security_groups.into_iter().collect(),
            zone,
        })
    }
}

fn zone(fields: &mut Fields<'_, '_>) -> Option<native::Zone> {
    fields.optional("zone", |value| parsed("a name in quotes", value))
}
