//! The data that a cloud reports about an instance.
//!
//! Owns [`InstanceInfo`] with all of it, [`InstanceStatus`] with the part that a poll needs,
//! [`LaunchFailure`], why a launch failed late, and [`LaunchRecord`], the result of a token look-up. A
//! value that the cloud does not report is `None`, never an empty string.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    CloudInstanceState, ErrorKind, Fingerprint, ImageId, InstanceId, InstanceType, MacAddress,
    Placement, ProvisionError, Scope, Tags,
};

/// Everything that a cloud reports about one instance at one moment.
///
/// A list returns all of it, so that a monitor needs no second call. Within the backend's
/// [consistency window](crate::Capabilities::consistency_window) it may be out of date.
///
/// ```
/// use fleetwright::{CloudInstanceState, InstanceId, InstanceInfo, InstanceStatus};
///
/// let mut info = InstanceInfo::new(InstanceId::new("i-1")?, CloudInstanceState::Running);
/// info.private_ip = Some([10, 0, 0, 5].into());
/// let status = InstanceStatus::from(info);
/// assert_eq!(status.private_ip, Some([10, 0, 0, 5].into()));
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstanceInfo {
    /// The cloud's id of the instance.
    pub id: InstanceId,
    /// The state.
    pub state: CloudInstanceState,
    /// The state as the cloud names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_state: Option<String>,
    /// The cloud's reason for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    /// Why the launch failed after the cloud had accepted it. `None` if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_failure: Option<LaunchFailure>,
    /// The address inside the instance's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<IpAddr>,
    /// The current public address. `None` while the instance is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<IpAddr>,
    /// The hardware address of the first network interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<MacAddress>,
    /// When the instance was launched. Some clouds report when it was last started instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_time: Option<DateTime<Utc>>,
    /// The tags, exactly as they were set, without the reserved ones of the backend.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The image that the instance was launched from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageId>,
    /// The instance type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<InstanceType>,
    /// The placement, as far as the cloud reports it.
    #[serde(default)]
    pub placement: Placement,
    /// The [fingerprint](crate::InstanceConfig::fingerprint) of the config that the instance was
    /// launched with, as the backend stored it with the instance. It proves which config a launch had,
    /// whatever the cloud adds to tags or changes in names. `None` if the instance was launched
    /// without a token or by another program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Fingerprint>,
}

impl InstanceInfo {
    /// Creates an info with an id and a state. All other fields are empty, and public.
    pub fn new(id: InstanceId, state: CloudInstanceState) -> Self {
        Self {
            id,
            state,
            native_state: None,
            state_reason: None,
            launch_failure: None,
            private_ip: None,
            public_ip: None,
            mac_address: None,
            launch_time: None,
            tags: Tags::new(),
            image: None,
            instance_type: None,
            placement: Placement::default(),
            config: None,
        }
    }
}

/// The part of an [`InstanceInfo`] that changes during the life of an instance, for polling.
///
/// ```
/// use fleetwright::{CloudInstanceState, InstanceId, InstanceStatus};
///
/// let status = InstanceStatus::new(InstanceId::new("i-1")?, CloudInstanceState::Stopped);
/// assert!(status.public_ip.is_none());
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstanceStatus {
    /// The cloud's id of the instance.
    pub id: InstanceId,
    /// The state.
    pub state: CloudInstanceState,
    /// The state as the cloud names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_state: Option<String>,
    /// The cloud's reason for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    /// Why the launch failed after the cloud had accepted it. `None` if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_failure: Option<LaunchFailure>,
    /// The address inside the instance's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<IpAddr>,
    /// Its public address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<IpAddr>,
    /// The hardware address of the first network interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<MacAddress>,
}

impl InstanceStatus {
    /// Creates a status with an id and a state. All other fields are empty, and public.
    pub fn new(id: InstanceId, state: CloudInstanceState) -> Self {
        InstanceInfo::new(id, state).into()
    }
}

impl From<InstanceInfo> for InstanceStatus {
    fn from(info: InstanceInfo) -> Self {
        Self {
            id: info.id,
            state: info.state,
            native_state: info.native_state,
            state_reason: info.state_reason,
            launch_failure: info.launch_failure,
            private_ip: info.private_ip,
            public_ip: info.public_ip,
            mac_address: info.mac_address,
        }
    }
}

/// Why a launch failed after the cloud had accepted it, in the terms of an error. Nothing of the launch
/// runs. The cloud's words are in [`InstanceInfo::state_reason`].
///
/// The scopes name what the backend still knows about the failed launch; a caller that knows its config
/// knows more.
///
/// ```
/// use fleetwright::{ErrorKind, LaunchFailure, Scope, Zone};
///
/// let failure = LaunchFailure::new(ErrorKind::Capacity, [Scope::zone(Zone::new("zone-a")?)]);
/// let failure = failure.with_native_code("AllocationFailed");
/// assert_eq!(failure.scopes[0].to_string(), "zone zone-a");
/// assert_eq!(failure.native_code.as_deref(), Some("AllocationFailed"));
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LaunchFailure {
    /// What went wrong.
    pub kind: ErrorKind,
    /// What it applies to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Scope>,
    /// The code that the cloud gave the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_code: Option<String>,
}

impl LaunchFailure {
    /// Creates a failure with its scopes, without a native code.
    pub fn new(kind: ErrorKind, scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self {
            kind,
            scopes: scopes.into_iter().collect(),
            native_code: None,
        }
    }

    /// Sets the code that the cloud gave the failure.
    #[must_use]
    pub fn with_native_code(mut self, code: impl Into<String>) -> Self {
        self.native_code = Some(code.into());
        self
    }
}

impl From<&ProvisionError> for LaunchFailure {
    fn from(error: &ProvisionError) -> Self {
        let failure = Self::new(error.kind(), error.scopes().iter().cloned());
        match error.native_code() {
            Some(code) => failure.with_native_code(code),
            None => failure,
        }
    }
}

/// What became of a launch, looked up by its token. It settles a launch whose outcome is unknown
/// without launching again.
///
/// ```
/// use fleetwright::LaunchRecord;
///
/// fn next_step(record: &LaunchRecord) -> &'static str {
///     match record {
///         LaunchRecord::Found(_) => "use the instances",
///         LaunchRecord::Terminated(_) => "launch with a new token",
///         LaunchRecord::NotFound => "launch with the same token",
///     }
/// }
/// assert_eq!(next_step(&LaunchRecord::from_instances(vec![])), "launch with the same token");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchRecord {
    /// The launch created these instances, and at least one of them is neither terminating nor
    /// terminated. A replay of the token returns them.
    Found(Vec<InstanceInfo>),
    /// The launch created instances, and all of them are terminating or terminated. Contains those
    /// that the cloud still knows, with the cloud's reason. The token is spent.
    Terminated(Vec<InstanceInfo>),
    /// The cloud reports no launch with this token. That proves that there is none only if the
    /// [consistency window](crate::Capabilities::consistency_window) has passed since the launch was
    /// sent; [`settle_launch`](crate::InstanceProvisionerExt::settle_launch) waits for that. For a
    /// batch, use [`find_launches`](crate::InstanceProvisionerExt::find_launches).
    NotFound,
}

impl LaunchRecord {
    /// Returns the record of a launch that created `instances`, or [`NotFound`](Self::NotFound) if
    /// there are none.
    pub fn from_instances(instances: Vec<InstanceInfo>) -> Self {
        if instances.is_empty() {
            Self::NotFound
        } else if instances.iter().all(|info| info.state.is_ending()) {
            Self::Terminated(instances)
        } else {
            Self::Found(instances)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str, state: CloudInstanceState) -> InstanceInfo {
        InstanceInfo::new(InstanceId::new(name).unwrap(), state)
    }

    #[test]
    fn status_has_the_changing_fields_of_the_info() {
        let mut full = info("i-1", CloudInstanceState::Running);
        full.native_state = Some("ACTIVE".into());
        full.state_reason = Some("stopped on request".into());
        full.launch_failure = Some(LaunchFailure::new(ErrorKind::Capacity, [Scope::Region]));
        full.private_ip = Some([10, 0, 0, 1].into());
        full.public_ip = Some([198, 18, 0, 1].into());
        full.mac_address = Some(MacAddress::new([2; 6]));
        let status = InstanceStatus::from(full.clone());
        let mut json = serde_json::to_value(&full).unwrap();
        json.as_object_mut().unwrap().remove("placement");
        assert_eq!(serde_json::to_value(status).unwrap(), json);
        let bare = InstanceStatus::new(full.id.clone(), full.state);
        assert_eq!(
            serde_json::to_string(&bare).unwrap(),
            r#"{"id":"i-1","state":"running"}"#
        );
    }

    #[test]
    fn launch_is_terminated_only_if_all_instances_are_ending() {
        let (live, dead) = (
            info("i-1", CloudInstanceState::Stopped),
            info("i-2", CloudInstanceState::Terminated),
        );
        let terminating = info("i-3", CloudInstanceState::Terminating);
        assert_eq!(LaunchRecord::from_instances(vec![]), LaunchRecord::NotFound);
        let ending = vec![terminating, dead.clone()];
        assert_eq!(
            LaunchRecord::from_instances(ending.clone()),
            LaunchRecord::Terminated(ending)
        );
        let both = vec![dead.clone(), live];
        assert_eq!(
            LaunchRecord::from_instances(both.clone()),
            LaunchRecord::Found(both)
        );
        assert_eq!(
            LaunchRecord::from_instances(vec![dead.clone()]),
            LaunchRecord::Terminated(vec![dead])
        );
    }
}
