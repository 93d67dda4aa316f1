//! The requests of tenants: a new instance, and an update of one.

use fleetwright::Tags;
use fleetwright_identity::{OrganizationId, ProjectId};
use fleetwright_region::{ids::NetworkId, name::Name, server::Consent};
use fleetwright_store::Revision;

use crate::instance::{Instance, InstanceSpec};

/// A request for a new instance.
///
/// ```
/// use fleetwright_compute::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tenant = ("5ba1e150-0000-4000-8000-000000000001".parse()?, "5ba1e150-0000-4000-8000-000000000002".parse()?);
/// let network: NetworkId = "b059b3e6-9ae5-42b7-94b4-f42fb7a6baee".parse()?;
/// let spec = InstanceSpec::new("small".parse()?, "debian".parse()?);
/// let new = NewInstance::new("my-host".parse()?, tenant, network, spec);
///
/// // The id is known before the instance exists.
/// let id = InstanceId::derive(new.network, &new.name);
/// assert_eq!(id.to_string(), "cea82847-20ce-5f13-87fb-9f3cc7da081d");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewInstance {
    /// Its name, unique in the network. It never changes.
    pub name: Name,
    /// A description for people, at most 1024 characters. Default: `None`.
    pub description: Option<String>,
    /// Its tags, at most 32. Default: none.
    pub tags: Tags,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// Its network, which determines its region. It never changes.
    pub network: NetworkId,
    /// Its flavor, image, networking, and what it boots with.
    pub spec: InstanceSpec,
}

impl NewInstance {
    /// A request without description and tags.
    pub fn new(
        name: Name,
        tenant: (OrganizationId, ProjectId),
        network: NetworkId,
        spec: InstanceSpec,
    ) -> Self {
        Self {
            name,
            description: None,
            tags: Tags::new(),
            organization: tenant.0,
            project: tenant.1,
            network,
            spec,
        }
    }
}

/// An update of an instance. It replaces every field, so start from [`of`](Self::of) and change what has to change.
///
/// ```
/// use fleetwright_compute::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use fleetwright_facade_testkit::{TestFacade, project_user, tenant};
/// # let facade = TestFacade::new().await;
/// # let (ada, network) = (project_user(tenant(1, 1)), facade.network("blue").await);
/// # let id = facade.create(network, "web-1").await.instance.id;
/// let view = facade.instances.read(&ada, id).await?;
/// let mut update = UpdateInstance::of(&view.instance);
/// update.description = Some("the first web server".to_owned());
/// update.if_revision = Some(view.revision); // refused if somebody else has changed it
/// facade.instances.update(&ada, id, &update).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpdateInstance {
    /// Its present name. Another one is refused.
    pub name: Name,
    /// Its description.
    pub description: Option<String>,
    /// Its tags, all of them.
    pub tags: Tags,
    /// Its flavor, image, networking, and what it boots with.
    pub spec: InstanceSpec,
    /// What may be destroyed by this change. It holds for this spec, until the next update of the server. Default: keep everything.
    pub consent: Consent,
    /// Update only if the record is at this revision. Changes of the status count too. Default: `None`, at any revision.
    pub if_revision: Option<Revision>,
}

impl UpdateInstance {
    /// The present desired state, without consent to any loss.
    pub fn of(instance: &Instance) -> Self {
        Self {
            name: instance.name.clone(),
            description: instance.description.clone(),
            tags: instance.tags.clone(),
            spec: instance.spec.clone(),
            consent: Consent::KeepEverything,
            if_revision: None,
        }
    }

    /// An update without description, tags and consent.
    pub fn new(name: Name, spec: InstanceSpec) -> Self {
        Self {
            name,
            description: None,
            tags: Tags::new(),
            spec,
            consent: Consent::KeepEverything,
            if_revision: None,
        }
    }
}
