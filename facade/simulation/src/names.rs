//! The fixed things of every run: names, tenants, people, what is offered.

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

/// How many places for an instance a scenario is about.
pub const SLOTS: usize = 5;
/// How many of them are asked for at first: one more is too many for its tenant.
pub const FIRST: usize = 4;
/// How many servers an organization may have.
pub const SERVERS: u64 = 3;
/// How many graphics processors: those of one machine.
pub const GPUS: u64 = 4;
/// How many public addresses.
pub const ADDRESSES: u64 = 1;

static REGION: LazyLock<RegionId> = LazyLock::new(|| known(RegionId::new("here")));

#[expect(clippy::panic, reason = "the names are constants of this program")]
fn known<T, E: Display>(name: Result<T, E>) -> T {
    name.unwrap_or_else(|error| panic!("{error}"))
}

/// The region.
pub fn region() -> RegionId {
    REGION.clone()
}

/// Where an instance stands, and what it is called there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which tenant.
    pub tenant: usize,
    /// Which network.
    pub network: usize,
    /// Its name.
    pub name: &'static str,
}

/// The places. The third stands in the second zone; the fourth is another tenant's, and has a name that is taken elsewhere.
pub const PLACES: [Place; SLOTS] = [
    place(0, 0, "a"),
    place(0, 0, "b"),
    place(0, 1, "c"),
    place(1, 2, "a"),
    place(0, 0, "d"),
];

const fn place(tenant: usize, network: usize, name: &'static str) -> Place {
    Place {
        tenant,
        network,
        name,
    }
}

/// The tenant of each network.
pub const NETWORKS: [usize; 3] = [0, 0, 1];

/// A tenant.
pub fn tenant(number: usize) -> (OrganizationId, ProjectId) {
    let id = |base: u128| Uuid::from_u128(base + number as u128);
    (id(0x100).into(), id(0x200).into())
}

/// A name that is one.
pub fn name(text: &str) -> Name {
    known(Name::new(text))
}

/// A flavor.
pub fn flavor(text: &str) -> FlavorId {
    known(FlavorId::new(text))
}

/// An image.
pub fn image(text: &str) -> ImageId {
    known(ImageId::new(text))
}

/// The image that is made of the instance in a place.
pub fn snapshot(slot: usize) -> ImageId {
    image(&format!("made-of-{slot}"))
}

/// Whoever works in a tenant's project.
pub fn user(tenant: usize) -> Principal {
    with_role("user", "project-user", tenant)
}

/// Whoever looks at a tenant's project.
pub fn reader(tenant: usize) -> Principal {
    with_role("reader", "project-reader", tenant)
}

fn with_role(called: &str, role: &str, number: usize) -> Principal {
    let (organization, project) = tenant(number);
    let actor = Actor::User(known(ActorName::new(format!("{called}-{number}"))));
    let role = known(RoleName::new(role));
    let binding = Binding::new(role, Scope::Project(organization, project));
    known(Roles::built_in().principal(actor, &[binding]))
}

/// Whoever may do and see everything.
pub fn operator() -> Principal {
    Principal::service(known(ActorName::new("operator")), Permission::all())
}

/// What there is for each organization: so little that it is used up.
pub fn quota() -> QuotaKinds {
    QuotaKinds::standard()
        .with(QuotaKind::servers(), Defaults::organization(SERVERS))
        .with(QuotaKind::gpus(), Defaults::organization(GPUS))
        .with(QuotaKind::public_ips(), Defaults::organization(ADDRESSES))
}

/// The flavor that is retired for a while.
pub const RETIRED: &str = "large";

/// What is offered, with or without the flavor that is retired for a while.
pub fn catalog(whole: bool) -> String {
    let large = if whole { LARGE } else { "" };
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
