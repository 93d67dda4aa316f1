//! The true state, read past the API: without lag, filters or pages.

use std::{collections::BTreeMap, net::Ipv4Addr};

use serde::Serialize;

use super::{
    cloud::FaultRule,
    engine::{Engine, record::Instance},
    knobs::Market,
};

/// The true state of the cloud, and the calls so far.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Oracle {
    /// All instances in the order of launch; terminated ones until they are no longer described.
    pub instances: Vec<OracleInstance>,
    /// All volumes.
    pub volumes: Vec<OracleVolume>,
    /// All network interfaces.
    pub network_interfaces: Vec<OracleNetworkInterface>,
    /// All images, those of the catalog first.
    pub images: Vec<OracleImage>,
    /// The snapshots of the images that were created from instances, also of deregistered ones.
    pub snapshots: Vec<OracleSnapshot>,
    /// The number of calls by action.
    pub calls: BTreeMap<String, u64>,
    /// The number of records that calls have read, to prove that a call does not scan the whole
    /// fleet.
    pub records_read: u64,
    /// The fault rules that were never applied.
    pub unused_faults: Vec<FaultRule>,
}

/// The true state of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleInstance {
    /// Its id.
    pub id: String,
    /// EC2's name of its state, for example `running`.
    pub state: String,
    /// The code of its state reason, for example `Client.UserInitiatedShutdown`.
    pub reason: Option<String>,
    /// The client token that it was launched with.
    pub client_token: Option<String>,
    /// Its type.
    pub instance_type: String,
    /// Its image.
    pub image: String,
    /// Its zone.
    pub zone: String,
    /// The subnet of its primary network interface.
    pub subnet: String,
    /// The ids of its security groups.
    pub security_groups: Vec<String>,
    /// The market that it was launched on.
    pub market: Market,
    /// Its private address, until it is terminated.
    pub private_ip: Option<Ipv4Addr>,
    /// Its public address, while it runs.
    pub public_ip: Option<Ipv4Addr>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Its user data.
    pub user_data: Option<Vec<u8>>,
    /// The volumes that are attached to it.
    pub volumes: Vec<String>,
    /// The network interfaces that are attached to it.
    pub network_interfaces: Vec<String>,
    /// Whether it uses a machine.
    pub holds_machine: bool,
    /// How often it has booted, including reboots.
    pub boots: u64,
    /// Whether an external actor launched it.
    pub external: bool,
}

/// The true state of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleVolume {
    /// Its id.
    pub id: String,
    /// The instance that it is attached to.
    pub attached_to: Option<String>,
    /// Whether it is deleted with its instance.
    pub delete_on_termination: bool,
    /// Its size.
    pub gib: u32,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// The true state of a network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleNetworkInterface {
    /// Its id.
    pub id: String,
    /// The instance that it is attached to.
    pub attached_to: Option<String>,
    /// Its address.
    pub private_ip: Ipv4Addr,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// The true state of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleImage {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The instance that it was created from; `None` for images of the catalog.
    pub source: Option<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// The true state of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleSnapshot {
    /// Its id.
    pub id: String,
    /// The image that it was created for, which may be deregistered.
    pub image: String,
    /// The tags that the image was created with.
    pub image_tags: BTreeMap<String, String>,
    /// Its own tags.
    pub tags: BTreeMap<String, String>,
}

impl Oracle {
    pub(crate) fn new(
        engine: &Engine,
        calls: BTreeMap<String, u64>,
        unused_faults: Vec<FaultRule>,
    ) -> Self {
        Self {
            instances: engine
                .instances
                .values()
                .map(|instance| oracle_instance(engine, instance))
                .collect(),
            volumes: engine
                .volumes
                .values()
                .map(|volume| OracleVolume {
                    id: volume.id.clone(),
                    attached_to: volume.attached_to.clone(),
                    delete_on_termination: volume.device.delete_on_termination,
                    gib: volume.device.gib,
                    tags: volume.tags.clone(),
                })
                .collect(),
            network_interfaces: engine
                .nics
                .values()
                .map(|nic| OracleNetworkInterface {
                    id: nic.id.clone(),
                    attached_to: nic.attached_to.clone(),
                    private_ip: nic.private_ip,
                    tags: nic.tags.clone(),
                })
                .collect(),
            images: engine
                .images
                .values()
                .map(|image| OracleImage {
                    id: image.id.clone(),
                    name: image.name.clone(),
                    source: image.source.clone(),
                    tags: image.tags.clone(),
                })
                .collect(),
            snapshots: engine
                .snapshots
                .values()
                .map(|snapshot| OracleSnapshot {
                    id: snapshot.id.clone(),
                    image: snapshot.image.clone(),
                    image_tags: snapshot.image_tags.clone(),
                    tags: snapshot.tags.clone(),
                })
                .collect(),
            calls,
            records_read: engine.core.records_read,
            unused_faults,
        }
    }
}

/// Returns the true state of an instance.
fn oracle_instance(engine: &Engine, instance: &Instance) -> OracleInstance {
    let (fixed, version) = (&instance.fixed, instance.current());
    let attached = !instance.nics.is_empty();
    OracleInstance {
        id: fixed.id.clone(),
        state: version.state.name().to_owned(),
        reason: version.reason.as_ref().map(|reason| reason.code.clone()),
        client_token: fixed.token.clone(),
        instance_type: version.instance_type.clone(),
        image: fixed.image.clone(),
        zone: fixed.zone.clone(),
        subnet: fixed.subnet.clone(),
        security_groups: (*version.groups).clone(),
        market: fixed.market,
        private_ip: attached.then_some(fixed.private_ip),
        public_ip: version.public_ip,
        tags: (*version.tags).clone(),
        user_data: version.user_data.as_ref().map(|data| data.to_vec()),
        volumes: engine
            .volumes_of(&fixed.id)
            .iter()
            .map(|(_, volume)| volume.id.clone())
            .collect(),
        network_interfaces: engine
            .nics_of(&fixed.id)
            .iter()
            .map(|(_, nic)| nic.id.clone())
            .collect(),
        holds_machine: instance.holds_machine,
        boots: instance.boots,
        external: fixed.external,
    }
}
