//! The record of a network, and the request for one.

use std::net::IpAddr;

use fleetwright_identity::{OrganizationId, ProjectId, QuotaKind, Resource, Scope};
use fleetwright_store::{Document, IndexValue};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{Filter, Prefix, tenant_records::TenantRecord};
use crate::{
    ids::{NetworkId, RegionId},
    name::Name,
    references::ReferenceTarget,
    schema::NETWORK_KIND,
};

/// The largest number of name servers of a network.
const MAX_DNS: usize = 5;
/// The allowed lengths of a network's prefix: 2^24 to 16 addresses.
const LENGTHS: std::ops::RangeInclusive<u8> = 8..=28;

/// A network of a project in a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Network {
    /// The id, and the namespace of the ids of its servers.
    pub id: NetworkId,
    /// The organization that owns it.
    pub organization: OrganizationId,
    /// The project that owns it.
    pub project: ProjectId,
    /// The region of the network and its servers.
    pub region: RegionId,
    /// The name, unique in the project and region.
    pub name: Name,
    /// The IPv4 addresses, with a length of 8 to 28.
    pub prefix: Prefix,
    /// The name servers, at most 5, in the order in which they are queried.
    #[serde(default)]
    pub dns: Vec<IpAddr>,
    /// Whether it accepts new servers and groups.
    pub state: NetworkState,
}

/// The state of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkState {
    /// Servers and security groups can be created in it.
    Ready,
    /// It is deleted once no server is in it. It accepts nothing new.
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

/// A request for a network.
///
/// ```
/// use fleetwright_region::{name::Name, network::NewNetwork};
/// use uuid::Uuid;
///
/// let mut new = NewNetwork {
///     organization: Uuid::from_u128(1).into(),
///     project: Uuid::from_u128(2).into(),
///     region: "north".parse()?,
///     name: Name::new("blue")?,
///     prefix: "10.0.0.0/16".parse()?,
///     dns: Vec::new(),
/// };
/// assert!(new.check().is_ok());
/// new.prefix = "10.0.0.0/30".parse()?; // too few addresses
/// assert!(new.check().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNetwork {
    /// The organization that will own it.
    pub organization: OrganizationId,
    /// The project that will own it.
    pub project: ProjectId,
    /// The region.
    pub region: RegionId,
    /// The name, unique in the project and region.
    pub name: Name,
    /// The IPv4 addresses, with a length of 8 to 28.
    pub prefix: Prefix,
    /// The name servers, at most 5, in the order in which they are queried. Empty: the provider's.
    pub dns: Vec<IpAddr>,
}

/// Why a request for a network is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidNetwork {
    /// The prefix is IPv6.
    #[error("prefix {0} is IPv6: expected IPv4, as in 10.0.0.0/16")]
    NotV4(Prefix),
    /// The length of the prefix is not 8 to 28.
    #[error("prefix {0} has a length of {1}: expected 8 to 28")]
    Length(Prefix, u8),
    /// Servers cannot have the addresses: loopback, link-local, multicast or reserved.
    #[error("prefix {0} is reserved: expected addresses that servers can have, as in 10.0.0.0/16")]
    Reserved(Prefix),
    /// There are too many name servers.
    #[error("there are {0} name servers: expected at most {MAX_DNS}")]
    TooManyDns(usize),
    /// A name server is in the list twice.
    #[error("name server {0} is given twice: leave one out")]
    DuplicateDns(IpAddr),
    /// The address of a name server is unspecified, multicast or loopback.
    #[error(
        "{0} is not the address of a name server: expected a unicast address that is not loopback"
    )]
    InvalidDns(IpAddr),
}

impl NewNetwork {
    /// Checks prefix and name servers.
    ///
    /// # Errors
    ///
    /// The first problem.
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
                return Err(InvalidNetwork::InvalidDns(*address));
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
        // Multicast and the reserved addresses above it.
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

    fn quota() -> Option<QuotaKind> {
        Some(QuotaKind::networks())
    }

    fn id(&self) -> NetworkId {
        self.id
    }

    fn name(&self) -> &Name {
        &self.name
    }

    fn unique_name(&self) -> IndexValue {
        [
            self.organization.to_string(),
            self.project.to_string(),
            self.region.to_string(),
            self.name.to_string(),
        ]
        .into()
    }

    fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.project)
    }

    fn matches(&self, filter: &Filter) -> bool {
        let (region, network) = (filter.region.as_ref(), filter.network);
        region.is_none_or(|region| *region == self.region)
            && network.is_none_or(|network| network == self.id)
    }
}
