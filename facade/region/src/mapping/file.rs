//! The mapping file of a region, which operators write.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    str::FromStr,
};

use fleetwright as native;

use crate::{
    catalog::{Catalog, EntryId},
    file::{Fields, Problems, one_of, parse_text, read_document},
    ids::{FlavorId, ImageId, NetworkId, RegionId, SecurityGroupId},
};

/// The native names of one region.
///
/// ```
/// use fleetwright_region::{
///     catalog::{Catalog, CatalogFile},
///     mapping::{Provider, RegionMapping},
/// };
///
/// # const CATALOG: &str = include_str!("../../catalog.example.toml");
/// let catalog = Catalog::default().reload(&CatalogFile::parse(CATALOG)?)?.catalog;
/// let mapping = RegionMapping::parse(
///     r#"
///     region = "eu-1"
///     provider = "ec2"
///     zone = "eu-central-1a"
///     [flavors]
///     standard-4 = "m7i.xlarge"
///     [images]
///     "ubuntu-24.04" = "ami-0123456789abcdef0"
///     [networks.default]
///     subnet = "subnet-0a1b"
///     security-groups = ["sg-0c2d"]
///     "#,
///     &catalog,
/// )?;
/// assert_eq!(mapping.provider, Provider::Ec2);
/// // The entries that the catalog offers and this region lacks.
/// for entry in mapping.unmapped(&catalog) {
///     eprintln!("{entry} is not mapped in {}", mapping.region);
/// }
/// # Ok::<(), fleetwright_region::file::Problems>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegionMapping {
    /// The region.
    pub region: RegionId,
    /// The provider.
    pub provider: Provider,
    /// The zone of networks that have none. Default: the provider chooses.
    pub zone: Option<native::Zone>,
    /// The flavors of the region. A flavor that is missing here is not offered in the region.
    pub flavors: BTreeMap<FlavorId, native::InstanceType>,
    /// The images of the region. An image that is missing here is not offered in the region.
    pub images: BTreeMap<ImageId, native::ImageId>,
    /// The networks with their own entry.
    pub networks: BTreeMap<NetworkId, NetworkMapping>,
    /// The mapping of all other networks, `[networks.default]`. Default: servers in them are not launched.
    pub default_network: Option<NetworkMapping>,
    /// The security groups. A server with a group that is missing here is not launched.
    pub security_groups: BTreeMap<SecurityGroupId, native::SecurityGroupId>,
}

/// The provider of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// EC2: `ec2` in the file.
    Ec2,
    /// Compute Engine: `gcp`.
    Gcp,
    /// Azure: `azure`.
    Azure,
    /// The memory cloud: `memory`.
    Memory,
}

impl Provider {
    /// Returns its name in the file, which is also the one that its provisioner declares.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Gcp => "gcp",
            Self::Azure => "azure",
            Self::Memory => "memory",
        }
    }

    /// Every provider.
    pub const ALL: [Self; 4] = [Self::Ec2, Self::Gcp, Self::Azure, Self::Memory];
}

/// The native names of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkMapping {
    /// The native network or subnet.
    pub subnet: native::NetworkId,
    /// The native security groups of all its servers, in addition to their own. Default: none.
    pub security_groups: BTreeSet<native::SecurityGroupId>,
    /// The zone. Default: the zone of the region.
    pub zone: Option<native::Zone>,
}

impl RegionMapping {
    /// Parses a mapping file and checks it against the catalog. Map retired entries as long as servers use them.
    ///
    /// # Errors
    ///
    /// Every problem of the file, with line and column. An entry that the catalog never had is a problem.
    pub fn parse(text: &str, catalog: &Catalog) -> Result<Self, Problems> {
        let read = read_document(text, |fields| Self::read(fields, catalog))?;
        // A missing field is a problem, and was returned as an error above.
        read.ok_or_else(|| Problems::single("the mapping could not be read"))
    }

    /// Returns the entries that the catalog offers and that this region has no mapping for, flavors first.
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
        let region = fields.required("region", |value| parse_text("an id in quotes", value));
        let providers = Provider::ALL.map(|provider| (provider.as_str(), provider));
        let provider = fields.required("provider", |value| one_of(&providers, value));
        let zone = zone(fields);
        // Also what this process cannot read: an older version has to start with the mapping of a newer one.
        let flavors = native_names(fields, "flavors", |id: &FlavorId| {
            catalog.has(&id.clone().into())
        });
        let images = native_names(fields, "images", |id: &ImageId| {
            catalog.has(&id.clone().into())
        });
        let (networks, default_network) = networks(fields);
        let security_groups = native_names(fields, "security-groups", |_: &SecurityGroupId| true);
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

/// Reads a table from ids to native names, and checks that each id exists.
fn native_names<I, N>(
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
                "found a table: expected a name in quotes; if the id has a dot, put it in quotes too: \"{key}...\""
            ));
        }
        let id: I = key.parse().map_err(|error: I::Err| error.to_string())?;
        if !exists(&id) {
            return Err("it is not in the catalog: expected an id of the catalog".to_owned());
        }
        Ok((id, parse_text("a name in quotes", value)?))
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
                Err(error) => inner.report(format!("{error}, or default")),
            },
        }
    }
    (networks, default)
}

impl NetworkMapping {
    fn read(mut fields: Fields<'_, '_>) -> Option<Self> {
        let subnet = fields.required("subnet", |value| parse_text("a name in quotes", value));
        let security_groups = fields.list("security-groups", |value| {
            parse_text("a name in quotes", value)
        });
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
    fields.optional("zone", |value| parse_text("a name in quotes", value))
}
