//! The constants of every run: names, tenants, principals, quota and catalog.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright::{AccountId, InvalidValue};
use fleetwright_facade_testkit::{
    CATALOG, Tenant,
    principals::{scope, with_roles},
    without_entry,
};
pub use fleetwright_facade_testkit::{flavor, image, name, north as region, operator};
use fleetwright_identity::{AuditLog, Defaults, Principal, QuotaKind, QuotaKinds, Roles, Tenancy};
use fleetwright_region::name::Name;
use fleetwright_runtime::{clock::Clock, entropy::Entropy};
use fleetwright_store::{Invalid, Store};

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

/// The quota of networks of an organization.
pub const NETWORK_QUOTA: u64 = 3;
/// The quota of SSH authorities of an organization.
pub const AUTHORITY_QUOTA: u64 = 1;
/// The quota of images of an organization: one less than its instances.
pub const IMAGE_QUOTA: u64 = 2;

/// The interval of the monitor. A shorter one costs more than everything else.
pub const TICK: Duration = Duration::from_secs(4);

/// The most bytes of user data that the memory cloud accepts. The API accepts more.
pub const MAX_USER_DATA: usize = 16 * 1024;

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

/// Returns the id of an account by number: 0 is that of the region.
pub fn account_number(number: u64) -> Result<AccountId, InvalidValue> {
    AccountId::new(format!("memory/{number}"))
}

/// Returns a tenant by number.
pub fn tenant(number: usize) -> Tenant {
    let number = number as u128;
    fleetwright_facade_testkit::tenant(0x100 + number, 0x200 + number)
}

/// Returns the name for the snapshot of a slot's instance.
pub fn snapshot(slot: usize) -> Name {
    name(&format!("snapshot-of-{slot}"))
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
    let name = format!("{name}-{number}");
    with_roles(&name, &[(role, scope(tenant(number)))])
}

/// Encrypts the private keys of servers and seals user data. A test key.
pub const KEYS: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// Returns the quota of each organization: small enough to be exhausted.
pub fn quota() -> QuotaKinds {
    QuotaKinds::standard()
        .with(QuotaKind::servers(), Defaults::organization(SERVER_QUOTA))
        .with(QuotaKind::gpus(), Defaults::organization(GPU_QUOTA))
        .with(
            QuotaKind::public_ips(),
            Defaults::organization(PUBLIC_IP_QUOTA),
        )
        .with(QuotaKind::networks(), Defaults::organization(NETWORK_QUOTA))
        .with(
            QuotaKind::ssh_authorities(),
            Defaults::organization(AUTHORITY_QUOTA),
        )
        .with(QuotaKind::images(), Defaults::organization(IMAGE_QUOTA))
}

/// Returns the service of organizations and projects over a store.
pub fn tenancy(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<Tenancy, Invalid> {
    let audit = AuditLog::new(Arc::clone(&store), clock, entropy)?;
    let roles = Arc::new(Roles::built_in());
    Tenancy::new(store, roles, audit)?.with_contents(fleetwright_compute::schema::contents())
}

/// The flavor that operators remove and add.
pub const RETIRED_FLAVOR: &str = "large";

/// Returns the catalog without these flavors and images.
pub fn catalog(retired: &BTreeSet<&str>) -> String {
    let all = CATALOG.to_owned();
    retired
        .iter()
        .fold(all, |catalog, entry| without_entry(&catalog, entry))
}
