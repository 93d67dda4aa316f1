//! What a cloud tells about an instance.
//!
//! Owns the two views of the seed: [`InstanceInfo`], all there is, and [`InstanceStatus`], the part
//! a poll needs. What a cloud does not tell is `None`, never an empty string.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{CloudInstanceState, ImageId, InstanceId, InstanceType, MacAddress, Placement, Tags};

/// Everything a cloud tells about one instance at one moment.
///
/// A list carries all of it, so that a monitor needs no second call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstanceInfo {
    /// The cloud's name for it.
    pub id: InstanceId,
    /// Its state in the shared words.
    pub state: CloudInstanceState,
    /// Its state in the cloud's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_state: Option<String>,
    /// Why it is in that state, in the cloud's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    /// Its address inside its network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<IpAddr>,
    /// Its public address, never the old one of a stopped instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<IpAddr>,
    /// The hardware address of its first network card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<MacAddress>,
    /// When it was launched; some clouds tell when it was last started instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_time: Option<DateTime<Utc>>,
    /// Its tags, exactly as they were given; a backend's reserved ones are left out.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The image it was launched from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageId>,
    /// Its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<InstanceType>,
    /// Where it is.
    #[serde(default)]
    pub placement: Placement,
}

impl InstanceInfo {
    /// An instance of which only the id and the state are known; the other fields are public.
    pub fn new(id: InstanceId, state: CloudInstanceState) -> Self {
        Self {
            id,
            state,
            native_state: None,
            state_reason: None,
            private_ip: None,
            public_ip: None,
            mac_address: None,
            launch_time: None,
            tags: Tags::new(),
            image: None,
            instance_type: None,
            placement: Placement::default(),
        }
    }
}

/// The cloud's view of an instance, as a poll needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstanceStatus {
    /// The cloud's name for it.
    pub id: InstanceId,
    /// Its state in the shared words.
    pub state: CloudInstanceState,
    /// Its state in the cloud's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_state: Option<String>,
    /// Why it is in that state, in the cloud's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    /// Its address inside its network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<IpAddr>,
    /// Its public address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<IpAddr>,
    /// The hardware address of its first network card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<MacAddress>,
}

impl InstanceStatus {
    /// A status of which only the id and the state are known; the other fields are public.
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
            private_ip: info.private_ip,
            public_ip: info.public_ip,
            mac_address: info.mac_address,
        }
    }
}

/// What became of a launch, by its token: how an unknown outcome is settled without launching again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchRecord {
    /// The launch made these instances, and at least one of them is neither terminated nor being
    /// terminated. A replay of the token answers them.
    Found(Vec<InstanceInfo>),
    /// The launch had its effect, and what it launched is terminated or being terminated: what
    /// the cloud still knows of its instances, each with the cloud's reason. The token is spent.
    Terminated(Vec<InstanceInfo>),
    /// The cloud shows no launch with this token. That proves there is none only once the declared
    /// [consistency window](crate::Capabilities::consistency_window) has passed since the launch
    /// was sent. For a batch, ask [`find_launches`](crate::InstanceProvisionerExt::find_launches).
    NotFound,
}

impl LaunchRecord {
    /// The record of a launch that made `instances`; none at all is [`NotFound`](Self::NotFound).
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
    fn a_status_is_the_same_instance_with_less() {
        let mut whole = info("i-1", CloudInstanceState::Running);
        whole.native_state = Some("ACTIVE".into());
        whole.state_reason = Some("asked".into());
        whole.private_ip = Some([10, 0, 0, 1].into());
        whole.public_ip = Some([198, 18, 0, 1].into());
        whole.mac_address = Some(MacAddress::new([2; 6]));
        let status = InstanceStatus::from(whole.clone());
        let mut json = serde_json::to_value(&whole).unwrap();
        json.as_object_mut().unwrap().remove("placement");
        assert_eq!(serde_json::to_value(status).unwrap(), json);
        let bare = InstanceStatus::new(whole.id.clone(), whole.state);
        assert_eq!(
            serde_json::to_string(&bare).unwrap(),
            r#"{"id":"i-1","state":"running"}"#
        );
    }

    #[test]
    fn a_launch_is_gone_only_when_all_of_it_is() {
        let (live, dead) = (
            info("i-1", CloudInstanceState::Stopped),
            info("i-2", CloudInstanceState::Terminated),
        );
        let going = info("i-3", CloudInstanceState::Terminating);
        assert_eq!(LaunchRecord::from_instances(vec![]), LaunchRecord::NotFound);
        let ending = vec![going, dead.clone()];
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
