//! The filter values of instances, volumes and network interfaces.
//!
//! Owns which filters a resource has and which values it has for them. A filter that is not in
//! `NAMES` is refused with `InvalidParameterValue`, so that a client never relies on an ignored
//! filter.

use super::{
    filter::Filtered,
    read::ReadInstance,
    record::{State, Tags},
    storage::{Nic, Volume},
};

/// The filters of DescribeInstances, on the version that the read returns.
///
/// A terminated instance has no private address, subnet and VPC, so filters of these do not match
/// it.
impl Filtered for ReadInstance<'_> {
    /// The filters of instances.
    const NAMES: &'static [&'static str] = &[
        "architecture",
        "availability-zone",
        "client-token",
        "image-id",
        "instance-id",
        "instance-lifecycle",
        "instance-state-code",
        "instance-state-name",
        "instance-type",
        "instance.group-id",
        "ip-address",
        "key-name",
        "network-interface.subnet-id",
        "owner-id",
        "private-ip-address",
        "reservation-id",
        "root-device-name",
        "root-device-type",
        "spot-instance-request-id",
        "state-reason-code",
        "subnet-id",
        "vpc-id",
    ];

    /// Returns the values of a filter; none for an attribute that is not set.
    fn values(&self, name: &str) -> Vec<String> {
        let (fixed, version) = (&self.instance.fixed, self.version);
        let one = |value: &str| vec![value.to_owned()];
        let terminated = version.state == State::Terminated;
        let optional = |value: Option<String>| value.into_iter().collect();
        match name {
            "architecture" => one(&fixed.architecture),
            "availability-zone" => one(&fixed.zone),
            "client-token" => optional(fixed.token.clone()),
            "image-id" => one(&fixed.image),
            "instance-id" => one(&fixed.id),
            "instance-lifecycle" => optional(fixed.spot.as_ref().map(|_| "spot".to_owned())),
            "instance-state-code" => vec![version.state.code().to_string()],
            "instance-state-name" => one(version.state.name()),
            "instance-type" => one(&version.instance_type),
            "instance.group-id" => (*version.groups).clone(),
            "ip-address" => optional(version.public_ip.map(|ip| ip.to_string())),
            "key-name" => optional(fixed.key_name.clone()),
            "private-ip-address" if !terminated => vec![fixed.private_ip.to_string()],
            "reservation-id" => one(&fixed.reservation),
            "root-device-name" => one(&fixed.root_device),
            "root-device-type" => one("ebs"),
            "spot-instance-request-id" => optional(fixed.spot.as_ref().map(|(id, _)| id.clone())),
            "state-reason-code" => {
                optional(version.reason.as_ref().map(|reason| reason.code.clone()))
            }
            "subnet-id" | "network-interface.subnet-id" if !terminated => one(&fixed.subnet),
            "vpc-id" if !terminated => one(&fixed.vpc),
            _ => Vec::new(),
        }
    }

    /// Returns the tags of the version.
    fn tags(&self) -> Option<&Tags> {
        Some(&self.version.tags)
    }
}

/// The filters of DescribeVolumes. A volume without an attachment matches no `attachment` filter.
impl Filtered for Volume {
    /// The filters of volumes.
    const NAMES: &'static [&'static str] = &[
        "attachment.delete-on-termination",
        "attachment.device",
        "attachment.instance-id",
        "attachment.status",
        "availability-zone",
        "encrypted",
        "size",
        "snapshot-id",
        "status",
        "volume-id",
        "volume-type",
    ];

    /// Returns the values of a filter; none for an attribute that is not set.
    fn values(&self, name: &str) -> Vec<String> {
        let attached = self.attached_to.as_ref();
        let optional = |value: Option<String>| value.into_iter().collect();
        match name {
            "attachment.delete-on-termination" => {
                optional(attached.map(|_| self.device.delete_on_termination.to_string()))
            }
            "attachment.device" => optional(attached.map(|_| self.device.name.clone())),
            "attachment.instance-id" => optional(attached.cloned()),
            "attachment.status" => optional(attached.map(|_| "attached".to_owned())),
            "availability-zone" => vec![self.zone.clone()],
            "encrypted" => vec![self.device.encrypted.to_string()],
            "size" => vec![self.device.gib.to_string()],
            "snapshot-id" => optional(self.device.snapshot.clone()),
            "status" => vec![
                if attached.is_some() {
                    "in-use"
                } else {
                    "available"
                }
                .to_owned(),
            ],
            "volume-id" => vec![self.id.clone()],
            "volume-type" => vec![self.device.kind.clone()],
            _ => Vec::new(),
        }
    }

    /// Returns the tags.
    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}

/// The filters of DescribeNetworkInterfaces. An interface without an attachment matches no
/// `attachment` filter.
impl Filtered for Nic {
    /// The filters of network interfaces.
    const NAMES: &'static [&'static str] = &[
        "addresses.private-ip-address",
        "attachment.instance-id",
        "attachment.status",
        "availability-zone",
        "description",
        "group-id",
        "mac-address",
        "network-interface-id",
        "private-ip-address",
        "status",
        "subnet-id",
        "vpc-id",
    ];

    /// Returns the values of a filter; none for an attribute that is not set.
    fn values(&self, name: &str) -> Vec<String> {
        let attached = self.attached_to.as_ref();
        match name {
            "addresses.private-ip-address" | "private-ip-address" => {
                vec![self.private_ip.to_string()]
            }
            "attachment.instance-id" => attached.cloned().into_iter().collect(),
            "attachment.status" => attached
                .map(|_| "attached".to_owned())
                .into_iter()
                .collect(),
            "availability-zone" => vec![self.zone.clone()],
            "description" => vec![self.description.clone()],
            "group-id" => self.groups.clone(),
            "mac-address" => vec![self.mac.clone()],
            "network-interface-id" => vec![self.id.clone()],
            "status" => vec![
                if attached.is_some() {
                    "in-use"
                } else {
                    "available"
                }
                .to_owned(),
            ],
            "subnet-id" => vec![self.subnet.clone()],
            "vpc-id" => vec![self.vpc.clone()],
            _ => Vec::new(),
        }
    }

    /// Returns the tags.
    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
