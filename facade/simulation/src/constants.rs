//! The constants of every run: names, tenants, principals, quota and catalog.

use std::{fmt::Display, sync::LazyLock};

use fleetwright_identity::{
    Actor, ActorName, Binding, Defaults, OrganizationId, Permission, Principal, ProjectId,
    QuotaKind, QuotaKinds, RoleName, Roles, Scope,
};
use fleetwright_region::{
    ids::{FlavorId, ImageId, RegionId},
    name::Name,
};
use uuid::Uuid;

/// How many slots for instances a scenario has.
pub const SLOT_COUNT: usize = 5;
/// How many of them are created at first: one more exceeds the tenant's quota.
pub const FIRST_SLOTS: usize = 4;
/// The quota of servers of an organization.
pub const SERVER_QUOTA: u64 = 3;
/// The quota of GPUs of an organization: those of one machine.
pub const GPU_QUOTA: u64 = 4;
/// The quota of public addresses of an organization.
pub const PUBLIC_IP_QUOTA: u64 = 1;

static REGION: LazyLock<RegionId> = LazyLock::new(|| valid(RegionId::new("here")));

#[expect(clippy::panic, reason = "the names are constants of this program")]
fn valid<T, E: Display>(name: Result<T, E>) -> T {
    name.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the region.
pub fn region() -> RegionId {
    REGION.clone()
}

/// A slot for an instance: its tenant, network and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The number of the tenant.
    pub tenant: usize,
    /// The index of the network.
    pub network: usize,
    /// The instance's name.
    pub name: &'static str,
}

/// The slots. The third is in the second zone; the fourth belongs to another tenant and has a name
/// that is used elsewhere.
pub const SLOTS: [Slot; SLOT_COUNT] = [
    slot(0, 0, "a"),
    slot(0, 0, "b"),
    slot(0, 1, "c"),
    slot(1, 2, "a"),
    slot(0, 0, "d"),
];

const fn slot(tenant: usize, network: usize, name: &'static str) -> Slot {
    Slot {
        tenant,
        network,
        name,
    }
}

/// The tenant of each network.
pub const NETWORKS: [usize; 3] = [0, 0, 1];

/// Returns a tenant by number.
pub fn tenant(number: usize) -> (OrganizationId, ProjectId) {
    let id = |base: u128| Uuid::from_u128(base + number as u128);
    (id(0x100).into(), id(0x200).into())
}

/// Returns a valid name.
pub fn name(text: &str) -> Name {
    valid(Name::new(text))
}

/// Returns a flavor's id.
pub fn flavor(text: &str) -> FlavorId {
    valid(FlavorId::new(text))
}

/// Returns an image's id.
pub fn image(text: &str) -> ImageId {
    valid(ImageId::new(text))
}

/// Returns the id for the snapshot of a slot's instance.
pub fn snapshot(slot: usize) -> ImageId {
    image(&format!("snapshot-of-{slot}"))
}

/// Returns the user of a tenant's project.
pub fn user(tenant: usize) -> Principal {
    with_role("user", "project-user", tenant)
}

/// Returns the reader of a tenant's project.
pub fn reader(tenant: usize) -> Principal {
    with_role("reader", "project-reader", tenant)
}

fn with_role(name: &str, role: &str, number: usize) -> Principal {
    let (organization, project) = tenant(number);
    let actor = Actor::User(valid(ActorName::new(format!("{name}-{number}"))));
    let role = valid(RoleName::new(role));
    let binding = Binding::new(role, Scope::Project(organization, project));
    valid(Roles::built_in().principal(actor, &[binding]))
}

/// Returns an operator with every permission.
pub fn operator() -> Principal {
    Principal::service(valid(ActorName::new("operator")), Permission::all())
}

/// Returns the quota of each organization: small enough to be exhausted.
pub fn quota() -> QuotaKinds {
    QuotaKinds::standard()
        .with(QuotaKind::servers(), Defaults::organization(SERVER_QUOTA))
        .with(QuotaKind::gpus(), Defaults::organization(GPU_QUOTA))
        .with(
            QuotaKind::public_ips(),
            Defaults::organization(PUBLIC_IP_QUOTA),
        )
}

/// The flavor that operators remove and add.
pub const RETIRED_FLAVOR: &str = "large";

/// Returns the catalog, with or without [`RETIRED_FLAVOR`].
pub fn catalog(with_large: bool) -> String {
    let large = if with_large { LARGE } else { "" };
    format!("{CATALOG}{large}")
}

const LARGE: &str = r#"
    [[flavor]]
    id = "large"
    cpus = 8
    memory = "16 GiB"
    disk = "80 GB"
    architecture = "x86_64"
"#;

const CATALOG: &str = r#"
    [[image]]
    id = "linux"
    architecture = "x86_64"
    size = "10 GiB"
    virtualization = "any"
    visibility = "global"
    os = { family = "debian", distro = "debian", version = "13" }

    [[image]]
    id = "bsd"
    architecture = "x86_64"
    size = "10 GiB"
    virtualization = "any"
    visibility = "global"
    os = { family = "redhat", distro = "rocky", version = "9" }

    [[flavor]]
    id = "small"
    cpus = 2
    memory = "4 GiB"
    disk = "20 GB"
    architecture = "x86_64"

    [[flavor]]
    id = "gpu"
    cpus = 8
    memory = "16 GiB"
    disk = "80 GB"
    architecture = "x86_64"
    gpu = { vendor = "NVIDIA", model = "L4", memory = "24 GiB", physical-count = 4, logical-count = 8 }
"#;
