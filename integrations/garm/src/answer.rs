//! What a call prints: instances in GARM's JSON.
//!
//! Owns the mapping of states. GARM accepts four statuses from a provider and fails the call for any other (cloudbase/garm,
//! `runner/providers/util/util.go`, `IsValidProviderStatus`): running, stopped, error and unknown.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fleetwright::{CloudInstanceState, InstanceInfo};
use serde::Serialize;

use crate::identity::{self, key};

/// An instance as GARM reads it (`params.ProviderInstance` of cloudbase/garm-provider-common).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ProviderInstance {
    /// The cloud's id.
    pub(crate) provider_id: String,
    /// The name that GARM gave the instance.
    pub(crate) name: String,
    /// The operating system, as the pool says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) os_type: Option<String>,
    /// The architecture, as the pool says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) os_arch: Option<String>,
    /// The addresses that the cloud reports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<Address>,
    /// One of the four statuses that GARM accepts.
    pub(crate) status: Status,
    /// Why the cloud could not run the instance. Go reads bytes from base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provider_fault: Option<String>,
}

/// An address of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Address {
    /// The address.
    pub(crate) address: String,
    /// `public` or `private`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
}

/// The statuses that GARM accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// It runs, or is about to.
    Running,
    /// It is stopped, or about to be.
    Stopped,
    /// Its launch has failed.
    Error,
    /// It is ending.
    Unknown,
}

impl ProviderInstance {
    /// Describes an instance of this controller. Returns `None` if it has no name of GARM.
    pub(crate) fn of(info: &InstanceInfo) -> Option<Self> {
        let name = identity::name_of(info)?.to_owned();
        let address = |ip: Option<std::net::IpAddr>, kind| {
            ip.map(|ip| Address {
                address: ip.to_string(),
                kind,
            })
        };
        let public = address(info.public_ip, "public");
        let private = address(info.private_ip, "private");
        let tag = |key| info.tags.get(key).map(str::to_owned);
        Some(Self {
            provider_id: info.id.to_string(),
            name,
            os_type: tag(key::OS_TYPE),
            os_arch: tag(key::OS_ARCH),
            addresses: public.into_iter().chain(private).collect(),
            status: status(info),
            provider_fault: fault(info),
        })
    }
}

/// Returns the status of an instance. A pending one is running: GARM sets the status of a runner from the answer of its creation and
/// never asks again, so that a runner with another status would never count as idle.
pub(crate) fn status(info: &InstanceInfo) -> Status {
    if info.launch_failure.is_some() {
        return Status::Error;
    }
    match info.state {
        CloudInstanceState::Pending | CloudInstanceState::Running => Status::Running,
        CloudInstanceState::Stopping | CloudInstanceState::Stopped => Status::Stopped,
        CloudInstanceState::Terminating | CloudInstanceState::Terminated => Status::Unknown,
    }
}

fn fault(info: &InstanceInfo) -> Option<String> {
    let failure = info.launch_failure.as_ref()?;
    let code = failure.native_code.as_deref().unwrap_or("no code");
    let reason = info.state_reason.as_deref().unwrap_or("no reason");
    let text = format!("the launch failed ({}, {code}): {reason}", failure.kind);
    Some(STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::{ErrorKind, InstanceId, LaunchFailure};

    fn info(state: CloudInstanceState) -> InstanceInfo {
        let mut info = InstanceInfo::new(InstanceId::new("i-1").unwrap(), state);
        info.tags = info.tags.with(key::NAME, "garm-1").unwrap();
        info
    }

    #[test]
    fn every_state_has_a_status_that_garm_accepts() {
        let accepted = ["\"running\"", "\"stopped\"", "\"error\"", "\"unknown\""];
        for state in CloudInstanceState::ALL {
            let text = serde_json::to_string(&status(&info(state))).unwrap();
            assert!(accepted.contains(&text.as_str()), "{state}: {text}");
        }
        assert_eq!(status(&info(CloudInstanceState::Pending)), Status::Running);
    }

    #[test]
    fn failed_launch_is_an_error_with_a_fault_in_base64() {
        let mut failed = info(CloudInstanceState::Terminated);
        failed.launch_failure =
            Some(LaunchFailure::new(ErrorKind::Capacity, []).with_native_code("NoMachines"));
        failed.state_reason = Some("no machines left".to_owned());
        let answer = ProviderInstance::of(&failed).unwrap();
        assert_eq!(answer.status, Status::Error);
        let fault = STANDARD.decode(answer.provider_fault.unwrap()).unwrap();
        let fault = String::from_utf8(fault).unwrap();
        assert!(
            fault.contains("NoMachines") && fault.contains("no machines left"),
            "{fault}"
        );
    }

    #[test]
    fn answer_has_the_fields_that_garm_reads() {
        let mut running = info(CloudInstanceState::Running);
        running.private_ip = Some([10, 0, 0, 5].into());
        running.public_ip = Some([198, 51, 100, 7].into());
        running.tags = running.tags.with(key::OS_TYPE, "linux").unwrap();
        let answer = serde_json::to_value(ProviderInstance::of(&running).unwrap()).unwrap();
        let expected = serde_json::json!({
            "provider_id": "i-1",
            "name": "garm-1",
            "os_type": "linux",
            "addresses": [
                {"address": "198.51.100.7", "type": "public"},
                {"address": "10.0.0.5", "type": "private"},
            ],
            "status": "running",
        });
        assert_eq!(answer, expected);
        let foreign =
            InstanceInfo::new(InstanceId::new("i-2").unwrap(), CloudInstanceState::Running);
        assert_eq!(ProviderInstance::of(&foreign), None);
    }
}
