//! The fixed things of every run: names, the tenant, the planner.

use std::{collections::BTreeSet, sync::LazyLock};

use fleetwright::{InstanceConfig, Placement, Zone};
use fleetwright_identity::{
    ActorName, InvalidName, OrganizationId, Permission, Principal, ProjectId, Resource, Verb,
};
use fleetwright_region::{
    ids::{BadId, FlavorId, ImageId, NetworkId, RegionId},
    mapping::{LaunchPlanner, LaunchSpec, Unplannable},
    server::{NewServer, Owner, ServerId, ServerSpec},
};
use uuid::Uuid;

use crate::scenario::SERVERS;

static REGION: LazyLock<RegionId> = LazyLock::new(|| known(RegionId::new("here")));

#[expect(clippy::panic, reason = "the names are constants of this program")]
fn known<T>(name: Result<T, BadId>) -> T {
    name.unwrap_or_else(|error| panic!("{error}"))
}

/// The region.
pub fn region() -> RegionId {
    REGION.clone()
}

/// The servers.
pub fn server_ids() -> impl Iterator<Item = ServerId> {
    (0..SERVERS).map(server_id)
}

/// One of the servers.
pub fn server_id(number: usize) -> ServerId {
    ServerId::from_uuid(Uuid::from_u128(0xa000 + number as u128))
}

/// The small flavor, or the large one.
pub fn flavor(large: bool) -> FlavorId {
    known(FlavorId::new(if large { "large" } else { "small" }))
}

/// One image, or the other.
pub fn image(other: bool) -> ImageId {
    known(ImageId::new(if other { "bsd" } else { "linux" }))
}

/// What a server is asked to be at first. The last one stands in the second zone.
pub fn new_server(number: usize) -> NewServer {
    let network = NetworkId::from_uuid(Uuid::from_u128(if number + 1 == SERVERS { 2 } else { 1 }));
    let spec = ServerSpec::new(flavor(false), image(false), network);
    let owner = Owner::new("instance", number.to_string());
    let tenant = (
        OrganizationId::new(Uuid::from_u128(1)),
        ProjectId::new(Uuid::from_u128(2)),
    );
    NewServer::new(server_id(number), owner, region(), tenant, spec)
}

/// Whoever may do everything to servers.
pub fn client() -> Result<Principal, InvalidName> {
    let all: BTreeSet<_> = Permission::all()
        .filter(|permission| permission.resource() == Resource::Servers)
        .filter(|permission| Verb::ALL.contains(&permission.verb()))
        .collect();
    Ok(Principal::service(ActorName::new("simulation")?, all))
}

/// Every name is its own; the second network is in the second zone.
#[derive(Debug)]
pub struct Planner;

impl LaunchPlanner for Planner {
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, Unplannable> {
        let refused = |source| Unplannable::Refused {
            region: region(),
            source,
        };
        let second = spec.network.as_uuid() == Uuid::from_u128(2);
        let zone = Zone::new(if second { "mem-b" } else { "mem-a" }).map_err(refused)?;
        let mut placement = Placement::default();
        placement.zone = Some(zone);
        placement.public_address = Some(spec.public_ip);
        InstanceConfig::builder(spec.image.as_str(), spec.flavor.as_str())
            .tags(&spec.tags)
            .placement(placement)
            .build()
            .map_err(refused)
    }
}
