//! What an instance is asked to be.

use std::collections::BTreeSet;

use fleetwright::{PublicAddress, Tags, UserData};
use fleetwright_region::{
    ids::{FlavorId, ImageId, NetworkId, SecurityGroupId, SshAuthorityId},
    network::Prefix,
    server::ServerSpec,
};
use serde::{Deserialize, Serialize};

/// The asked shape of an instance. Where it stands is no part of it: that never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstanceSpec {
    /// Its size.
    pub flavor: FlavorId,
    /// What it boots from.
    pub image: ImageId,
    /// How it is reached.
    #[serde(default)]
    pub networking: Networking,
    /// The authority whose certificates open it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_authority: Option<SshAuthorityId>,
    /// What it runs at its first boot, in a format of cloud-init. Never shown by `Debug`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<UserData>,
}

/// How an instance is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Networking {
    /// The security groups around it, all on its network.
    #[serde(default)]
    pub security_groups: BTreeSet<SecurityGroupId>,
    /// Whether it gets a public address.
    #[serde(default = "absent")]
    pub public_ip: PublicAddress,
    /// Addresses beside its own that it may send from.
    #[serde(default)]
    pub allowed_sources: BTreeSet<Prefix>,
}

fn absent() -> PublicAddress {
    PublicAddress::Absent
}

impl Default for Networking {
    /// Reached from its network alone.
    fn default() -> Self {
        Self {
            security_groups: BTreeSet::new(),
            public_ip: absent(),
            allowed_sources: BTreeSet::new(),
        }
    }
}

impl InstanceSpec {
    /// The least there is to an instance; the other fields are public.
    pub fn new(flavor: FlavorId, image: ImageId) -> Self {
        Self {
            flavor,
            image,
            networking: Networking::default(),
            ssh_authority: None,
            user_data: None,
        }
    }

    /// What the server of such an instance is asked to be.
    pub fn server(&self, network: NetworkId, tags: &Tags) -> ServerSpec {
        let mut server = ServerSpec::new(self.flavor.clone(), self.image.clone(), network);
        server
            .security_groups
            .clone_from(&self.networking.security_groups);
        server.public_ip = self.networking.public_ip;
        server.ssh_authority = self.ssh_authority;
        server.user_data.clone_from(&self.user_data);
        server.tags = tags.clone();
        server
    }
}
