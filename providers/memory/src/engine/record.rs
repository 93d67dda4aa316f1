//! The record of an instance, with the old versions that a stale read may return.

use std::{collections::VecDeque, net::Ipv4Addr, num::NonZeroU32, sync::Arc, time::Duration};

use fleetwright::{
    Fingerprint, ImageId, InstanceId, InstanceType, LaunchToken, MacAddress, Market, NetworkId,
    PublicAddress, SecurityGroupId, Tags, UserData, Zone,
};

use super::{
    Seq,
    index::{Existence, IndexEntry},
};
use crate::state::NativeState;

/// An instance with its disk, network card and addresses.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) seq: Seq,
    pub(crate) id: InstanceId,
    pub(crate) token: Option<LaunchToken>,
    /// The fingerprint of the config of a launch with a token.
    pub(crate) config: Option<Fingerprint>,
    pub(crate) zone: Zone,
    pub(crate) network: NetworkId,
    pub(crate) security_groups: Vec<SecurityGroupId>,
    pub(crate) public_address: PublicAddress,
    pub(crate) market: Market,
    pub(crate) user_data: Option<UserData>,
    /// The time of the launch on the clock of the cloud.
    pub(crate) launched: Duration,
    /// The root disk. `None` once the instance is terminated.
    pub(crate) disk: Option<Disk>,
    /// Whether it uses a machine of the capacity.
    pub(crate) holds_machine: bool,
    pub(crate) boots: u32,
    /// The lines of the console output.
    pub(crate) console: Vec<String>,
    /// The reason with which its boot fails: a fault, or missing capacity that is found late.
    pub(crate) boot_failure: Option<String>,
    /// The number of the current transition. Events of earlier ones are ignored.
    pub(crate) transition: u64,
    /// The current version.
    pub(crate) latest: Version,
    /// The earlier versions that a read may return, oldest first.
    pub(crate) earlier: VecDeque<Version>,
}

/// A root disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    /// The name of the disk. A reimage replaces the disk.
    pub(crate) name: String,
    pub(crate) size_gb: NonZeroU32,
}

/// The properties of an instance that can change.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// The time from which this version is current.
    pub(crate) since: Duration,
    pub(crate) state: NativeState,
    /// The state reason that callers see.
    pub(crate) reason: Option<Arc<str>>,
    /// Whether its launch failed after it was accepted.
    pub(crate) launch_failed: bool,
    /// The network card. `None` once the instance is terminated.
    pub(crate) mac: Option<MacAddress>,
    pub(crate) private_ip: Option<Ipv4Addr>,
    pub(crate) public_ip: Option<Ipv4Addr>,
    pub(crate) tags: Arc<Tags>,
    pub(crate) instance_type: InstanceType,
    pub(crate) image: ImageId,
}

/// The result of a read of an instance: the record as of one version.
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
    pub(crate) config: Option<Fingerprint>,
}

impl Record {
    /// Returns the current version.
    pub(crate) const fn current(&self) -> &Version {
        &self.latest
    }

    /// Keeps a copy of the current version before it is changed.
    pub(super) fn keep_current(&mut self) {
        self.earlier.push_back(self.latest.clone());
    }

    /// Returns the version as of `read_time`, or `None` before the launch.
    pub(crate) fn version_at(&self, read_time: Option<Duration>) -> Option<&Version> {
        let read_time = read_time?;
        self.versions()
            .rev()
            .find(|version| version.since <= read_time)
    }

    /// Drops the versions that ended by `oldest`, the earliest time that a read can see.
    pub(super) fn prune(&mut self, oldest: Duration) {
        while self
            .versions()
            .nth(1)
            .is_some_and(|next| next.since <= oldest)
        {
            self.earlier.pop_front();
        }
    }

    /// Returns the versions that a read may return, oldest first.
    pub(super) fn versions(&self) -> impl DoubleEndedIterator<Item = &Version> {
        self.earlier.iter().chain(std::iter::once(&self.latest))
    }

    /// Returns the index entries of every version that a read may return.
    pub(super) fn index_entries(&self) -> Vec<IndexEntry> {
        let entry = |version: &Version| {
            let existence = match version.state {
                NativeState::Deleted => Existence::Terminated,
                NativeState::Provisioning
                | NativeState::Active
                | NativeState::Reimaging
                | NativeState::Halting
                | NativeState::Halted
                | NativeState::Deleting => Existence::Existing,
            };
            (existence, Arc::clone(&version.tags))
        };
        self.versions().map(entry).collect()
    }

    /// Returns the view of the record as of `version`.
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
            config: self.config,
        }
    }
}
