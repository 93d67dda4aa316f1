//! The true state of the account, read past its API, for assertions in tests.
//!
//! Reading it never changes the account, except that due transitions are carried out first.

use std::{collections::BTreeMap, fmt, net::IpAddr, num::NonZeroU32, sync::Arc};

use fleetwright::{InstanceId, InstanceInfo, LaunchToken, MacAddress, Tags, UserData};

use crate::{
    Image,
    cloud::Shared,
    convert,
    engine::{Record, World},
    wire::WireCall,
};

/// Reads the true state of the account. It makes no calls, never lags and changes nothing.
///
/// # Example
///
/// ```
/// use fleetwright::{InstanceConfig, InstanceProvisioner};
/// use fleetwright_memory::{MemoryCloud, WireCall};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cloud = MemoryCloud::new();
/// let config = InstanceConfig::builder("image-1", "small").user_data("#!/bin/sh").build()?;
/// let instance = cloud.provisioner().launch_instance(&config).await?;
///
/// let oracle = cloud.oracle();
/// assert_eq!(oracle.call_count(WireCall::Launch), 1);
/// let truth = oracle.instance(&instance.id).expect("it was launched");
/// assert!(truth.user_data.is_some() && truth.disk.is_some());
/// assert_eq!(oracle.leftovers().instances, [instance.id]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Oracle {
    shared: Arc<Shared>,
}

/// The true state of one instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OracleInstance {
    /// The info that a read without lag returns.
    pub info: InstanceInfo,
    /// The launch token of its launch.
    pub token: Option<LaunchToken>,
    /// The user data of its launch, byte for byte.
    pub user_data: Option<UserData>,
    /// Its root disk. `None` once the instance is terminated.
    pub disk: Option<Disk>,
    /// Whether it uses a machine of the capacity; a stopped instance does not.
    pub holds_machine: bool,
    /// How many times it has booted.
    pub boots: u32,
}

/// A root disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disk {
    /// The name of the disk. A reimage replaces the disk, so the name changes.
    pub name: String,
    /// The size in GB.
    pub size_gb: NonZeroU32,
    /// The instance it is attached to.
    pub instance: InstanceId,
}

/// The resources that exist and cost money.
///
/// Its `Display` form is `nothing left`, or the number of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftovers {
    /// Instances that are not terminated.
    pub instances: Vec<InstanceId>,
    /// The names of all disks.
    pub disks: Vec<String>,
    /// The hardware addresses of all network cards.
    pub network_cards: Vec<MacAddress>,
    /// All addresses in use, private and public.
    pub addresses: Vec<IpAddr>,
}

impl Leftovers {
    /// Whether no resource exists.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
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
            "still existing: {i} instances, {d} disks, {n} network cards, {a} addresses"
        )
    }
}

impl Oracle {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Returns every instance in the order of launch, including those of external actors, and
    /// terminated ones until they are purged.
    pub fn instances(&self) -> Vec<OracleInstance> {
        self.shared.with_world(|world| {
            let all = world.records.values();
            all.map(|record| truth(world, record)).collect()
        })
    }

    /// Returns one instance, or `None` if it never existed or was purged.
    pub fn instance(&self, id: &InstanceId) -> Option<OracleInstance> {
        self.shared
            .with_world(|world| Some(truth(world, world.record(id)?)))
    }

    /// Returns the resources of the whole account.
    pub fn leftovers(&self) -> Leftovers {
        self.shared.with_world(|world| {
            let mut leftovers = leftovers_of(world, &Tags::new());
            let in_use = world.private.in_use().chain(world.public.in_use());
            leftovers.addresses = in_use.map(IpAddr::from).collect();
            leftovers
        })
    }

    /// Returns the resources of the instances that have all of `tags`.
    pub fn leftovers_with_tags(&self, tags: &Tags) -> Leftovers {
        self.shared.with_world(|world| leftovers_of(world, tags))
    }

    /// Returns the snapshots of instances, by name.
    pub fn images(&self) -> Vec<Image> {
        self.shared
            .with_world(|world| world.images.values().cloned().collect())
    }

    /// Returns how many times each call was sent, including refused and lost ones.
    pub fn calls(&self) -> BTreeMap<WireCall, u64> {
        self.shared.calls()
    }

    /// Returns how many times `call` was sent.
    pub fn call_count(&self, call: WireCall) -> u64 {
        self.calls().get(&call).copied().unwrap_or_default()
    }

    /// Returns how many calls were sent in total.
    pub fn total_calls(&self) -> u64 {
        self.calls().values().sum()
    }

    /// Returns how many instance records the cloud has read to handle calls: the measure for the cost
    /// of a call in a large account.
    pub fn records_touched(&self) -> u64 {
        self.shared.with_world(|world| world.records_touched)
    }
}

/// Returns the resources of the instances that have all of `tags`.
fn leftovers_of(world: &World, tags: &Tags) -> Leftovers {
    let mut leftovers = Leftovers::default();
    for truth in world.records.values().map(|record| truth(world, record)) {
        if !truth.info.tags.contains_all(tags) {
            continue;
        }
        if !truth.info.state.is_final() {
            leftovers.instances.push(truth.info.id);
        }
        leftovers.disks.extend(truth.disk.map(|disk| disk.name));
        leftovers.network_cards.extend(truth.info.mac_address);
        let addresses = [truth.info.private_ip, truth.info.public_ip];
        leftovers.addresses.extend(addresses.into_iter().flatten());
    }
    leftovers
}

/// Returns the true state of one record.
fn truth(world: &World, record: &Record) -> OracleInstance {
    let view = record.view(record.current(), world.date_at(record.launched));
    let attached = |disk: &crate::engine::Disk| Disk {
        name: disk.name.clone(),
        size_gb: disk.size_gb,
        instance: record.id.clone(),
    };
    OracleInstance {
        info: convert::info(view, None),
        token: record.token.clone(),
        user_data: record.user_data.clone(),
        disk: record.disk.as_ref().map(attached),
        holds_machine: record.holds_machine,
        boots: record.boots,
    }
}
