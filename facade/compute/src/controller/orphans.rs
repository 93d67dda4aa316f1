//! Servers whose instance does not exist. They are counted, told and shown; nothing is destroyed.

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

/// What an orphan waits for, in gauges.
const ORPHAN: &str = "orphan";

/// A server that says it is an instance's which does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrphanServer {
    /// Which server.
    pub id: ServerId,
    /// Whose it says it is.
    pub owner: Owner,
    /// Where it runs.
    pub region: RegionId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// Where it is in its life.
    pub phase: Phase,
}

impl Controller {
    /// The servers without their instance that the principal may list. It reads every server, and is for operators.
    ///
    /// An instance whose record cannot be read exists.
    pub async fn orphans(&self, who: &Principal) -> Result<Vec<OrphanServer>, ComputeError> {
        let (mut orphans, mut wanted) = (Vec::new(), ListServers::default());
        loop {
            let page = self.servers.list(who, &wanted).await?;
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

    /// A pass over an instance that is not there: none of its servers should be.
    pub(super) async fn without_instance(&self, id: InstanceId) -> Result<Action, ComputeError> {
        match self.servers.read_by_owner(&self.service, &id.owner()).await {
            Ok(view) => {
                if self.waits.set(id, Some(ORPHAN)) {
                    counter!("fleetwright_compute_orphan_servers_total").increment(1);
                    let (server, region) = (view.server.id, &view.server.region);
                    tracing::warn!(%server, %region, phase = ?view.phase, "a server has no instance: nothing is done to it until an operator has seen to it");
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
