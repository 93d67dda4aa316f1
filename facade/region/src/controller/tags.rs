//! The tags by which people, and a monitor that finds a machine nobody claims, can tell whose it is. They are never the only
//! link: records name machines by id, and launches by token.

use fleetwright::{TagChange, Tags};

use crate::server::{Machine, Server};

/// Which region's machine it is: the owner in the account.
pub const REGION: &str = "fleetwright-region";
/// Which server's.
pub const SERVER: &str = "fleetwright-server";
/// Which machine of that server: [`Server::machine_name`].
pub const MACHINE: &str = "fleetwright-machine";

/// What a machine of a server is tagged with: what is asked for, and the region's own tags, which win.
pub fn of(server: &Server, incarnation: u64) -> Tags {
    tagged(server, &server.spec.tags, incarnation)
}

/// What the machine should be tagged with as long as nothing else is applied.
pub fn applied(server: &Server, machine: &Machine) -> Tags {
    tagged(server, &machine.applied.tags, machine.incarnation)
}

fn tagged(server: &Server, asked: &Tags, incarnation: u64) -> Tags {
    let own = [
        (REGION, server.region.to_string()),
        (SERVER, server.id.to_string()),
        (MACHINE, server.machine_name(incarnation)),
    ];
    let mut tags = asked.clone();
    for (key, value) in own {
        // The keys are neither empty nor reserved: there is nothing to refuse.
        let _ = tags.insert(key, value);
    }
    tags
}

/// From what the machine has, or may have, to what it should have.
pub fn change(server: &Server, machine: &Machine) -> TagChange {
    let wanted = of(server, machine.incarnation);
    let mut change = TagChange::new();
    change.set = wanted.clone();
    let applied = machine.applied.tags.iter().map(|(key, _)| key.to_owned());
    let had = applied.chain(machine.unconfirmed.tag_keys.iter().cloned());
    change.remove = had.filter(|key| wanted.get(key).is_none()).collect();
    change
}
