//! Servers whose instance does not exist. They are counted, logged and listed; they are never deleted.

use fleetwright_identity::{OrganizationId, Principal, ProjectId};
use fleetwright_region::{
    ids::RegionId,
    server::{ListServers, Owner, Phase, ServerError, ServerId, ServerView},
};
use fleetwright_runtime::Action;
use fleetwright_store::Key;
use metrics::counter;

use super::Controller;
use crate::{ComputeError, instance::InstanceId};

/// The label of orphans in the gauge of waits.
const ORPHAN: &str = "orphan";

/// A server whose owner is an instance that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrphanServer {
    /// The server.
    pub id: ServerId,
    /// The owner in its record.
    pub owner: Owner,
    /// Where it runs.
    pub region: RegionId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// Its phase.
    pub phase: Phase,
}

impl Controller {
    /// Returns the servers without an instance that the principal may list. It reads every server, and is for operators.
    ///
    /// An instance whose record cannot be read counts as existing.
    ///
    /// # Errors
    ///
    /// If the principal may not list servers, or the store fails.
    pub async fn orphans(&self, principal: &Principal) -> Result<Vec<OrphanServer>, ComputeError> {
        let (mut orphans, mut wanted) = (Vec::new(), ListServers::default());
        loop {
            let page = self.servers.list(principal, &wanted).await?;
            for view in page.servers {
                if self.is_orphan(&view).await? {
                    orphans.push(orphan(view));
                }
            }
            match page.next {
                Some(next) => wanted.after = Some(next),
                None => return Ok(orphans),
            }
        }
    }

    async fn is_orphan(&self, view: &ServerView) -> Result<bool, ComputeError> {
        let owner = &view.server.owner;
        if owner.kind != crate::schema::INSTANCE_KIND {
            return Ok(false);
        }
        let Ok(key) = Key::new(owner.id.as_str()) else {
            return Ok(true);
        };
        let record = self.store.get(&self.instances.id(&key)).await?;
        Ok(record.is_none())
    }

    /// Reconciles an instance that does not exist: its server should not exist either.
    pub(super) async fn without_instance(&self, id: InstanceId) -> Result<Action, ComputeError> {
        match self.servers.read_by_owner(&self.service, &id.owner()).await {
            Ok(view) => {
                if self.waits.set(id, Some(ORPHAN)) {
                    counter!("fleetwright_compute_orphan_servers_total").increment(1);
                    let (server, region) = (view.server.id, &view.server.region);
                    tracing::warn!(%server, %region, phase = ?view.phase, "a server has no instance: it is left as it is until an operator deletes it");
                }
            }
            Err(ServerError::NoServerOwnedBy(_)) => {
                self.waits.set(id, None);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Action::AwaitChange)
    }
}

fn orphan(view: ServerView) -> OrphanServer {
    let server = view.server;
    OrphanServer {
        id: server.id,
        owner: server.owner,
        region: server.region,
        organization: server.organization,
        project: server.project,
        phase: view.phase,
    }
}
