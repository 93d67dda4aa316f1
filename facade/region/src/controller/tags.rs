//! The tags that name the region, the server and the machine, for people and for the monitor's search for orphans. They are never the
//! only link: records refer to machines by id and to launches by token.

use fleetwright::{TagChange, Tags};

use crate::server::{Machine, Server};

/// The region of the machine.
pub const REGION: &str = "fleetwright-region";
/// The server of the machine.
pub const SERVER: &str = "fleetwright-server";
/// The name of the machine: [`Server::machine_name`].
pub const MACHINE: &str = "fleetwright-machine";

/// Returns the desired tags of a machine: those of the spec, and the region's own, which take precedence.
///
/// ```
/// use fleetwright_region::controller::tags;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use fleetwright_facade_testkit::{TestRegion, bare_server, server_admin};
/// # let cloud = fleetwright_memory::MemoryCloud::new().provisioner();
/// # let (region, admin) = (TestRegion::new(std::sync::Arc::new(cloud)), server_admin());
/// let server = region.servers.ensure(&admin, &bare_server(1)).await?.server;
/// assert_eq!(tags::of(&server, 1).get(tags::REGION), Some("north"));
/// # Ok(())
/// # }
/// ```
pub fn of(server: &Server, incarnation: u64) -> Tags {
    tagged(server, &server.spec.tags, incarnation)
}

/// Returns the tags of the spec that was last applied, with the region's own.
pub fn applied(server: &Server, machine: &Machine) -> Tags {
    tagged(server, &machine.applied.tags, machine.incarnation)
}

fn tagged(server: &Server, requested: &Tags, incarnation: u64) -> Tags {
    let own = [
        (REGION, server.region.to_string()),
        (SERVER, server.id.to_string()),
        (MACHINE, server.machine_name(incarnation)),
    ];
    let mut tags = requested.clone();
    for (key, value) in own {
        // The keys are valid, so this cannot fail.
        let _ = tags.insert(key, value);
    }
    tags
}

/// Returns the change from the tags that the machine has or may have to the desired ones.
pub fn change(server: &Server, machine: &Machine) -> TagChange {
    let wanted = of(server, machine.incarnation);
    let mut change = TagChange::new();
    change.set = wanted.clone();
    let applied = machine.applied.tags.iter().map(|(key, _)| key.to_owned());
    let had = applied.chain(machine.unconfirmed.tag_keys.iter().cloned());
    change.remove = had.filter(|key| wanted.get(key).is_none()).collect();
    change
}
