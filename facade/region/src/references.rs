//! References between records, as data: the indexes by which one record says that it uses another.
//!
//! Deleting a record that others use is refused by a check in the transaction that deletes it: no record may have the id under
//! the index of a reference. The region declares its own references here. A crate that keeps further records that use networks, security groups or
//! authorities adds its references to the [registry](References) and passes it to the services. Every service refuses a store
//! whose schema does not match the registry.

use fleetwright_store::{
    Check, Claim, IndexName, IndexValue, Invalid, Kind, Schema, SchemaBuilder,
};

use crate::schema::{SECURITY_GROUP_KIND, SERVER_KIND};

/// The kinds of records that can be referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceTarget {
    /// Networks.
    Network,
    /// Security groups.
    SecurityGroup,
    /// SSH certificate authorities.
    SshAuthority,
    /// Images.
    Image,
}

impl ReferenceTarget {
    const ALL: [Self; 4] = [
        Self::Network,
        Self::SecurityGroup,
        Self::SshAuthority,
        Self::Image,
    ];

    /// Returns the name that every index of references to this target has.
    pub const fn index(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::SecurityGroup => "security-group",
            Self::SshAuthority => "ssh-authority",
            Self::Image => "image",
        }
    }
}

/// An index under which the records of one kind have the ids of the records that they use.
///
/// ```
/// use fleetwright_region::references::{Reference, ReferenceTarget};
/// use fleetwright_store::Schema;
///
/// const CLUSTER_NETWORK: Reference = Reference {
///     from: "cluster",
///     to: ReferenceTarget::Network,
///     path: "/spec/network",
/// };
/// let schema = CLUSTER_NETWORK.declare(Schema::builder().kind("cluster")).build()?;
/// CLUSTER_NETWORK.check_schema(&schema)?;
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The kind of the records that refer.
    pub from: &'static str,
    /// What they refer to. It names the [index](ReferenceTarget::index).
    pub to: ReferenceTarget,
    /// The JSON pointer to the id in such a record, or to an array of ids.
    pub path: &'static str,
}

impl Reference {
    /// A server is in one network.
    pub const SERVER_NETWORK: Self = Self {
        from: SERVER_KIND,
        to: ReferenceTarget::Network,
        path: "/spec/network",
    };
    /// A server has any number of security groups.
    pub const SERVER_SECURITY_GROUPS: Self = Self {
        from: SERVER_KIND,
        to: ReferenceTarget::SecurityGroup,
        path: "/spec/security_groups",
    };
    /// A server trusts at most one SSH certificate authority.
    pub const SERVER_SSH_AUTHORITY: Self = Self {
        from: SERVER_KIND,
        to: ReferenceTarget::SshAuthority,
        path: "/spec/ssh_authority",
    };
    /// A server boots from one image.
    pub const SERVER_IMAGE: Self = Self {
        from: SERVER_KIND,
        to: ReferenceTarget::Image,
        path: "/spec/image",
    };
    /// A security group is on one network.
    pub const SECURITY_GROUP_NETWORK: Self = Self {
        from: SECURITY_GROUP_KIND,
        to: ReferenceTarget::Network,
        path: "/network",
    };

    /// Adds the index to a builder whose last kind is [`from`](Self::from).
    #[must_use]
    pub fn declare(self, builder: SchemaBuilder) -> SchemaBuilder {
        builder.index(self.to.index(), [self.path])
    }

    /// Returns the check that no record refers to `id` by this reference, for the transaction that deletes it.
    ///
    /// # Errors
    ///
    /// The kind or the index is not a valid name.
    pub fn absent(self, id: impl Into<IndexValue>) -> Result<Check, Invalid> {
        let (kind, index) = self.names()?;
        Ok(Check::Unclaimed(Claim::new(kind, index, id)))
    }

    /// Checks that a schema has the index, over this path.
    ///
    /// # Errors
    ///
    /// The kind or its index is missing, or the index is over other paths.
    pub fn check_schema(self, schema: &Schema) -> Result<(), Invalid> {
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

    /// Returns the kind and the index.
    pub fn names(self) -> Result<(Kind, IndexName), Invalid> {
        Ok((Kind::new(self.from)?, IndexName::new(self.to.index())?))
    }
}

/// The registry of references: the region's own, and those of the crates that build on it.
///
/// ```
/// use fleetwright_region::references::{Reference, ReferenceTarget, References};
///
/// // A crate whose records use networks registers that, so that no used network is deleted.
/// let gateways = Reference { from: "gateway", to: ReferenceTarget::Network, path: "/network" };
/// let references = References::default().with([gateways]);
/// assert!(references.to(ReferenceTarget::Network).any(|reference| reference == gateways));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References(Vec<Reference>);

impl Default for References {
    /// The region's own references.
    fn default() -> Self {
        Self(vec![
            Reference::SERVER_NETWORK,
            Reference::SERVER_SECURITY_GROUPS,
            Reference::SERVER_SSH_AUTHORITY,
            Reference::SERVER_IMAGE,
            Reference::SECURITY_GROUP_NETWORK,
        ])
    }
}

impl References {
    /// Adds further references.
    #[must_use]
    pub fn with(mut self, references: impl IntoIterator<Item = Reference>) -> Self {
        self.0.extend(references);
        self
    }

    /// Returns the references to a target.
    pub fn to(&self, target: ReferenceTarget) -> impl Iterator<Item = Reference> {
        let references = self.0.iter().copied();
        references.filter(move |reference| reference.to == target)
    }

    /// Checks that a schema has the index of every reference, and no index of a reference that is not registered.
    ///
    /// # Errors
    ///
    /// Schema and registry differ: a record that is in use could be deleted.
    pub fn check_schema(&self, schema: &Schema) -> Result<(), Invalid> {
        for reference in &self.0 {
            reference.check_schema(schema)?;
        }
        for (kind, indexes) in schema.kinds() {
            for target in ReferenceTarget::ALL {
                let registered = || self.to(target).any(|known| known.from == kind.as_str());
                let declared = indexes.keys().any(|index| index.as_str() == target.index());
                if declared && !registered() {
                    return Err(Invalid::new(format!(
                        "kind {kind} has an index {}, and no such reference is registered",
                        target.index()
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Reference = Reference {
        from: "other",
        to: ReferenceTarget::Network,
        path: "/network",
    };

    #[test]
    fn schema_without_a_reference_is_refused_by_name() {
        let server = || Schema::builder().kind(SERVER_KIND);
        let complete = Reference::SERVER_NETWORK.declare(server()).build().unwrap();
        assert_eq!(Reference::SERVER_NETWORK.check_schema(&complete), Ok(()));
        let elsewhere = server().index("network", ["/network"]).build().unwrap();
        assert_eq!(
            Reference::SERVER_NETWORK
                .check_schema(&elsewhere)
                .unwrap_err()
                .to_string(),
            r#"index network of server is over ["/network"], and must be over "/spec/network""#
        );
        let without = server().build().unwrap();
        assert_eq!(
            Reference::SERVER_NETWORK
                .check_schema(&without)
                .unwrap_err()
                .to_string(),
            "kind server has no index network"
        );
    }

    #[test]
    fn registry_and_schema_must_match() {
        let region = || crate::schema::add_kinds(Schema::builder());
        let (own, more) = (References::default(), References::default().with([OTHER]));
        let schema = region().build().unwrap();
        assert_eq!(own.check_schema(&schema), Ok(()));
        // A registered reference whose kind the schema does not have, or not with the index.
        more.check_schema(&schema).unwrap_err();
        let blind = region().kind("other").build().unwrap();
        assert_eq!(own.check_schema(&blind), Ok(()));
        assert_eq!(
            more.check_schema(&blind).unwrap_err().to_string(),
            "kind other has no index network"
        );
        // A reference that is not registered.
        let both = OTHER.declare(region().kind("other")).build().unwrap();
        assert_eq!(more.check_schema(&both), Ok(()));
        assert_eq!(
            own.check_schema(&both).unwrap_err().to_string(),
            "kind other has an index network, and no such reference is registered"
        );
        assert_eq!(more.to(ReferenceTarget::Network).count(), 3);
        assert_eq!(more.to(ReferenceTarget::SshAuthority).count(), 1);
    }
}
