//! The true state of the emulated Azure, read past the API: without lag, pages or faults.
//!
//! Owns plain values for assertions. The control endpoint returns the same as JSON.

use std::{collections::BTreeMap, net::Ipv4Addr};

use serde::Serialize;

use super::{
    cloud::FaultRule,
    engine::{Engine, disk::Disk, nic::Nic, public_ip::PublicIp, vm::Vm},
    knobs::Market,
    wire::{body::DeleteOption, id::Id},
};

/// The true state of the cloud, and the calls so far.
///
/// ```
/// use fleetwright_emulators::azure::{AzureEmulator, Knobs};
///
/// let emulator = AzureEmulator::start(Knobs::default())?;
/// let oracle = emulator.oracle();
/// assert!(oracle.vms.is_empty() && oracle.disks.is_empty());
/// assert_eq!(oracle.operations_in_progress, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Oracle {
    /// All virtual machines, in the order of creation.
    pub vms: Vec<OracleVm>,
    /// All network interfaces.
    pub nics: Vec<OracleNic>,
    /// All public addresses.
    pub public_ips: Vec<OraclePublicIp>,
    /// All disks.
    pub disks: Vec<OracleDisk>,
    /// All images that were created here.
    pub images: Vec<OracleImage>,
    /// The number of operations in progress.
    pub operations_in_progress: usize,
    /// The number of calls by operation.
    pub calls: BTreeMap<String, u64>,
    /// The number of records that calls have read, to prove that a call does not scan the whole
    /// fleet.
    pub records_read: u64,
    /// How often a list has omitted a virtual machine because of [`Omissions`](super::Omissions). Each
    /// may cost a client one more call.
    pub omitted: u64,
    /// The fault rules that were never applied.
    pub unused_faults: Vec<FaultRule>,
}

/// The true state of a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleVm {
    /// Its resource id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its GUID, new for each creation.
    pub vm_id: String,
    /// Its provisioning state, such as `Succeeded`.
    pub provisioning_state: String,
    /// Its power state, such as `running`; `None` before its first boot.
    pub power_state: Option<String>,
    /// The error code of its latest operation, if that failed.
    pub failure: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_millis: i64,
    /// Its image: the id, or `publisher:offer:sku:version`.
    pub image: String,
    /// Its size.
    pub size: String,
    /// Its location.
    pub location: String,
    /// Its availability zone.
    pub zone: Option<String>,
    /// The market that it was launched on.
    pub market: Market,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Its decoded custom data.
    pub custom_data: Option<Vec<u8>>,
    /// The private address of its first interface.
    pub private_ip: Option<Ipv4Addr>,
    /// The public address of its first interface, while it has one.
    pub public_ip: Option<Ipv4Addr>,
    /// The resource ids of its interfaces.
    pub nics: Vec<String>,
    /// The resource ids of its disks, the OS disk first.
    pub disks: Vec<String>,
    /// Whether it has a machine, which capacity counts.
    pub allocated: bool,
    /// How often it has booted.
    pub boots: u64,
    /// Whether it is generalized.
    pub generalized: bool,
    /// Whether an external actor created it.
    pub external: bool,
}

/// The true state of a network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleNic {
    /// Its resource id.
    pub id: String,
    /// The virtual machine that it is attached to.
    pub attached_to: Option<String>,
    /// The virtual machine that it is reserved for, until the reservation expires.
    pub reserved_for: Option<String>,
    /// The resource ids of the subnets of its addresses.
    pub subnets: Vec<String>,
    /// The resource id of its network security group.
    pub security_group: Option<String>,
    /// Its private addresses.
    pub private_ips: Vec<Ipv4Addr>,
    /// The resource ids of its public addresses.
    pub public_ips: Vec<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// The true state of a public address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OraclePublicIp {
    /// Its resource id.
    pub id: String,
    /// The address, if one is allocated.
    pub address: Option<Ipv4Addr>,
    /// The interface configuration that it is attached to.
    pub attached_to: Option<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// The true state of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleDisk {
    /// Its resource id.
    pub id: String,
    /// The virtual machine that it is attached to.
    pub attached_to: Option<String>,
    /// Whether it is deleted with its virtual machine.
    pub delete_with_vm: bool,
    /// Its size in GiB.
    pub gib: u32,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// The true state of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleImage {
    /// Its resource id.
    pub id: String,
    /// The virtual machine that it was created from; `None` for an image of a disk.
    pub source: Option<String>,
    /// Its provisioning state.
    pub provisioning_state: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

impl Oracle {
    /// Reads the whole state.
    pub(crate) fn new(
        engine: &Engine,
        calls: BTreeMap<String, u64>,
        unused_faults: Vec<FaultRule>,
    ) -> Self {
        let images = engine.images.iter().map(|(_, image)| OracleImage {
            id: image.id.path(),
            source: image.source.as_ref().map(Id::path),
            provisioning_state: image.provisioning.name().to_owned(),
            tags: image.tags.clone(),
        });
        let in_progress = engine.tasks.values().filter(|task| task.ended.is_none());
        Self {
            vms: engine
                .vms
                .iter()
                .map(|(_, vm)| oracle_vm(engine, vm))
                .collect(),
            nics: engine
                .nics
                .iter()
                .map(|(_, nic)| oracle_nic(engine, nic))
                .collect(),
            public_ips: engine.ips.iter().map(|(_, ip)| oracle_ip(ip)).collect(),
            disks: engine
                .disks
                .iter()
                .map(|(_, disk)| oracle_disk(engine, disk))
                .collect(),
            images: images.collect(),
            operations_in_progress: in_progress.count(),
            calls,
            records_read: engine.core.records_read,
            omitted: engine.omitted,
            unused_faults,
        }
    }
}

/// Returns the true state of a virtual machine. The addresses are those of its first interface.
fn oracle_vm(engine: &Engine, vm: &Vm) -> OracleVm {
    let nic = vm.nics.first().and_then(|nic| engine.nics.find(&nic.id));
    let address = nic.and_then(|(_, nic)| nic.addresses.first());
    let public = address.and_then(|address| address.public.as_ref());
    let public = public.and_then(|(id, _)| engine.ips.find(id)?.1.address);
    OracleVm {
        id: vm.id.path(),
        name: vm.id.name.clone(),
        vm_id: vm.vm_id.clone(),
        provisioning_state: vm.provisioning.name().to_owned(),
        power_state: vm.power.map(|power| power.name().to_owned()),
        failure: vm.failure.as_ref().map(|failure| failure.code.clone()),
        created_millis: engine.date(vm.created).timestamp_millis(),
        image: image_name(vm),
        size: vm.size.clone(),
        location: vm.location.clone(),
        zone: vm.zone.clone(),
        market: vm.market,
        tags: (*vm.tags).clone(),
        custom_data: vm.custom_data.as_ref().map(|data| data.to_vec()),
        private_ip: address.map(|address| address.private),
        public_ip: public,
        nics: vm.nics.iter().map(|nic| nic.id.path()).collect(),
        disks: vm.disks.iter().map(|disk| disk.id.path()).collect(),
        allocated: vm.allocated,
        boots: vm.boots,
        generalized: vm.generalized,
        external: vm.external,
    }
}

/// Returns the image that the creation requested.
fn image_name(vm: &Vm) -> String {
    let storage = vm.body.properties.storage_profile.as_ref();
    let image = storage.and_then(|storage| storage.image_reference.clone());
    let image = image.unwrap_or_default();
    let named = [image.publisher, image.offer, image.sku, image.version];
    let named: Vec<_> = named.into_iter().flatten().collect();
    image.id.unwrap_or_else(|| named.join(":"))
}

/// Returns the true state of an interface. An expired reservation is omitted.
fn oracle_nic(engine: &Engine, nic: &Nic) -> OracleNic {
    let reserved = nic
        .reserved
        .as_ref()
        .filter(|(_, until)| engine.now() < *until);
    OracleNic {
        id: nic.id.path(),
        attached_to: nic.attached.as_ref().map(Id::path),
        reserved_for: reserved.map(|(vm, _)| vm.path()),
        subnets: nic
            .addresses
            .iter()
            .map(|address| address.subnet.clone())
            .collect(),
        security_group: nic.group.clone(),
        private_ips: nic
            .addresses
            .iter()
            .map(|address| address.private)
            .collect(),
        public_ips: nic.publics().map(|(id, _)| id.path()).collect(),
        tags: nic.tags.clone(),
    }
}

/// Returns the true state of a public address.
fn oracle_ip(ip: &PublicIp) -> OraclePublicIp {
    OraclePublicIp {
        id: ip.id.path(),
        address: ip.address,
        attached_to: ip.attached.clone(),
        tags: ip.tags.clone(),
    }
}

/// Returns the true state of a disk.
fn oracle_disk(engine: &Engine, disk: &Disk) -> OracleDisk {
    let vm = disk.attached.as_ref().and_then(|vm| engine.vms.find(vm));
    let own = vm.and_then(|(_, vm)| vm.disks.iter().find(|it| it.id.key() == disk.id.key()));
    OracleDisk {
        id: disk.id.path(),
        attached_to: disk.attached.as_ref().map(Id::path),
        delete_with_vm: own.is_some_and(|own| own.delete == DeleteOption::Delete),
        gib: disk.gib,
        tags: disk.tags.clone(),
    }
}
