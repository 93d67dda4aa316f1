//! Launches that EC2 accepts and that fail before they run.
//!
//! Owns which of EC2's state reasons mean that, and what a handle remembers of it. EC2 terminates such an
//! instance and keeps its client token, so the next launch with the same launch token needs another client token.
//! A stale read shows a failed instance as pending, so what was once seen as failed stays failed.

use std::time::Duration;

use aws_sdk_ec2::types::Instance;
use fleetwright::{
    Call, ErrorKind, InstanceId, InstanceInfo, LaunchFailure, LaunchToken, Operation, Result, Scope,
};
use fleetwright_provider_support::{ReadInstances as _, RecentMap};

use crate::{Ec2Provisioner, by_token::Launch};

/// How long a handle remembers a failed launch. EC2 shows it for about as long.
const REMEMBERED: Duration = Duration::from_secs(60 * 60);

/// Returns why the launch of an instance failed; `None` for every other instance.
///
/// The Amazon EC2 API reference lists the reasons ("StateReason"). Five of them are of a launch that failed. Every other one is of an
/// instance that has run, and so may be one that EC2 does not list: a failed launch frees its token, and the token of an
/// instance that was ended must not launch again.
pub(crate) fn launch_failure(native: &Instance, info: &InstanceInfo) -> Option<LaunchFailure> {
    let code = native.state_reason()?.code()?;
    if !info.state.is_ending() {
        return None;
    }
    let failure = match code {
        "Server.InsufficientInstanceCapacity" => {
            let offering = Scope::Offering {
                instance_type: info.instance_type.clone(),
                zone: info.placement.zone.clone(),
                market: info.placement.market,
            };
            LaunchFailure::new(ErrorKind::Capacity, [offering])
        }
        // A quota of the region, for all types.
        "Client.VolumeLimitExceeded" => LaunchFailure::new(ErrorKind::Quota, [Scope::Region]),
        "Client.InvalidSnapshot.NotFound" => LaunchFailure::new(ErrorKind::Invalid, []),
        // An error of EC2, or of the request, "caused the instance to terminate during launch".
        "Server.InternalError" | "Client.InternalError" => {
            LaunchFailure::new(ErrorKind::Unexpected, [])
        }
        _ => return None,
    };
    Some(failure.with_native_code(code))
}

/// The instances and client tokens of the failed launches that a handle has seen.
#[derive(Debug, Default)]
pub(crate) struct FailedLaunches(RecentMap<String, ()>);

impl FailedLaunches {
    /// Records which of these instances failed.
    pub(crate) fn record(&self, natives: &[Instance]) {
        let failed = natives.iter().filter(|native| {
            // Most instances have no reason for their state, and then nothing is converted.
            native.state_reason().is_some()
                && crate::convert::info(native).is_ok_and(|info| info.launch_failure.is_some())
        });
        let names = failed.flat_map(|native| {
            let id = native.instance_id().map(ToOwned::to_owned);
            id.into_iter().chain(native.client_token.clone())
        });
        let names: Vec<_> = names.map(|name| (name, ())).collect();
        if !names.is_empty() {
            self.0.record(names, REMEMBERED);
        }
    }

    /// Whether this is the id or the client token of a failed launch.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.get(&name.to_owned(), REMEMBERED).is_some()
    }

    /// Whether every instance of a launch has failed.
    pub(crate) fn are_all_of(&self, launch: &Launch) -> bool {
        let id = |native: &Instance| native.instance_id().map(ToOwned::to_owned);
        let mut ids = launch.instances.iter().map(id);
        ids.all(|id| id.is_some_and(|id| self.contains(&id)))
    }
}

impl Ec2Provisioner {
    /// Checks that this handle has not used the token for another config within the consistency window, unless
    /// all of that launch failed: then the token is free.
    pub(crate) async fn check_recent_token(
        &self,
        call: &Call,
        token: &LaunchToken,
        config: fleetwright::Fingerprint,
    ) -> Result<()> {
        let window = self.capabilities.consistency_window;
        match self.recent_tokens.other_launch(token, config, window) {
            Some(ids) if ids.is_empty() || !self.have_failed(&ids).await => {
                Err(call.token_conflict(token))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the launches of all of these instances have failed.
    async fn have_failed(&self, ids: &[InstanceId]) -> bool {
        let known = || {
            ids.iter()
                .all(|id| self.failed_launches.contains(id.as_str()))
        };
        if known() {
            return true;
        }
        // The read records what it shows.
        self.describe_once(Operation::LaunchInstance, ids).await;
        known()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::types::{InstanceState, InstanceStateName, StateReason};

    fn instance(id: &str, state: &str, code: &str) -> Instance {
        Instance::builder()
            .instance_id(id)
            .client_token(format!("token-of-{id}"))
            .state(
                InstanceState::builder()
                    .name(InstanceStateName::from(state))
                    .build(),
            )
            .state_reason(StateReason::builder().code(code).build())
            .build()
    }

    fn kind(state: &str, code: &str) -> Option<ErrorKind> {
        let info = crate::convert::info(&instance("i-1", state, code)).unwrap();
        info.launch_failure.map(|failure| failure.kind)
    }

    /// Every reason that the API reference lists, and two that it does not.
    const REASONS: [(&str, Option<ErrorKind>); 14] = [
        (
            "Server.InsufficientInstanceCapacity",
            Some(ErrorKind::Capacity),
        ),
        ("Server.InternalError", Some(ErrorKind::Unexpected)),
        ("Server.ScheduledStop", None),
        ("Server.SpotInstanceShutdown", None),
        ("Server.SpotInstanceTermination", None),
        ("Client.InstanceInitiatedShutdown", None),
        ("Client.InstanceTerminated", None),
        ("Client.InternalError", Some(ErrorKind::Unexpected)),
        ("Client.InvalidSnapshot.NotFound", Some(ErrorKind::Invalid)),
        ("Client.UserInitiatedHibernate", None),
        ("Client.UserInitiatedShutdown", None),
        ("Client.VolumeLimitExceeded", Some(ErrorKind::Quota)),
        ("Server.SomethingNew", None),
        ("", None),
    ];

    #[test]
    fn only_reasons_of_a_launch_are_failures() {
        for (code, expected) in REASONS {
            for state in ["shutting-down", "terminated"] {
                assert_eq!(kind(state, code), expected, "{state}: {code}");
            }
            // A start without capacity leaves the instance stopped.
            for state in ["pending", "running", "stopping", "stopped"] {
                assert_eq!(kind(state, code), None, "{state}: {code}");
            }
        }
    }

    #[tokio::test]
    async fn failed_launch_stays_failed_in_stale_reads() {
        let failed = FailedLaunches::default();
        let launch = |state, code| Launch::new(vec![instance("i-1", state, code)]).unwrap();
        assert!(!failed.are_all_of(&launch("pending", "pending")));
        failed.record(&launch("terminated", "Client.UserInitiatedShutdown").instances);
        assert!(!failed.contains("i-1"));
        failed.record(&launch("terminated", "Server.InternalError").instances);
        assert!(failed.contains("i-1") && failed.contains("token-of-i-1"));
        assert!(failed.are_all_of(&launch("pending", "pending")));
        let mut two = launch("pending", "pending");
        two.instances.push(instance("i-2", "pending", "pending"));
        assert!(!failed.are_all_of(&two));
    }
}
