//! The one decision: the next step for an instance, from its record and its server's. Pure.

use fleetwright_region::server::{Power, Server};

use crate::instance::Instance;

/// The next step for an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Create its server.
    CreateServer,
    /// Make the desired state of the instance that of its server.
    Apply,
    /// Request the deletion of its server.
    DeleteServer,
    /// Delete the instance's record and its allocation: it has no server any more.
    RemoveInstance,
    /// Do nothing until something else happens.
    Wait(Wait),
    /// Do nothing: everything is applied.
    Idle,
}

/// What an instance waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// The server, which has received the desired state and has not applied it yet.
    Server,
    /// The deletion of the server, which this controller requested.
    ServerDeletion,
    /// The deletion of the server, which an operator requested.
    OperatorDeletion,
    /// The tenant: the server existed and disappeared.
    ServerMissing,
    /// An operator: the server of this id belongs to another owner or another region.
    ServerConflict,
}

/// Returns the next step for an instance. Its server must have been read after the instance.
///
/// It is total. It never creates a second server without a request of the tenant, never changes a server of another owner, and never
/// removes an instance that has a server.
pub fn decide(instance: &Instance, server: Option<&Server>) -> Step {
    let foreign = server.is_some_and(|server| !is_owned(instance, server));
    let own = server.filter(|_| !foreign);
    if instance.deletion.is_some() {
        return decide_deletion(own);
    }
    match own {
        None if foreign => Step::Wait(Wait::ServerConflict),
        None => without_server(instance),
        Some(server) => with_server(instance, server),
    }
}

/// Whether a server belongs to an instance.
pub(super) fn is_owned(instance: &Instance, server: &Server) -> bool {
    let tenant = (instance.organization, instance.project);
    server.owner == instance.id.owner()
        && server.region == instance.region
        && (server.organization, server.project) == tenant
}

/// Decides by the server's record, not by the status, which can be older.
fn decide_deletion(own: Option<&Server>) -> Step {
    match own.map(|server| server.intent.power) {
        None => Step::RemoveInstance,
        Some(Power::Deleted) => Step::Wait(Wait::ServerDeletion),
        Some(Power::Running | Power::Stopped) => Step::DeleteServer,
    }
}

fn without_server(instance: &Instance) -> Step {
    match &instance.status.server {
        None => Step::CreateServer,
        Some(link) if instance.intent.replaces > link.replaces => Step::CreateServer,
        Some(_) => Step::Wait(Wait::ServerMissing),
    }
}

fn with_server(instance: &Instance, server: &Server) -> Step {
    if server.intent.power == Power::Deleted {
        return Step::Wait(Wait::OperatorDeletion);
    }
    if !instance.desired_state().holds_for(server) {
        Step::Apply
    } else if server.observed_generation == server.generation {
        Step::Idle
    } else {
        Step::Wait(Wait::Server)
    }
}

impl Step {
    /// Its name in metrics and spans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateServer => "create-server",
            Self::Apply => "apply",
            Self::DeleteServer => "delete-server",
            Self::RemoveInstance => "remove-instance",
            Self::Wait(Wait::Server) => "wait-for-server",
            Self::Wait(Wait::ServerDeletion) => "wait-for-server-deletion",
            Self::Wait(Wait::OperatorDeletion) => "wait-for-operator-deletion",
            Self::Wait(Wait::ServerMissing) => "server-missing",
            Self::Wait(Wait::ServerConflict) => "server-conflict",
            Self::Idle => "idle",
        }
    }
}
