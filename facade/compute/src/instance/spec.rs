//! The desired shape of an instance.

use std::collections::BTreeSet;

use fleetwright::{PublicAddress, Tags, UserData};
use fleetwright_region::{
    ids::{FlavorId, ImageId, NetworkId, SecurityGroupId, SshAuthorityId},
    network::Prefix,
    secret::UnopenedUserData,
    server::ServerSpec,
};
use serde::{Deserialize, Serialize};

/// The desired shape of an instance. Network and region are not part of it: they never change.
///
/// | changed field | change method |
/// | --- | --- |
/// | flavor | resize where the cloud can, otherwise replace |
/// | image | reimage where the cloud can, otherwise replace |
/// | security groups, public address, authority | replace |
/// | user data | at the next launch, since it is read at the first boot |
///
/// [`plan_update`](crate::service::Instances::plan_update) returns the method for an instance in its region.
///
/// ```
/// use fleetwright_compute::prelude::*;
///
/// let mut spec = InstanceSpec::new("small".parse()?, "debian".parse()?);
/// spec.user_data = Some(UserData::new("#!/bin/sh\nexec runner\n")?);
/// assert!(spec.networking.security_groups.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstanceSpec {
    /// Its flavor: processors, memory, disk.
    pub flavor: FlavorId,
    /// The image that it boots from.
    pub image: ImageId,
    /// Its security groups and addresses. Default: reachable only from its network.
    #[serde(default)]
    pub networking: Networking,
    /// The SSH certificate authority whose certificates give access. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_authority: Option<SshAuthorityId>,
    /// What it runs at its first boot, in a format of cloud-init; at most 32 KiB. `Debug` never shows it, and it is
    /// [sealed](fleetwright_region::secret::SealedStore) in the record. Default: none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fleetwright_region::secret::read_user_data"
    )]
    pub user_data: Option<UserData>,
    /// Set if the record has user data that cannot be opened, because its key is missing. The instance can be started, stopped and deleted
    /// then; to launch another machine, give other user data or wait for the key. Default: none; it cannot be requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_user_data: Option<UnopenedUserData>,
}

/// The security groups and addresses of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Networking {
    /// Its security groups, all on its network; at most 32. Default: none.
    #[serde(default)]
    pub security_groups: BTreeSet<SecurityGroupId>,
    /// Whether it gets a public address. Default: absent.
    #[serde(default = "absent")]
    pub public_ip: PublicAddress,
    /// Additional addresses that it may send from. No region supports them yet, so they must be empty.
    #[serde(default)]
    pub allowed_sources: BTreeSet<Prefix>,
}

fn absent() -> PublicAddress {
    PublicAddress::Absent
}

impl Default for Networking {
    /// Reachable only from its network.
    fn default() -> Self {
        Self {
            security_groups: BTreeSet::new(),
            public_ip: absent(),
            allowed_sources: BTreeSet::new(),
        }
    }
}

impl InstanceSpec {
    /// A spec with the defaults. The other fields are public.
    pub fn new(flavor: FlavorId, image: ImageId) -> Self {
        Self {
            flavor,
            image,
            networking: Networking::default(),
            ssh_authority: None,
            user_data: None,
            sealed_user_data: None,
        }
    }

    /// The spec of the server of an instance with this spec.
    pub fn server(&self, network: NetworkId, tags: &Tags) -> ServerSpec {
        let mut server = ServerSpec::new(self.flavor.clone(), self.image.clone(), network);
        server
            .security_groups
            .clone_from(&self.networking.security_groups);
        server.public_ip = self.networking.public_ip;
        server.ssh_authority = self.ssh_authority;
        server.user_data.clone_from(&self.user_data);
        if self.user_data.is_none() {
            server.sealed_user_data.clone_from(&self.sealed_user_data);
        }
        server.tags = tags.clone();
        server
    }
}
