//! Networks as they are stored and asked for.

use std::net::IpAddr;

use fleetwright_identity::{OrganizationId, ProjectId, Resource, Scope};
use fleetwright_store::Document;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{Prefix, tenant_records::TenantRecord};
use crate::{
    ids::{NetworkId, RegionId},
    name::Name,
    references::ReferenceTarget,
    schema::NETWORK_KIND,
};

/// How many name servers a network may have.
const MAX_DNS: usize = 5;
/// The lengths of a network's prefix: from a sixteenth of all private addresses to sixteen addresses.
const LENGTHS: std::ops::RangeInclusive<u8> = 8..=28;

/// A network of a project in a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Network {
    /// What it is found by, and the namespace of the ids of its servers.
    pub id: NetworkId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// In which project.
    pub project: ProjectId,
    /// Where it is, and so where its servers are.
    pub region: RegionId,
    /// What it is called: one in its project and region.
    pub name: Name,
    /// Its addresses.
    pub prefix: Prefix,
    /// Who is asked for names, the first first.
    #[serde(default)]
    pub dns: Vec<IpAddr>,
    /// Whether new things may stand in it.
    pub state: NetworkState,
}

/// How far a network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkState {
    /// Servers may be made in it.
    Ready,
    /// It was asked to go: what stands in it goes first, and nothing new comes.
    Deleting,
}

impl NetworkState {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Deleting => "deleting",
        }
    }
}

/// A network that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNetwork {
    /// Whose it is to be.
    pub organization: OrganizationId,
    /// In which project.
    pub project: ProjectId,
    /// Where.
    pub region: RegionId,
    /// What it is to be called.
    pub name: Name,
    /// Its addresses.
    pub prefix: Prefix,
    /// Who is asked for names, the first first.
    pub dns: Vec<IpAddr>,
}

/// Why something is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidNetwork {
    /// The prefix is of the other family.
    #[error("prefix {0} is of IPv6: want one of IPv4, as in 10.0.0.0/16")]
    NotV4(Prefix),
    /// The prefix is too long or too short.
    #[error("prefix {0} has a length of {1}: want 8 to 28")]
    Length(Prefix, u8),
    /// The addresses cannot be given to servers.
    #[error(
        "prefix {0} is not for servers: want addresses that are theirs to have, as in 10.0.0.0/16"
    )]
    Reserved(Prefix),
    /// There are too many name servers.
    #[error("there are {0} name servers, and a network has {MAX_DNS} at the most")]
    TooManyDns(usize),
    /// A name server stands twice in the list.
    #[error("name server {0} is given twice: leave one out")]
    DuplicateDns(IpAddr),
    /// Nobody can be asked there.
    #[error("{0} is no address of a name server: want one that can be asked")]
    BadDns(IpAddr),
}

impl NewNetwork {
    /// Whether it can be a network.
    pub fn check(&self) -> Result<(), InvalidNetwork> {
        check_prefix(self.prefix)?;
        if self.dns.len() > MAX_DNS {
            return Err(InvalidNetwork::TooManyDns(self.dns.len()));
        }
        for (position, address) in self.dns.iter().enumerate() {
            if self.dns[..position].contains(address) {
                return Err(InvalidNetwork::DuplicateDns(*address));
            }
            if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
                return Err(InvalidNetwork::BadDns(*address));
            }
        }
        Ok(())
    }

    pub(super) fn with_id(&self, id: NetworkId) -> Network {
        let Self {
            organization,
            project,
            region,
            name,
            prefix,
            dns,
        } = self.clone();
        Network {
            id,
            organization,
            project,
            region,
            name,
            prefix,
            dns,
            state: NetworkState::Ready,
        }
    }
}

fn check_prefix(prefix: Prefix) -> Result<(), InvalidNetwork> {
    let IpNet::V4(net) = prefix.net() else {
        return Err(InvalidNetwork::NotV4(prefix));
    };
    if !LENGTHS.contains(&net.prefix_len()) {
        return Err(InvalidNetwork::Length(prefix, net.prefix_len()));
    }
    let first = net.network();
    let reserved = first.octets()[0] == 0
        || first.is_loopback()
        || first.is_link_local()
        // Multicast, and what lies above it.
        || first.octets()[0] >= 224;
    if reserved {
        return Err(InvalidNetwork::Reserved(prefix));
    }
    Ok(())
}

impl Document for Network {
    const KIND: &'static str = NETWORK_KIND;
}

impl TenantRecord for Network {
    type Id = NetworkId;
    const WHAT: &'static str = "network";
    const RESOURCE: Resource = Resource::Networks;
    const TARGET: ReferenceTarget = ReferenceTarget::Network;

    fn id(&self) -> NetworkId {
        self.id
    }

    fn name(&self) -> &Name {
        &self.name
    }

    fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.project)
    }
}
