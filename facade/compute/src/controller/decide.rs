//! The one decision: what to do next for an instance, by its record and its server's. Pure.

use fleetwright_region::server::{Power, Server};

use crate::instance::Instance;

/// The next step for an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Make its server.
    Make,
    /// Tell its server what is asked of the instance.
    Pass,
    /// Ask its server to go.
    End,
    /// Let the instance be gone, with what pays for it: nothing realises it any more.
    Forget,
    /// Nothing until something else happens.
    Wait(Wait),
    /// Everything is as it is asked for.
    Rest,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// The server, which has heard what is asked and is not there yet.
    Server,
    /// The end of the server, which was asked for.
    End,
    /// The end of the server, which nobody here asked for.
    Going,
    /// The tenant's word: there was a server, and nobody here asked for its end.
    Missing,
    /// An operator: the server of this id is another owner's, or of another place.
    Taken,
}

/// The next step for an instance, whose server is as it was read after the instance was.
///
/// Answers for every record. Never makes a second server by itself, never changes one that is another's, and lets no instance be
/// gone that has a server.
pub fn decide(instance: &Instance, server: Option<&Server>) -> Step {
    let foreign = server.is_some_and(|server| !is_its_own(instance, server));
    let own = server.filter(|_| !foreign);
    if instance.deletion.is_some() {
        return ending(own);
    }
    match own {
        None if foreign => Step::Wait(Wait::Taken),
        None => without_server(instance),
        Some(server) => with_server(instance, server),
    }
}

/// Whether a server is the one that realises an instance.
pub(super) fn is_its_own(instance: &Instance, server: &Server) -> bool {
    let tenant = (instance.organization, instance.project);
    server.owner == instance.id.owner()
        && server.region == instance.region
        && (server.organization, server.project) == tenant
}

/// By the server as the store has it now: what the status says of it is how it was.
fn ending(own: Option<&Server>) -> Step {
    match own.map(|server| server.intent.power) {
        None => Step::Forget,
        Some(Power::Deleted) => Step::Wait(Wait::End),
        Some(Power::Running | Power::Stopped) => Step::End,
    }
}

fn without_server(instance: &Instance) -> Step {
    match &instance.status.server {
        None => Step::Make,
        Some(link) if instance.intent.replaces > link.replaces => Step::Make,
        Some(_) => Step::Wait(Wait::Missing),
    }
}

fn with_server(instance: &Instance, server: &Server) -> Step {
    if server.intent.power == Power::Deleted {
        return Step::Wait(Wait::Going);
    }
    if !instance.wish().holds_for(server) {
        Step::Pass
    } else if server.observed_generation == server.generation {
        Step::Rest
    } else {
        Step::Wait(Wait::Server)
    }
}

impl Step {
    /// Its name in metrics and spans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Make => "make",
            Self::Pass => "pass",
            Self::End => "end",
            Self::Forget => "forget",
            Self::Wait(Wait::Server) => "wait-server",
            Self::Wait(Wait::End) => "wait-end",
            Self::Wait(Wait::Going) => "wait-going",
            Self::Wait(Wait::Missing) => "wait-missing",
            Self::Wait(Wait::Taken) => "wait-taken",
            Self::Rest => "rest",
        }
    }
}
