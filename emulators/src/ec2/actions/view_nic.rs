//! Network interfaces as EC2 returns them.
//!
//! The same record has more elements in DescribeNetworkInterfaces than inside an instance.

use std::net::Ipv4Addr;

use super::view::{groups, private_name, public_name};
use crate::ec2::{
    engine::{Engine, storage::Nic},
    shapes::{
        storage::{Association, NetworkInterface, NicAttachment, PrivateAddress},
        tag_set,
    },
};

/// The document that a network interface is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NicContext {
    /// Inside an instance: without zone, tags and the instance's id.
    InInstance,
    /// In DescribeNetworkInterfaces: with all elements.
    Standalone,
}

/// Returns a network interface as EC2 returns it. `public` is the public address of its instance,
/// if it has one.
pub(super) fn network_interface(
    engine: &Engine,
    nic: &Nic,
    public: Option<Ipv4Addr>,
    context: NicContext,
) -> NetworkInterface {
    let standalone = context == NicContext::Standalone;
    let account = &engine.core.knobs.account;
    let association = public.map(|ip| Association {
        public_ip: ip.to_string(),
        public_dns_name: public_name(ip),
        ip_owner_id: "amazon",
    });
    NetworkInterface {
        network_interface_id: nic.id.clone(),
        subnet_id: nic.subnet.clone(),
        vpc_id: nic.vpc.clone(),
        availability_zone: standalone.then(|| nic.zone.clone()),
        description: nic.description.clone(),
        owner_id: account.clone(),
        requester_managed: standalone.then_some(false),
        status: if nic.attached_to.is_some() {
            "in-use"
        } else {
            "available"
        },
        mac_address: nic.mac.clone(),
        private_ip_address: nic.private_ip.to_string(),
        private_dns_name: private_name(nic.private_ip),
        source_dest_check: nic.source_dest_check,
        group_set: groups(engine, &nic.groups),
        attachment: nic.attached_to.as_ref().map(|instance| NicAttachment {
            attachment_id: nic.attachment.clone(),
            instance_id: standalone.then(|| instance.clone()),
            instance_owner_id: standalone.then(|| account.clone()),
            device_index: 0,
            status: "attached",
            attach_time: engine.stamp(nic.created),
            delete_on_termination: nic.delete_on_termination,
            network_card_index: 0,
        }),
        association: association.clone(),
        tag_set: standalone.then(|| tag_set(&nic.tags)),
        private_ip_addresses_set: [PrivateAddress {
            private_ip_address: nic.private_ip.to_string(),
            private_dns_name: private_name(nic.private_ip),
            primary: true,
            association,
        }]
        .into_iter()
        .collect(),
        interface_type: "interface",
    }
}
