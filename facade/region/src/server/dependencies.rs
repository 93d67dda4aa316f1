//! What a server stands on, and whether it may: asked by the service before it writes a server, answered as data.

use std::{
    collections::BTreeSet,
    fmt::{self, Debug},
    sync::Arc,
};

use async_trait::async_trait;
use fleetwright_identity::{OrganizationId, Principal, ProjectId, Scope};
use fleetwright_store::Check;

use super::{Field, ServerSpec};
use crate::{
    catalog::{Catalog, CatalogService, Flavor, Image, NotOffered, Origin, Unfit, fit},
    ids::{FlavorId, ImageId, RegionId},
    network::{Networks, RecordError, SecurityGroups, SshAuthorities},
};

/// Where a server is to stand, and what of it is new. What is not new was checked when it was.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerPlacement<'a> {
    /// In which region.
    pub region: &'a RegionId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// What the server is to be.
    pub spec: &'a ServerSpec,
    /// The fields that are new, or differ from what was asked for before.
    pub changed: BTreeSet<Field>,
}

impl<'a> ServerPlacement<'a> {
    /// The site of a server that is to be made: everything is new.
    pub fn new(
        region: &'a RegionId,
        tenant: (OrganizationId, ProjectId),
        spec: &'a ServerSpec,
    ) -> Self {
        Self {
            region,
            organization: tenant.0,
            project: tenant.1,
            spec,
            changed: Field::ALL.into(),
        }
    }

    /// The same for a server that was asked to be something else before.
    #[must_use]
    pub fn changed_from(mut self, before: &ServerSpec) -> Self {
        self.changed = before.changed(self.spec);
        self
    }

    fn has_new(&self, fields: &[Field]) -> bool {
        fields.iter().any(|field| self.changed.contains(field))
    }
}

/// Says whether a server may stand where it is asked to.
///
/// # Contract
///
/// The answer is what must still hold when the server is written, and goes into that very transaction: what is deleted between
/// the look and the write is not stood on. Asking has no effect. Of what a field refers to nothing is asked unless the field
/// [changed](ServerPlacement::changed), so that what a server has never keeps it from an edit of something else.
#[async_trait]
pub trait DependencyChecker: Debug + Send + Sync {
    /// The checks for the transaction that writes the server, or why it may not stand there.
    async fn check(
        &self,
        who: &Principal,
        site: &ServerPlacement<'_>,
    ) -> Result<Vec<Check>, DependencyError>;
}

/// Why a server may not stand where it was asked to. What the caller may not see is told as what does not exist.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DependencyError {
    /// The network, a security group or the SSH certificate authority will not do.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// There is no such flavor, or the caller may not know of it.
    #[error("there is no flavor {0}: choose one that is offered")]
    NoFlavor(FlavorId),
    /// There is no such image, or the caller or the server's organization may not know of it.
    #[error("there is no image {0}: choose one that is offered")]
    NoImage(ImageId),
    /// The flavor or the image is there and may not be chosen anew.
    #[error(transparent)]
    NotOffered(#[from] NotOffered),
    /// The image does not boot on the flavor.
    #[error("image {image} does not boot on flavor {flavor}: choose another of either")]
    Unfit {
        /// Which flavor.
        flavor: FlavorId,
        /// Which image.
        image: ImageId,
        /// Every reason.
        source: Unfit,
    },
    /// The image was made of a server of another region.
    #[error("image {image} was made in region {made_in}: choose one that is in region {region}")]
    ImageElsewhere {
        /// Which image.
        image: ImageId,
        /// Where it is.
        made_in: RegionId,
        /// Where it would have to be.
        region: RegionId,
    },
}

/// The ground of tenants: what they made themselves, and the catalog.
///
/// A network must be there, open, and of the server's region, organization and project; security groups must be on it; an SSH
/// certificate authority must be of the same project. A flavor and an image must be offered and fit each other, and the image
/// must be everybody's or the organization's. All of it must be seen by the caller. A service that asks in a tenant's
/// stead sees more than the tenant: it first asks here in the tenant's name.
///
/// Networks, groups and authorities are claimed by the record that is written, and each has its check in the same
/// transaction: whichever of a server and a deletion is first, the other one is refused. The catalog needs no check there,
/// since nothing in it is ever destroyed. Whether a region has a mapping for what the catalog offers is its planner's
/// to say, when the server is launched.
pub struct TenantDependencies {
    networks: Arc<Networks>,
    groups: Arc<SecurityGroups>,
    authorities: Arc<SshAuthorities>,
    catalog: Arc<CatalogService>,
}

impl TenantDependencies {
    /// Of the services that keep each part of it, over the store that the servers are in.
    pub fn new(
        networks: Arc<Networks>,
        groups: Arc<SecurityGroups>,
        authorities: Arc<SshAuthorities>,
        catalog: Arc<CatalogService>,
    ) -> Self {
        Self {
            networks,
            groups,
            authorities,
            catalog,
        }
    }

    async fn check_network(
        &self,
        who: &Principal,
        site: &ServerPlacement<'_>,
    ) -> Result<Check, RecordError> {
        let found = self.networks.get(who, site.spec.network).await?;
        let elsewhere = |wanted: String| RecordError::Elsewhere {
            what: "network",
            id: site.spec.network.to_string(),
            wanted,
        };
        let network = &found.value;
        if (network.organization, network.project) != (site.organization, site.project) {
            let wanted = Scope::Project(site.organization, site.project);
            return Err(elsewhere(wanted.to_string()));
        }
        if network.region != *site.region {
            return Err(elsewhere(format!("region {}", site.region)));
        }
        self.networks.check_open(&found)
    }

    fn check_catalog(
        &self,
        who: &Principal,
        site: &ServerPlacement<'_>,
    ) -> Result<(), DependencyError> {
        let catalog = self.catalog.current();
        let flavor = self.flavor(&catalog, who, site)?;
        let image = self.image(&catalog, who, site)?;
        fit(flavor, image).map_err(|source| DependencyError::Unfit {
            flavor: flavor.id.clone(),
            image: image.id.clone(),
            source,
        })
    }

    fn flavor<'c>(
        &self,
        catalog: &'c Catalog,
        who: &Principal,
        site: &ServerPlacement<'_>,
    ) -> Result<&'c Flavor, DependencyError> {
        let id = &site.spec.flavor;
        let absent = || DependencyError::NoFlavor(id.clone());
        let flavor = catalog.flavor(id).ok_or_else(absent)?;
        if site.has_new(&[Field::Flavor]) {
            self.catalog.flavor(who, id).ok_or_else(absent)?;
            flavor.check_offered()?;
        }
        Ok(flavor)
    }

    fn image<'c>(
        &self,
        catalog: &'c Catalog,
        who: &Principal,
        site: &ServerPlacement<'_>,
    ) -> Result<&'c Image, DependencyError> {
        let id = &site.spec.image;
        let absent = || DependencyError::NoImage(id.clone());
        let image = catalog.image(id).ok_or_else(absent)?;
        if !site.has_new(&[Field::Image]) {
            return Ok(image);
        }
        self.catalog.image(who, id).ok_or_else(absent)?;
        // Whatever the caller sees: the server is a tenant's.
        let tenant = Scope::Project(site.organization, site.project);
        if !image.visibility.scope().contains(&tenant) {
            return Err(absent());
        }
        image.check_offered()?;
        match &image.origin {
            Origin::Made { region, .. } if region != site.region => {
                Err(DependencyError::ImageElsewhere {
                    image: id.clone(),
                    made_in: region.clone(),
                    region: site.region.clone(),
                })
            }
            Origin::Made { .. } | Origin::File => Ok(image),
        }
    }
}

#[async_trait]
impl DependencyChecker for TenantDependencies {
    async fn check(
        &self,
        who: &Principal,
        site: &ServerPlacement<'_>,
    ) -> Result<Vec<Check>, DependencyError> {
        let spec = site.spec;
        let mut checks = Vec::new();
        if site.has_new(&[Field::Network]) {
            checks.push(self.check_network(who, site).await?);
        }
        if site.has_new(&[Field::Network, Field::SecurityGroups]) {
            let ids: Vec<_> = spec.security_groups.iter().copied().collect();
            let (_, seen) = self.groups.for_server(who, spec.network, &ids).await?;
            checks.extend(seen);
        }
        if let (true, Some(id)) = (site.has_new(&[Field::SshAuthority]), spec.ssh_authority) {
            let tenant = (site.organization, site.project);
            let (_, seen) = self.authorities.for_server(who, tenant, id).await?;
            checks.push(seen);
        }
        if site.has_new(&[Field::Flavor, Field::Image]) {
            self.check_catalog(who, site)?;
        }
        Ok(checks)
    }
}

impl Debug for TenantDependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TenantDependencies")
    }
}

/// No ground at all: servers stand wherever they are asked to.
///
/// **It checks nothing.** Neither that a network, a group, an authority, a flavor or an image exists, nor whose it is, nor that
/// it is open, offered or fits. For simulations and tests of what comes after a wish, and for programs whose servers stand
/// on nothing that is kept here; never for tenants.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDependencyCheck;

#[async_trait]
impl DependencyChecker for NoDependencyCheck {
    async fn check(
        &self,
        _: &Principal,
        _: &ServerPlacement<'_>,
    ) -> Result<Vec<Check>, DependencyError> {
        Ok(Vec::new())
    }
}
