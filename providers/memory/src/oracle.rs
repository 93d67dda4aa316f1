//! The truth out of band: what no API call can see, for tests and for proofs that nothing is left.

use std::{collections::BTreeMap, fmt, net::IpAddr, num::NonZeroU32, sync::Arc};

use fleetwright::{InstanceId, InstanceInfo, LaunchToken, MacAddress, Tags, UserData};

use crate::{
    Image,
    cloud::Shared,
    convert,
    engine::{Record, World},
    wire::WireCall,
};

/// Looks at the account from outside. It makes no calls, never lags and changes nothing.
#[derive(Clone, Debug)]
pub struct Oracle {
    shared: Arc<Shared>,
}

/// Everything there is to know about one instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Truth {
    /// As a read without lag would show it.
    pub info: InstanceInfo,
    /// The token it was launched with.
    pub token: Option<LaunchToken>,
    /// What it was given to run, to the byte.
    pub user_data: Option<UserData>,
    /// Its root disk, until that is destroyed.
    pub disk: Option<Disk>,
    /// Whether it occupies a machine; a stopped one does not.
    pub holds_machine: bool,
    /// How often it has booted.
    pub boots: u32,
}

/// A root disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disk {
    /// Its own name; a reimaged instance has another disk.
    pub name: String,
    /// Its size.
    pub size_gb: NonZeroU32,
    /// The instance it is attached to.
    pub instance: InstanceId,
}

/// What exists and costs money.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftovers {
    /// Instances that are not terminated.
    pub instances: Vec<InstanceId>,
    /// Disks.
    pub disks: Vec<String>,
    /// Network cards.
    pub network_cards: Vec<MacAddress>,
    /// Addresses, private and public.
    pub addresses: Vec<IpAddr>,
}

impl Leftovers {
    /// Whether there is nothing at all.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nothing() {
            return f.write_str("nothing left");
        }
        let Self {
            instances,
            disks,
            network_cards,
            addresses,
        } = self;
        let (i, d, n, a) = (
            instances.len(),
            disks.len(),
            network_cards.len(),
            addresses.len(),
        );
        write!(
            f,
            "left: {i} instances, {d} disks, {n} network cards, {a} addresses"
        )
    }
}

impl Oracle {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Every instance, in the order of launch: terminated ones until they vanish, foreign ones too.
    pub fn instances(&self) -> Vec<Truth> {
        self.shared.look(|world| {
            let all = world.records.values();
            all.map(|record| truth(world, record)).collect()
        })
    }

    /// One instance, if there is a record of it.
    pub fn instance(&self, id: &InstanceId) -> Option<Truth> {
        self.shared
            .look(|world| Some(truth(world, world.record(id)?)))
    }

    /// What exists in the whole account.
    pub fn leftovers(&self) -> Leftovers {
        self.shared.look(|world| {
            let mut left = left_of(world, &Tags::new());
            let in_use = world.private.in_use().chain(world.public.in_use());
            left.addresses = in_use.map(IpAddr::from).collect();
            left
        })
    }

    /// What exists of the instances that carry `tags`.
    pub fn leftovers_of(&self, tags: &Tags) -> Leftovers {
        self.shared.look(|world| left_of(world, tags))
    }

    /// The images made of instances, by name.
    pub fn images(&self) -> Vec<Image> {
        self.shared
            .look(|world| world.images.values().cloned().collect())
    }

    /// How often each call was made on the wire, refused and lost ones included.
    pub fn calls(&self) -> BTreeMap<WireCall, u64> {
        self.shared.calls()
    }

    /// How often `call` was made.
    pub fn calls_of(&self, call: WireCall) -> u64 {
        self.calls().get(&call).copied().unwrap_or_default()
    }

    /// How many calls were made in all.
    pub fn total_calls(&self) -> u64 {
        self.calls().values().sum()
    }

    /// How many instance records the cloud has looked at to serve calls.
    pub fn records_touched(&self) -> u64 {
        self.shared.look(|world| world.records_touched)
    }
}

fn left_of(world: &World, tags: &Tags) -> Leftovers {
    let mut left = Leftovers::default();
    for truth in world.records.values().map(|record| truth(world, record)) {
        if !truth.info.tags.contains_all(tags) {
            continue;
        }
        if !truth.info.state.is_final() {
            left.instances.push(truth.info.id);
        }
        left.disks.extend(truth.disk.map(|disk| disk.name));
        left.network_cards.extend(truth.info.mac_address);
        let addresses = [truth.info.private_ip, truth.info.public_ip];
        left.addresses.extend(addresses.into_iter().flatten());
    }
    left
}

fn truth(world: &World, record: &Record) -> Truth {
    let view = record.view(record.current(), world.date_at(record.launched));
    let attached = |disk: &crate::engine::Disk| Disk {
        name: disk.name.clone(),
        size_gb: disk.size_gb,
        instance: record.id.clone(),
    };
    Truth {
        info: convert::info(view, None),
        token: record.token.clone(),
        user_data: record.user_data.clone(),
        disk: record.disk.as_ref().map(attached),
        holds_machine: record.holds_machine,
        boots: record.boots,
    }
}
