//! Networks, security groups and certificate authorities.

use fleetwright_api as api;
use fleetwright_region::network::{
    AuthorityKey, Direction, Network, NetworkState, NewNetwork, NewSecurityGroup, NewSshAuthority,
    Protocol, Rule, Rules, SecurityGroup, SshAuthority,
};

use super::parse;
use crate::failure::Failure;

pub(crate) fn parse_new(new: &api::NetworkCreate) -> Result<NewNetwork, Failure> {
    let dns = new.dns_nameservers.iter();
    let dns: Result<_, _> = dns
        .map(|address| parse("dnsNameservers", address))
        .collect();
    Ok(NewNetwork {
        organization: parse("organizationId", &new.organization_id)?,
        project: parse("projectId", &new.project_id)?,
        region: parse("regionId", &new.region_id)?,
        name: parse("name", &new.name)?,
        prefix: parse("prefix", &new.prefix)?,
        dns: dns?,
    })
}

pub(crate) fn network(network: &Network) -> api::Network {
    api::Network {
        id: network.id.to_string(),
        organization_id: network.organization.to_string(),
        project_id: network.project.to_string(),
        region_id: network.region.to_string(),
        name: network.name.to_string(),
        prefix: network.prefix.to_string(),
        dns_nameservers: network.dns.iter().map(ToString::to_string).collect(),
        state: match network.state {
            NetworkState::Ready => api::NetworkState::Ready,
            NetworkState::Deleting => api::NetworkState::Deleting,
        },
    }
}

pub(crate) fn parse_group(new: &api::SecurityGroupCreate) -> Result<NewSecurityGroup, Failure> {
    Ok(NewSecurityGroup {
        network: parse("networkId", &new.network_id)?,
        name: parse("name", &new.name)?,
        rules: parse_rules(&new.rules)?,
    })
}

pub(crate) fn parse_rules(rules: &[api::Rule]) -> Result<Rules, Failure> {
    let parsed: Result<Vec<_>, _> = rules.iter().map(parse_rule).collect();
    Rules::new(parsed?).map_err(|error| Failure::impossible("rules", error))
}

fn parse_rule(rule: &api::Rule) -> Result<Rule, Failure> {
    let direction = match rule.direction {
        api::Direction::Ingress => Direction::Ingress,
        api::Direction::Egress => Direction::Egress,
    };
    let protocol = match rule.protocol {
        api::Protocol::Any => Protocol::Any,
        api::Protocol::Icmp => Protocol::Icmp,
        api::Protocol::Tcp => Protocol::Tcp,
        api::Protocol::Udp => Protocol::Udp,
    };
    let prefix = rule
        .prefix
        .as_deref()
        .map(|prefix| parse("rules.prefix", prefix));
    let ports = (rule.port, rule.port_max);
    Rule::new(direction, protocol, ports, prefix.transpose()?)
        .map_err(|error| Failure::impossible("rules", error))
}

pub(crate) fn group(group: &SecurityGroup) -> api::SecurityGroup {
    api::SecurityGroup {
        id: group.id.to_string(),
        organization_id: group.organization.to_string(),
        project_id: group.project.to_string(),
        network_id: group.network.to_string(),
        name: group.name.to_string(),
        rules: group.rules.iter().map(rule).collect(),
    }
}

fn rule(rule: Rule) -> api::Rule {
    let ports = rule.ports();
    api::Rule {
        direction: match rule.direction() {
            Direction::Ingress => api::Direction::Ingress,
            Direction::Egress => api::Direction::Egress,
        },
        protocol: match rule.protocol() {
            Protocol::Any => api::Protocol::Any,
            Protocol::Icmp => api::Protocol::Icmp,
            Protocol::Tcp => api::Protocol::Tcp,
            Protocol::Udp => api::Protocol::Udp,
        },
        port: ports.map(|ports| ports.first()),
        port_max: ports.map(|ports| ports.last()),
        prefix: rule.prefix().map(|prefix| prefix.to_string()),
    }
}

pub(crate) fn parse_authority(new: &api::SshAuthorityCreate) -> Result<NewSshAuthority, Failure> {
    let key = AuthorityKey::new(&new.public_key);
    Ok(NewSshAuthority {
        organization: parse("organizationId", &new.organization_id)?,
        project: parse("projectId", &new.project_id)?,
        name: parse("name", &new.name)?,
        public_key: key.map_err(|error| Failure::impossible("publicKey", error))?,
    })
}

pub(crate) fn authority(authority: &SshAuthority) -> api::SshAuthority {
    api::SshAuthority {
        id: authority.id.to_string(),
        organization_id: authority.organization.to_string(),
        project_id: authority.project.to_string(),
        name: authority.name.to_string(),
        public_key: authority.public_key.as_str().to_owned(),
    }
}
