//! Who uses what: the indexes by which one record claims another, as data.
//!
//! Deleting something that others use is refused by a check in the very transaction that deletes it, and the check is a
//! claim under an index. A kind that uses networks, groups or authorities declares the indexes here with
//! the paths named here; a store whose schema lacks one of them is refused when it is opened.

use fleetwright_store::{
    Check, Claim, IndexName, IndexValue, Invalid, Kind, Schema, SchemaBuilder,
};

/// The kind of the records of a tenant's instances, which are kept by whoever keeps servers for tenants.
pub const INSTANCE: &str = "instance";
/// The kind of the records of servers.
pub const SERVER: &str = "server";
/// The kind of the records of networks.
pub const NETWORK: &str = "network";
/// The kind of the records of security groups.
pub const SECURITY_GROUP: &str = "security-group";
/// The kind of the records of SSH certificate authorities.
pub const SSH_AUTHORITY: &str = "ssh-authority";

/// An index under which records of one kind have the ids of those that they use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The kind that uses.
    pub by: &'static str,
    /// The index of that kind.
    pub index: &'static str,
    /// Where in its records the id stands, or an array of ids.
    pub path: &'static str,
}

impl Use {
    /// A server stands in one network.
    pub const SERVER_NETWORK: Self = Self {
        by: SERVER,
        index: "network",
        path: "/spec/network",
    };
    /// A server has any number of security groups.
    pub const SERVER_SECURITY_GROUPS: Self = Self {
        by: SERVER,
        index: "security-group",
        path: "/spec/security_groups",
    };
    /// A server may trust one SSH certificate authority.
    pub const SERVER_SSH_AUTHORITY: Self = Self {
        by: SERVER,
        index: "ssh-authority",
        path: "/spec/ssh_authority",
    };
    /// An instance stands in one network, before it has a server and after it has none.
    pub const INSTANCE_NETWORK: Self = Self {
        by: INSTANCE,
        index: "network",
        path: "/network",
    };
    /// An instance has any number of security groups.
    pub const INSTANCE_SECURITY_GROUPS: Self = Self {
        by: INSTANCE,
        index: "security-group",
        path: "/spec/networking/security_groups",
    };
    /// An instance may trust one SSH certificate authority.
    pub const INSTANCE_SSH_AUTHORITY: Self = Self {
        by: INSTANCE,
        index: "ssh-authority",
        path: "/spec/ssh_authority",
    };
    /// A security group is on one network.
    pub const SECURITY_GROUP_NETWORK: Self = Self {
        by: SECURITY_GROUP,
        index: "network",
        path: "/network",
    };

    /// Who uses networks.
    pub const OF_NETWORKS: &'static [Self] = &[
        Self::SERVER_NETWORK,
        Self::INSTANCE_NETWORK,
        Self::SECURITY_GROUP_NETWORK,
    ];
    /// Who uses security groups.
    pub const OF_SECURITY_GROUPS: &'static [Self] =
        &[Self::SERVER_SECURITY_GROUPS, Self::INSTANCE_SECURITY_GROUPS];
    /// Who uses SSH certificate authorities.
    pub const OF_SSH_AUTHORITIES: &'static [Self] =
        &[Self::SERVER_SSH_AUTHORITY, Self::INSTANCE_SSH_AUTHORITY];

    /// Those of them that a store can have: all, but for those of instances where it keeps none. A schema that keeps the kind and
    /// lacks the index is refused.
    pub fn found_in(uses: &[Self], schema: &Schema) -> Result<Vec<Self>, Invalid> {
        let kept = |used: &Self| {
            let (kind, _) = used.names()?;
            Ok::<_, Invalid>(used.by != INSTANCE || schema.kinds().any(|(found, _)| *found == kind))
        };
        let mut found = Vec::new();
        for used in uses {
            if kept(used)? {
                used.is_in(schema)?;
                found.push(*used);
            }
        }
        Ok(found)
    }

    /// Adds the index to a builder whose last kind is [`by`](Self::by).
    #[must_use]
    pub fn declare(self, builder: SchemaBuilder) -> SchemaBuilder {
        builder.index(self.index, [self.path])
    }

    /// The check that nobody uses `id` in this way.
    pub fn absent(self, id: impl Into<IndexValue>) -> Result<Check, Invalid> {
        let (kind, index) = self.names()?;
        Ok(Check::Unclaimed(Claim::new(kind, index, id)))
    }

    /// That a schema has the index, over the path that stands here.
    pub fn is_in(self, schema: &Schema) -> Result<(), Invalid> {
        let (kind, index) = self.names()?;
        let found = schema.index(&kind, &index)?;
        if found.paths == [self.path] {
            return Ok(());
        }
        Err(Invalid::new(format!(
            "index {index} of {kind} is over {:?}, and must be over {:?}",
            found.paths, self.path
        )))
    }

    /// The kind and the index.
    pub fn names(self) -> Result<(Kind, IndexName), Invalid> {
        Ok((Kind::new(self.by)?, IndexName::new(self.index)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_without_a_use_is_told_which() {
        let server = || Schema::builder().kind(SERVER);
        let whole = Use::SERVER_NETWORK.declare(server()).build().unwrap();
        assert_eq!(Use::SERVER_NETWORK.is_in(&whole), Ok(()));
        let elsewhere = server().index("network", ["/network"]).build().unwrap();
        assert_eq!(
            Use::SERVER_NETWORK
                .is_in(&elsewhere)
                .unwrap_err()
                .to_string(),
            r#"index network of server is over ["/network"], and must be over "/spec/network""#
        );
        let without = server().build().unwrap();
        assert_eq!(
            Use::SERVER_NETWORK.is_in(&without).unwrap_err().to_string(),
            "kind server has no index network"
        );
    }

    #[test]
    fn instances_are_asked_only_where_they_are_kept_and_then_for_every_index() {
        let of_networks = [Use::SERVER_NETWORK, Use::INSTANCE_NETWORK];
        let servers = || Use::SERVER_NETWORK.declare(Schema::builder().kind(SERVER));
        let without = servers().build().unwrap();
        let found = Use::found_in(&of_networks, &without).unwrap();
        assert_eq!(found, [Use::SERVER_NETWORK]);
        let both = Use::INSTANCE_NETWORK.declare(servers().kind(INSTANCE));
        let found = Use::found_in(&of_networks, &both.build().unwrap()).unwrap();
        assert_eq!(found, of_networks);
        // Kept without the index, nobody could tell what an instance stands on.
        let blind = servers().kind(INSTANCE).build().unwrap();
        let refused = Use::found_in(&of_networks, &blind).unwrap_err();
        assert_eq!(refused.to_string(), "kind instance has no index network");
        // Servers are kept everywhere.
        let none = Schema::builder().kind(INSTANCE).build().unwrap();
        Use::found_in(&[Use::SERVER_NETWORK], &none).unwrap_err();
    }
}
