//! Creating organizations, projects, networks, security groups and certificate authorities.

use std::fmt::Write as _;

use fleetwright_region::{
    ids::{NetworkId, RegionId, SecurityGroupId, SshAuthorityId},
    network::{AuthorityKey, NewNetwork, NewSecurityGroup, NewSshAuthority, Rules},
};

use super::TestFacade;
use crate::{
    name, north, operator,
    principals::{Tenant, create_tenant},
    tenant,
};

/// With a comment, which must not reach a machine.
const AUTHORITY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX comment of the tenant";

impl TestFacade {
    /// Creates the organization and the project of a tenant, unless they exist.
    pub async fn ensure_tenant(&self, tenant: Tenant) {
        create_tenant(&self.tenancy, tenant).await;
    }

    /// Creates a network of a tenant.
    pub async fn network_in(&self, tenant: Tenant, region: RegionId, called: &str) -> NetworkId {
        self.ensure_tenant(tenant).await;
        let new = NewNetwork {
            organization: tenant.0,
            project: tenant.1,
            region,
            name: name(called),
            prefix: "10.0.0.0/16".parse().unwrap(),
            dns: Vec::new(),
        };
        let created = self.networks.create(&operator(), &new).await;
        created.unwrap().value.id
    }

    /// Creates a network of `tenant(1, 1)` in region `north`.
    pub async fn network(&self, called: &str) -> NetworkId {
        self.network_in(tenant(1, 1), north(), called).await
    }

    /// Creates a security group without rules.
    pub async fn group(&self, network: NetworkId, called: &str) -> SecurityGroupId {
        let new = NewSecurityGroup {
            network,
            name: name(called),
            rules: Rules::default(),
        };
        let created = self.security_groups.create(&operator(), &new).await;
        let id = created.unwrap().value.id;
        self.map_group(id);
        id
    }

    /// Adds a security group to the mapping of region `north`.
    fn map_group(&self, id: SecurityGroupId) {
        const TABLE: &str = "[security-groups]";
        let mut mapping = self.mapping();
        if !mapping.contains(TABLE) {
            let _ = writeln!(mapping, "{TABLE}");
        }
        let _ = writeln!(mapping, "\"{id}\" = \"sg-{id}\"");
        self.set_mapping(&mapping);
    }

    /// Creates an SSH certificate authority.
    pub async fn authority(&self, tenant: Tenant) -> SshAuthorityId {
        self.ensure_tenant(tenant).await;
        let new = NewSshAuthority {
            organization: tenant.0,
            project: tenant.1,
            name: name("ca"),
            public_key: AuthorityKey::new(AUTHORITY).unwrap(),
        };
        let created = self.ssh_authorities.create(&operator(), &new).await;
        created.unwrap().value.id
    }
}
