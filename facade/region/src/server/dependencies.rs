//! The dependencies of a server: region, network, security groups, authority, flavor and image. Checked by the service before it writes
//! a server; the result is data for the transaction.

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
    catalog::{
        Catalog, CatalogService, Flavor, Image, Incompatible, NotOffered, Origin, check_compatible,
    },
    ids::{FlavorId, ImageId, RegionId},
    network::{Networks, RecordError, SecurityGroups, SshAuthorities},
};

/// The dependencies of a server to check, and which of them are new. The others were checked when they were new.
///
/// ```
/// use fleetwright_region::server::{Field, ServerPlacement};
///
/// # let new = fleetwright_facade_testkit::bare_server(1);
/// let tenant = (new.organization, new.project);
/// let placement = ServerPlacement::new(&new.region, tenant, &new.spec);
/// assert!(placement.changed.contains(&Field::Network), "every field of a new server is new");
/// let unchanged = placement.changed_from(&new.spec);
/// assert!(unchanged.changed.is_empty());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerPlacement<'a> {
    /// The region.
    pub region: &'a RegionId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// The desired spec.
    pub spec: &'a ServerSpec,
    /// The fields that are new or changed.
    pub changed: BTreeSet<Field>,
}

impl<'a> ServerPlacement<'a> {
    /// For a new server: every field is new.
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

    /// For a server that had another spec: only the changed fields are new.
    #[must_use]
    pub fn changed_from(mut self, before: &ServerSpec) -> Self {
        self.changed = before.changed(self.spec);
        self
    }

    fn has_new(&self, fields: &[Field]) -> bool {
        fields.iter().any(|field| self.changed.contains(field))
    }
}

/// Checks the dependencies of a server.
///
/// # Contract
///
/// The result is the list of checks that must hold when the server is written, and becomes part of that transaction: a dependency that
/// is deleted between check and write fails the transaction. A check has no effect. A field that has not
/// [changed](ServerPlacement::changed) is not checked, so that a dependency which is no longer offered does not prevent other changes.
///
/// A checker that allows one flavor only:
///
/// ```
/// use async_trait::async_trait;
/// use fleetwright_identity::Principal;
/// use fleetwright_region::server::{DependencyChecker, DependencyError, ServerPlacement};
/// use fleetwright_store::Check;
///
/// #[derive(Debug)]
/// struct OnlySmall;
///
/// #[async_trait]
/// impl DependencyChecker for OnlySmall {
///     async fn check(
///         &self,
///         _: &Principal,
///         placement: &ServerPlacement<'_>,
///     ) -> Result<Vec<Check>, DependencyError> {
///         let flavor = &placement.spec.flavor;
///         if flavor.as_str() == "small" {
///             Ok(Vec::new()) // nothing has to be checked again when the server is written
///         } else {
///             Err(DependencyError::NoFlavor(flavor.clone()))
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait DependencyChecker: Debug + Send + Sync {
    /// Returns the checks for the transaction that writes the server.
    ///
    /// # Errors
    ///
    /// A dependency is missing, not visible to the caller, or does not fit.
    async fn check(
        &self,
        principal: &Principal,
        placement: &ServerPlacement<'_>,
    ) -> Result<Vec<Check>, DependencyError>;
}

/// Why the dependencies of a server are refused. A record that is not visible to the caller is reported as missing.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DependencyError {
    /// The network, a security group or the SSH certificate authority is refused.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The flavor does not exist, or is not visible to the caller.
    #[error("there is no flavor {0}: choose one that is offered")]
    NoFlavor(FlavorId),
    /// The image does not exist, or is not visible to the caller or to the server's organization.
    #[error("there is no image {0}: choose one that is offered")]
    NoImage(ImageId),
    /// The flavor or the image is no longer offered.
    #[error(transparent)]
    NotOffered(#[from] NotOffered),
    /// The image does not boot on the flavor.
    #[error("image {image} does not boot on flavor {flavor}: choose another image or flavor")]
    Incompatible {
        /// The flavor.
        flavor: FlavorId,
        /// The image.
        image: ImageId,
        /// Every reason.
        source: Incompatible,
    },
    /// The image was created from a server of another region.
    #[error("image {image} was created in region {created_in}: choose an image of region {region}")]
    ImageInOtherRegion {
        /// The image.
        image: ImageId,
        /// The region of the image.
        created_in: RegionId,
        /// The region of the server.
        region: RegionId,
    },
}

/// The dependency checker for tenants: checks networks, groups, authorities and the catalog.
///
/// The network must exist, must not be deleted, and must belong to the server's region, organization and project; security groups must be
/// on that network; the SSH certificate authority must belong to the same project. Flavor and image must be offered and fit each other,
/// and the image must be global or the organization's. All of them must be visible to the caller. A service that acts for a tenant sees
/// more than the tenant, so it checks here with the tenant's principal first.
///
/// The record that is written refers to its network, groups and authority, and each has a check in the same transaction: of a server and
/// a concurrent deletion, the second one is refused. The catalog needs no such check, because its entries are never deleted. Whether
/// the region can launch the server is another question: [`Servers::refusal_of_new`](super::Servers::refusal_of_new).
///
/// ```
/// use fleetwright_region::server::{DependencyChecker as _, ServerPlacement, TenantDependencies};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use fleetwright_facade_testkit::{TestFacade, bare_server, operator};
/// # let facade = TestFacade::new().await;
/// # let (networks, groups, authorities) =
/// #     (facade.networks.clone(), facade.security_groups.clone(), facade.ssh_authorities.clone());
/// # let (catalog, root) = (facade.catalog.clone(), operator());
/// let checker = TenantDependencies::new(networks, groups, authorities, catalog);
/// let new = bare_server(1); // in a network that does not exist
/// let placement = ServerPlacement::new(&new.region, (new.organization, new.project), &new.spec);
/// assert!(checker.check(&root, &placement).await.is_err());
/// # Ok(())
/// # }
/// ```
pub struct TenantDependencies {
    networks: Arc<Networks>,
    groups: Arc<SecurityGroups>,
    authorities: Arc<SshAuthorities>,
    catalog: Arc<CatalogService>,
}

impl TenantDependencies {
    /// Creates the checker from the services of the dependencies, on the store of the servers.
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
        principal: &Principal,
        placement: &ServerPlacement<'_>,
    ) -> Result<Check, RecordError> {
        let found = self.networks.get(principal, placement.spec.network).await?;
        let not_in = |wanted: String| RecordError::NotIn {
            what: "network",
            id: placement.spec.network.to_string(),
            place: wanted,
        };
        let network = &found.value;
        if (network.organization, network.project) != (placement.organization, placement.project) {
            let wanted = Scope::Project(placement.organization, placement.project);
            return Err(not_in(wanted.to_string()));
        }
        if network.region != *placement.region {
            return Err(not_in(format!("region {}", placement.region)));
        }
        self.networks.check_open(&found)
    }

    async fn check_catalog(
        &self,
        principal: &Principal,
        placement: &ServerPlacement<'_>,
    ) -> Result<(), DependencyError> {
        // Another process may have loaded another catalog.
        let spec = placement.spec;
        if let Err(error) = self.catalog.renew(&spec.flavor, &spec.image).await {
            let is_hidden = self.catalog.hides_image(principal, &spec.image, &error);
            return Err(match is_hidden.await {
                true => DependencyError::NoImage(spec.image.clone()),
                false => RecordError::from(error).into(),
            });
        }
        let catalog = self.catalog.current();
        let flavor = self.flavor(&catalog, principal, placement)?;
        let image = self.image(&catalog, principal, placement)?;
        check_compatible(flavor, image).map_err(|source| DependencyError::Incompatible {
            flavor: flavor.id.clone(),
            image: image.id.clone(),
            source,
        })
    }

    fn flavor<'c>(
        &self,
        catalog: &'c Catalog,
        principal: &Principal,
        placement: &ServerPlacement<'_>,
    ) -> Result<&'c Flavor, DependencyError> {
        let id = &placement.spec.flavor;
        let absent = || DependencyError::NoFlavor(id.clone());
        let flavor = catalog.flavor(id).ok_or_else(absent)?;
        if placement.has_new(&[Field::Flavor]) {
            self.catalog.flavor(principal, id).ok_or_else(absent)?;
            flavor.check_offered()?;
        }
        Ok(flavor)
    }

    fn image<'c>(
        &self,
        catalog: &'c Catalog,
        principal: &Principal,
        placement: &ServerPlacement<'_>,
    ) -> Result<&'c Image, DependencyError> {
        let id = &placement.spec.image;
        let absent = || DependencyError::NoImage(id.clone());
        let image = catalog.image(id).ok_or_else(absent)?;
        if !placement.has_new(&[Field::Image]) {
            return Ok(image);
        }
        self.catalog.image(principal, id).ok_or_else(absent)?;
        // The server belongs to a tenant, whatever the caller may see.
        let tenant = Scope::Project(placement.organization, placement.project);
        if !image.visibility.scope().contains(&tenant) {
            return Err(absent());
        }
        image.check_offered()?;
        match &image.origin {
            Origin::Snapshot { region, .. } if region != placement.region => {
                Err(DependencyError::ImageInOtherRegion {
                    image: id.clone(),
                    created_in: region.clone(),
                    region: placement.region.clone(),
                })
            }
            Origin::Snapshot { .. } | Origin::File => Ok(image),
        }
    }
}

#[async_trait]
impl DependencyChecker for TenantDependencies {
    async fn check(
        &self,
        principal: &Principal,
        placement: &ServerPlacement<'_>,
    ) -> Result<Vec<Check>, DependencyError> {
        let spec = placement.spec;
        let mut checks = Vec::new();
        if placement.has_new(&[Field::Network]) {
            checks.push(self.check_network(principal, placement).await?);
        }
        if placement.has_new(&[Field::Network, Field::SecurityGroups]) {
            let ids: Vec<_> = spec.security_groups.iter().copied().collect();
            let (_, seen) = self
                .groups
                .for_server(principal, spec.network, &ids)
                .await?;
            checks.extend(seen);
        }
        if let (true, Some(id)) = (
            placement.has_new(&[Field::SshAuthority]),
            spec.ssh_authority,
        ) {
            let tenant = (placement.organization, placement.project);
            let (_, seen) = self.authorities.for_server(principal, tenant, id).await?;
            checks.push(seen);
        }
        if placement.has_new(&[Field::Flavor, Field::Image]) {
            self.check_catalog(principal, placement).await?;
        }
        Ok(checks)
    }
}

impl Debug for TenantDependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TenantDependencies")
    }
}

/// A dependency checker that accepts everything.
///
/// **It checks nothing**: neither that a network, group, authority, flavor or image exists, nor whom it belongs to, nor that it is offered
/// or fits. For simulations, tests, and programs whose servers have no dependencies in this store. Never use it for tenants.
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
