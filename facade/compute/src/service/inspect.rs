//! The history of an instance, and its record with server and allocation for operators.

use fleetwright_identity::{Allocation, Principal, Resource, Verb};
use fleetwright_region::server::{ServerError, ServerView};
use fleetwright_store::Revision;

use super::Instances;
use crate::{
    ComputeError,
    instance::{Event, Instance, InstanceId},
};

/// An instance with its server and its allocation, for operators.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The record.
    pub instance: Instance,
    /// The commit that last wrote it.
    pub revision: Revision,
    /// Its server, if there is one.
    pub server: Option<ServerView>,
    /// What it uses of its tenant's quota.
    pub allocation: Option<Allocation>,
}

impl Instances {
    /// Returns the last events of an instance, oldest first; at most [`EVENTS_KEPT`](crate::instance::EVENTS_KEPT). It needs the
    /// permission to read.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    pub async fn events(
        &self,
        principal: &Principal,
        id: InstanceId,
    ) -> Result<Vec<Event>, ComputeError> {
        let work = async {
            let found = self.permitted(principal, Verb::Read, id).await?;
            Ok(found.value.events)
        };
        self.measure("events", Some(id), work).await
    }

    /// Returns the record of an instance with its server and its allocation. It needs the permissions to read the instance and to
    /// read servers; tenants do not have the latter.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read), and [`Refused`](ComputeError::Refused) without the permission to read servers.
    pub async fn inspect(
        &self,
        principal: &Principal,
        id: InstanceId,
    ) -> Result<Inspection, ComputeError> {
        let work = async {
            let found = self.permitted(principal, Verb::Read, id).await?;
            let scope = found.value.scope();
            principal
                .authorize(Verb::Read, Resource::Servers, &scope)
                .map_err(ComputeError::Refused)?;
            let server = match self.servers.read(principal, found.value.server).await {
                Ok(view) => Some(view),
                Err(ServerError::NotFound(_)) => None,
                Err(error) => return Err(error.into()),
            };
            let charged = self.charged_record(&found.value)?;
            Ok(Inspection {
                allocation: self.ledger.allocation(&charged).await?,
                revision: found.revision,
                instance: found.value,
                server,
            })
        };
        self.measure("inspect", Some(id), work).await
    }
}
