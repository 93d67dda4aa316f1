//! The kinds of records of this crate, their indexes and their references.

use fleetwright_identity::{Content, Resource};
use fleetwright_region::{
    references::{Reference, ReferenceTarget, References},
    secret::SealedField,
};
use fleetwright_store::{Document as _, SchemaBuilder};

use crate::instance::Instance;

/// The kind of the records of instances.
pub const INSTANCE_KIND: &str = "instance";

/// An instance is in one network, before it has a server and after it has none.
pub const INSTANCE_NETWORK: Reference = Reference {
    from: INSTANCE_KIND,
    to: ReferenceTarget::Network,
    path: "/network",
};
/// An instance has any number of security groups.
pub const INSTANCE_SECURITY_GROUPS: Reference = Reference {
    from: INSTANCE_KIND,
    to: ReferenceTarget::SecurityGroup,
    path: "/spec/networking/security_groups",
};
/// An instance trusts at most one SSH certificate authority.
pub const INSTANCE_SSH_AUTHORITY: Reference = Reference {
    from: INSTANCE_KIND,
    to: ReferenceTarget::SshAuthority,
    path: "/spec/ssh_authority",
};
/// An instance boots from one image.
pub const INSTANCE_IMAGE: Reference = Reference {
    from: INSTANCE_KIND,
    to: ReferenceTarget::Image,
    path: "/spec/image",
};
const INSTANCE_REFERENCES: [Reference; 4] = [
    INSTANCE_NETWORK,
    INSTANCE_SECURITY_GROUPS,
    INSTANCE_SSH_AUTHORITY,
    INSTANCE_IMAGE,
];

/// Returns the references of the region and of instances. The region's services on a store with [every kind](add_all_kinds) are built
/// with them, so that they refuse to delete what an instance uses.
///
/// ```
/// use fleetwright_compute::schema::{INSTANCE_NETWORK, references};
/// use fleetwright_region::references::ReferenceTarget;
///
/// let references = references();
/// let mut to_networks = references.to(ReferenceTarget::Network);
/// assert!(to_networks.any(|reference| reference == INSTANCE_NETWORK));
/// ```
pub fn references() -> References {
    References::default().with(INSTANCE_REFERENCES)
}

/// Returns what can be in a project: a project that has any of these is not deleted.
///
/// ```
/// use fleetwright_compute::schema;
///
/// assert!(schema::contents().any(|content| content.kind == schema::INSTANCE_KIND));
/// ```
pub fn contents() -> impl Iterator<Item = Content> {
    let instances = Content {
        kind: INSTANCE_KIND,
        index: PROJECT_INDEX,
        resource: Resource::Instances,
    };
    fleetwright_region::schema::contents()
        .into_iter()
        .chain([instances])
}

/// The unique index of an instance's name in its network, whatever its id is.
pub const NAME_INDEX: &str = "name";
/// The index of an instance's tenant: organization, project.
pub const PROJECT_INDEX: &str = "project";
/// The index of an instance's organization alone: with it a list of an organization is in the order of its ids.
pub const ORGANIZATION_INDEX: &str = "organization";
/// The index of an instance's region.
pub const REGION_INDEX: &str = "region";

/// The user data of an instance.
pub(crate) const INSTANCE_USER_DATA: SealedField = SealedField {
    kind: INSTANCE_KIND,
    pointer: "/spec/user_data",
    unopened: "/spec/sealed_user_data",
};

/// Returns every field of the façade's records that is [sealed](fleetwright_region::secret::SealedStore): the copies of user data in
/// the records of instances and servers.
///
/// ```
/// use fleetwright_compute::schema;
///
/// let kinds: Vec<_> = schema::sealed_fields().map(|field| field.kind).collect();
/// assert!(kinds.contains(&"instance") && kinds.contains(&"server"));
/// ```
pub fn sealed_fields() -> impl Iterator<Item = SealedField> {
    std::iter::once(INSTANCE_USER_DATA).chain(fleetwright_region::schema::sealed_fields())
}

/// Adds the kind of instances. A store for compute has the kinds of [region](fleetwright_region::schema::add_kinds) and of
/// [identity](fleetwright_identity::schema()) too, so that an instance, its allocation and checks of its dependencies are one
/// transaction.
///
/// ```
/// use fleetwright_compute::schema::add_kinds;
/// use fleetwright_store::Schema;
///
/// let schema = add_kinds(Schema::builder()).build()?;
/// assert_eq!(schema.kinds().count(), 1, "instances alone");
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[must_use]
pub fn add_kinds(builder: SchemaBuilder) -> SchemaBuilder {
    let instance = builder
        .kind(Instance::KIND)
        .unique(NAME_INDEX, ["/network", "/name"])
        .index(PROJECT_INDEX, ["/organization", "/project"])
        .index(ORGANIZATION_INDEX, ["/organization"])
        .index(REGION_INDEX, ["/region"]);
    INSTANCE_REFERENCES
        .into_iter()
        .fold(instance, |builder, reference| reference.declare(builder))
}

/// Adds every kind of a façade's store. [`Facade::schema`](crate::Facade::schema) is the complete schema.
///
/// ```
/// use fleetwright_compute::schema::add_all_kinds;
/// use fleetwright_store::Schema;
///
/// let schema = add_all_kinds(Schema::builder().kind("invoice")).build()?; // with a kind of your own
/// assert!(schema.kinds().any(|(kind, _)| kind.as_str() == "instance"));
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[must_use]
pub fn add_all_kinds(builder: SchemaBuilder) -> SchemaBuilder {
    add_kinds(fleetwright_region::schema::add_kinds(
        fleetwright_identity::schema(builder),
    ))
}
