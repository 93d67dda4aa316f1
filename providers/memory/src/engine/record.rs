//! An instance, and the versions of it that a lagging read may still see.

use std::{collections::VecDeque, net::Ipv4Addr, num::NonZeroU32, sync::Arc, time::Duration};

use fleetwright::{
    ImageId, InstanceId, InstanceType, LaunchToken, MacAddress, Market, NetworkId, PublicAddress,
    SecurityGroupId, Tags, UserData, Zone,
};

use super::{
    Seq,
    index::{Life, Standing},
};
use crate::state::NativeState;

/// An instance with what is attached to it.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) seq: Seq,
    pub(crate) id: InstanceId,
    pub(crate) token: Option<LaunchToken>,
    pub(crate) zone: Zone,
    pub(crate) network: NetworkId,
    pub(crate) security_groups: Vec<SecurityGroupId>,
    pub(crate) public_address: PublicAddress,
    pub(crate) market: Market,
    pub(crate) user_data: Option<UserData>,
    pub(crate) launched: Duration,
    /// The disk, until it is destroyed with the instance.
    pub(crate) disk: Option<Disk>,
    /// Whether a machine is taken by it.
    pub(crate) holds_machine: bool,
    pub(crate) boots: u32,
    pub(crate) console: Vec<String>,
    /// Why its launch is going to fail.
    pub(crate) doom: Option<String>,
    /// Counts transitions, so that the end of an overtaken one is ignored.
    pub(crate) transition: u64,
    /// The oldest that may still be seen first, the truth last. Never empty.
    pub(crate) versions: VecDeque<Version>,
}

/// A root disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    /// The disk's own name: another one after a reimage.
    pub(crate) name: String,
    pub(crate) size_gb: NonZeroU32,
}

/// What of an instance changes.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// Since when it is so.
    pub(crate) since: Duration,
    pub(crate) state: NativeState,
    pub(crate) reason: Option<Arc<str>>,
    /// The network card, until it is destroyed with the instance.
    pub(crate) mac: Option<MacAddress>,
    pub(crate) private_ip: Option<Ipv4Addr>,
    pub(crate) public_ip: Option<Ipv4Addr>,
    pub(crate) tags: Arc<Tags>,
    pub(crate) instance_type: InstanceType,
    pub(crate) image: ImageId,
}

/// What a read answers about an instance: the record as of some version.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) id: InstanceId,
    pub(crate) version: Version,
    pub(crate) zone: Zone,
    pub(crate) network: NetworkId,
    pub(crate) security_groups: Vec<SecurityGroupId>,
    pub(crate) public_address: PublicAddress,
    pub(crate) market: Market,
    pub(crate) launched: chrono::DateTime<chrono::Utc>,
}

impl Record {
    /// The truth.
    #[expect(
        clippy::expect_used,
        reason = "a record starts with one version, and pruning keeps the last"
    )]
    pub(crate) fn current(&self) -> &Version {
        self.versions.back().expect("a record has a version")
    }

    /// What a read sees that looks at `moment`: nothing before the launch.
    pub(crate) fn version_at(&self, moment: Option<Duration>) -> Option<&Version> {
        let moment = moment?;
        self.versions
            .iter()
            .rev()
            .find(|version| version.since <= moment)
    }

    /// Drops the versions that no read can see any more which looks back to `oldest` at most.
    pub(super) fn prune(&mut self, oldest: Duration) {
        while self
            .versions
            .get(1)
            .is_some_and(|next| next.since <= oldest)
        {
            self.versions.pop_front();
        }
    }

    /// How the index must find it: as every version that can be seen.
    pub(super) fn standings(&self) -> Vec<Standing> {
        let standing = |version: &Version| {
            let life = match version.state {
                NativeState::Deleted => Life::Over,
                NativeState::Provisioning
                | NativeState::Active
                | NativeState::Reimaging
                | NativeState::Halting
                | NativeState::Halted
                | NativeState::Deleting => Life::Going,
            };
            (life, Arc::clone(&version.tags))
        };
        self.versions.iter().map(standing).collect()
    }

    /// The record as of `version`.
    pub(crate) fn view(&self, version: &Version, launched: chrono::DateTime<chrono::Utc>) -> View {
        View {
            id: self.id.clone(),
            version: version.clone(),
            zone: self.zone.clone(),
            network: self.network.clone(),
            security_groups: self.security_groups.clone(),
            public_address: self.public_address,
            market: self.market,
            launched,
        }
    }
}
