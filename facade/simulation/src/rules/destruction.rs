//! Rule: no machine of a tenant is destroyed unless the tenant requested exactly that, or the machine was already gone.

use fleetwright::InstanceId;
use fleetwright_region::server::{Power, Server, ServerId, TerminationReason};

use super::Rules;
use crate::{
    constants::MAX_USER_DATA,
    environment::{Entry, MappingFile},
};

/// A call that destroys the data on a root disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destruction {
    /// The machine is terminated.
    Terminate,
    /// The root disk is replaced.
    Reimage,
}

impl Rules {
    /// Checks a call of the server controller that is about to be sent.
    ///
    /// The rules for commits judge the record that announces the call. This one judges the call by what is true when
    /// it is sent: whether the machine exists, in whichever account, and whether its successor can be launched.
    pub async fn check_destruction(
        &self,
        machine: &InstanceId,
        about: Option<ServerId>,
        call: Destruction,
    ) {
        let gone = self
            .oracle
            .machine(machine)
            .is_none_or(|info| info.state.is_ending());
        let server = match about {
            Some(id) => self.server(id).await,
            None => None,
        };
        let Some(server) = server.filter(|_| !gone) else {
            return;
        };
        let Some(recorded) = server.machine.as_ref().filter(|one| one.id == *machine) else {
            return;
        };
        let booted = server
            .booted
            .is_some_and(|booted| booted.incarnation == recorded.incarnation);
        if !booted {
            // Nobody has used it.
            return;
        }
        let reason = recorded.termination.map(|termination| termination.reason);
        // A tenant who deletes the instance needs no successor any more, whatever the machine was marked for before.
        let deleted = server.intent.power == Power::Deleted;
        let reason = reason.map(|reason| match deleted {
            true => TerminationReason::Delete,
            false => reason,
        });
        let problem = match (call, reason) {
            (Destruction::Terminate, Some(TerminationReason::Delete)) => {
                (!self.deletion_requested(&server).await).then_some("nobody deleted it")
            }
            (Destruction::Terminate, Some(TerminationReason::Replace)) => {
                if !self.has_consent(&server) {
                    Some("its tenant did not consent")
                } else if !self.can_be_launched(&server) {
                    Some("its successor cannot be launched")
                } else {
                    None
                }
            }
            (Destruction::Reimage, _) => {
                (!self.has_consent(&server)).then_some("its tenant did not consent")
            }
            (Destruction::Terminate, Some(TerminationReason::Missing)) => {
                Some("it is only missing in a list")
            }
            (Destruction::Terminate, Some(TerminationReason::Failed)) => Some("it had booted"),
            (Destruction::Terminate, None) => Some("no record says so"),
        };
        if let Some(problem) = problem {
            self.report(format!(
                "machine {machine} of server {} is destroyed although {problem}",
                server.id
            ));
        }
    }

    /// Returns whether a machine with the server's spec can be launched, by the mapping that a process has now or had until a moment ago.
    /// One process may complete what another one began.
    fn can_be_launched(&self, server: &Server) -> bool {
        let data = server.spec.user_data.as_ref();
        let short = data.is_none_or(|data| data.as_bytes().len() <= MAX_USER_DATA);
        let mut recent = self
            .environments
            .iter()
            .flat_map(|each| each.recent_mappings());
        short && recent.any(|mapping| self.has_all(&mapping, server))
    }

    fn has_all(&self, mapping: &MappingFile, server: &Server) -> bool {
        let spec = &server.spec;
        Entry::ALL.iter().all(|entry| {
            let needed = match *entry {
                Entry::Flavor(name) => spec.flavor.as_str() == name,
                Entry::Image(name) => spec.image.as_str() == name,
                Entry::Group(index) => {
                    let group = self.fixtures.groups.get(index);
                    group.is_some_and(|group| spec.security_groups.contains(group))
                }
                Entry::Network(index) => self.fixtures.networks.get(index) == Some(&spec.network),
            };
            !needed || !mapping.missing.contains(entry)
        })
    }
}
