//! What operators look at: the record as it is, its server, and what pays for it.

use fleetwright_identity::{Allocation, Principal, Resource, Verb};
use fleetwright_region::server::{ServerError, ServerView};
use fleetwright_store::Revision;

use super::Instances;
use crate::{
    ComputeError,
    instance::{Event, Instance, InstanceId},
};

/// An instance with all that stands behind it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The record.
    pub instance: Instance,
    /// The commit that wrote it last.
    pub revision: Revision,
    /// Its server, if there is one.
    pub server: Option<ServerView>,
    /// What pays for it.
    pub allocation: Option<Allocation>,
}

impl Instances {
    /// The last things that happened to an instance, oldest first. Who may read it may read them.
    pub async fn events(
        &self,
        who: &Principal,
        id: InstanceId,
    ) -> Result<Vec<Event>, ComputeError> {
        let work = async {
            let found = self.permitted(who, Verb::Read, id).await?;
            Ok(found.value.events)
        };
        self.metered("events", Some(id), work).await
    }

    /// The record of an instance with its server and its payment. It takes the permission to read servers too, which tenants do not
    /// have.
    pub async fn inspect(
        &self,
        who: &Principal,
        id: InstanceId,
    ) -> Result<Inspection, ComputeError> {
        let work = async {
            let found = self.permitted(who, Verb::Read, id).await?;
            let scope = found.value.scope();
            who.authorize(Verb::Read, Resource::Servers, &scope)
                .map_err(ComputeError::Refused)?;
            let server = match self.servers.read(who, found.value.server).await {
                Ok(view) => Some(view),
                Err(ServerError::NotFound(_)) => None,
                Err(error) => return Err(error.into()),
            };
            let paid = self.paid(&found.value)?;
            Ok(Inspection {
                allocation: self.ledger.allocation(&paid).await?,
                revision: found.revision,
                instance: found.value,
                server,
            })
        };
        self.metered("inspect", Some(id), work).await
    }
}
