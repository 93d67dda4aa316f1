//! What is asked of a server's machine and cannot wait: its console, its key, an image of it.
//!
//! Owns those calls, who may make them, and what is answered while there is no machine to ask. A wish that can wait is the
//! [service](crate::server::Servers)'s, which calls no cloud; here at most one call is made, to the one machine that the server's
//! record names. It never searches for a machine, and never writes to a server.
//!
//! [`MachineAccess::snapshot`] calls no cloud either: it writes down that an image is to be made, and
//! [`Snapshots`](crate::snapshot::Snapshots) makes it.

mod cloud_error;
mod console;
mod error;
mod key;
mod readiness;

use std::{collections::BTreeMap, fmt, sync::Arc};

use fleetwright::{InstanceProvisioner, OptionalVerb};
use fleetwright_identity::{Access, ActorName, Permission, Principal, Resource, Verb};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{Invalid, Store, Table};
use metrics::counter;

pub use error::MachineError;
pub(crate) use readiness::{RequiredState, ready_machine};

use crate::{
    catalog::CatalogService,
    ids::RegionId,
    secret::SshKeys,
    server::{Server, ServerId},
};

/// The machines behind servers. Clones are the same.
///
/// Every call takes the caller's principal, and asks for the permission of its own verb on servers. What the caller may not
/// know of looks like what does not exist.
#[derive(Clone)]
pub struct MachineAccess {
    servers: Table<Server>,
    pub(crate) catalog: Arc<CatalogService>,
    pub(crate) clock: Arc<dyn Clock>,
    keys: SshKeys,
    clouds: BTreeMap<RegionId, Arc<dyn InstanceProvisioner>>,
    /// In whose name the region does what the caller may have done.
    pub(crate) own: Principal,
}

impl MachineAccess {
    /// The machines of the servers in a store with [its kinds](crate::schema::add_kinds). The keys are those that
    /// [`Servers`](crate::server::Servers) was given.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        catalog: Arc<CatalogService>,
        keys: SshKeys,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            servers: Table::new(store)?,
            catalog,
            clock,
            keys,
            clouds: BTreeMap::new(),
            own: own()?,
        })
    }

    /// Adds a region with its cloud: the handle that its controller and monitor have, too.
    #[must_use]
    pub fn with_region(mut self, region: RegionId, cloud: Arc<dyn InstanceProvisioner>) -> Self {
        self.clouds.insert(region, cloud);
        self
    }

    /// The server, if there is one to which the caller may do that; if not, that is counted.
    pub(crate) async fn permitted(
        &self,
        who: &Principal,
        verb: Verb,
        id: ServerId,
    ) -> Result<Server, MachineError> {
        match self.find(who, verb, id).await {
            Ok(server) => Ok(server),
            Err(error) => Self::ended(verb, id, None, Err(error)),
        }
    }

    async fn find(
        &self,
        who: &Principal,
        verb: Verb,
        id: ServerId,
    ) -> Result<Server, MachineError> {
        let found = self.servers.get(&id.key()?).await?;
        let server = found.ok_or(MachineError::NotFound(id))?.value;
        match who.access(verb, Resource::Servers, &server.scope()) {
            Access::Allowed => Ok(server),
            Access::Refused(refused) => Err(MachineError::Refused(refused)),
            Access::NotVisible => Err(MachineError::NotFound(id)),
        }
    }

    /// The cloud of a server's region.
    fn cloud(&self, server: &Server) -> Result<&Arc<dyn InstanceProvisioner>, MachineError> {
        let cloud = self.clouds.get(&server.region);
        cloud.ok_or_else(|| MachineError::NoRegion(server.region.clone()))
    }

    /// The same, if it declares that it does this.
    pub(crate) fn offering(
        &self,
        server: &Server,
        verb: Verb,
        offered: OptionalVerb,
    ) -> Result<&Arc<dyn InstanceProvisioner>, MachineError> {
        let cloud = self.cloud(server)?;
        if !cloud.capabilities().supports(offered) {
            let region = server.region.clone();
            return Err(MachineError::Unsupported { region, verb });
        }
        Ok(cloud)
    }

    /// Counts and tells how a call ended. Neither holds anything that was read.
    pub(crate) fn ended<T>(
        verb: Verb,
        id: ServerId,
        region: Option<&RegionId>,
        answer: Result<T, MachineError>,
    ) -> Result<T, MachineError> {
        let outcome = answer.as_ref().map_or_else(MachineError::outcome, |_| "ok");
        let labels = [
            ("region", region.map_or("none", RegionId::as_str).to_owned()),
            ("verb", verb.as_str().to_owned()),
            ("outcome", outcome.to_owned()),
        ];
        counter!("fleetwright_region_machine_calls_total", &labels).increment(1);
        match &answer {
            Err(
                MachineError::Unavailable { source, .. } | MachineError::Declined { source, .. },
            ) => {
                let verb = verb.as_str();
                tracing::warn!(server = %id, verb, outcome, error = %source, "a machine call failed");
            }
            Ok(_) | Err(_) => {
                tracing::debug!(server = %id, verb = verb.as_str(), outcome, "a machine call finished");
            }
        }
        answer
    }
}

/// The region itself: it makes images that callers may have made, and opens keys that they may see.
pub(crate) fn own() -> Result<Principal, Invalid> {
    let unfit = |error: &dyn fmt::Display| Invalid::new(error.to_string());
    let name = ActorName::new("region").map_err(|error| unfit(&error))?;
    let wanted = [
        (Verb::Create, Resource::Images),
        (Verb::Read, Resource::Images),
        (Verb::Update, Resource::Images),
        (Verb::Read, Resource::Instances),
        (Verb::SshKey, Resource::Instances),
    ];
    let permissions = wanted.map(|(verb, resource)| Permission::new(verb, resource));
    let permissions: Result<Vec<_>, _> = permissions.into_iter().collect();
    Ok(Principal::service(
        name,
        permissions.map_err(|error| unfit(&error))?,
    ))
}

impl fmt::Debug for MachineAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineAccess")
            .field("regions", &self.clouds.keys())
            .finish_non_exhaustive()
    }
}
