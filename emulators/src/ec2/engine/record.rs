//! An instance, and the versions that a lagging read may still return.
//!
//! Properties that never change are in `Fixed`; those that change are in `Version`, of which an
//! instance keeps all that a read may return.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use super::{
    Seq,
    launch::{Credits, MetadataOptions, ShutdownBehavior, SpotKind},
    token::TokenKey,
};
use crate::{
    cloud::{history::History, records::Record},
    ec2::knobs::Market,
};

/// An index key of an instance. A filter that names one reads only the instances under it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// All instances.
    All,
    /// The instances that have or had this state in a version that may still be read.
    State(State),
    /// The instances with this tag key and value.
    Tag(String, String),
    /// The instances that were launched with this client token.
    Token(String),
}

/// The tags of a resource, by key.
pub(crate) type Tags = BTreeMap<String, String>;

/// EC2's states of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// It is being launched or started. It has a machine.
    Pending,
    /// The guest runs.
    Running,
    /// It is being terminated.
    ShuttingDown,
    /// It is terminated, and described for `timing.terminated_visible`.
    Terminated,
    /// It is being stopped. It still has its machine.
    Stopping,
    /// It has no machine and keeps its volumes.
    Stopped,
}

impl State {
    /// All states, in the order of their codes.
    pub(crate) const ALL: [Self; 6] = [
        Self::Pending,
        Self::Running,
        Self::ShuttingDown,
        Self::Terminated,
        Self::Stopping,
        Self::Stopped,
    ];

    /// Returns EC2's code of the state.
    pub(crate) const fn code(self) -> u16 {
        match self {
            Self::Pending => 0,
            Self::Running => 16,
            Self::ShuttingDown => 32,
            Self::Terminated => 48,
            Self::Stopping => 64,
            Self::Stopped => 80,
        }
    }

    /// Returns EC2's name of the state.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }

    /// Returns whether the instance is terminating or terminated.
    pub(crate) const fn is_ending(self) -> bool {
        matches!(self, Self::ShuttingDown | Self::Terminated)
    }
}

/// The properties of an instance that never change.
#[derive(Debug)]
pub(crate) struct Fixed {
    /// The id, which begins with `i-`.
    pub(crate) id: String,
    /// The reservation, which the instances of one launch share.
    pub(crate) reservation: String,
    /// The number of the instance in its launch, from 0.
    pub(crate) launch_index: u32,
    /// The client token of its launch.
    pub(crate) token: Option<String>,
    /// The image id.
    pub(crate) image: String,
    /// `x86_64` or `arm64`.
    pub(crate) architecture: String,
    /// The device name of its root volume.
    pub(crate) root_device: String,
    /// The zone.
    pub(crate) zone: String,
    /// The subnet.
    pub(crate) subnet: String,
    /// The VPC of the subnet.
    pub(crate) vpc: String,
    /// The key pair.
    pub(crate) key_name: Option<String>,
    /// The instance profile.
    pub(crate) profile: Option<String>,
    /// On demand or spot.
    pub(crate) market: Market,
    /// The spot request and its kind; `None` on demand.
    pub(crate) spot: Option<(String, SpotKind)>,
    /// The cores, and the threads of each; `None` means those of its type.
    pub(crate) cpu: Option<(u32, u32)>,
    /// Whether it gets a public address whenever it runs.
    pub(crate) public_address: bool,
    /// The private address, which it keeps until it is terminated.
    pub(crate) private_ip: Ipv4Addr,
    /// Whether an external actor launched it.
    pub(crate) external: bool,
}

/// An instance.
#[derive(Debug)]
pub(crate) struct Instance {
    /// The sequence number, which orders lists.
    pub(crate) seq: Seq,
    /// The properties that never change.
    pub(crate) fixed: Arc<Fixed>,
    /// The client token with its zone, to count its live instances.
    pub(crate) token_key: Option<TokenKey>,
    /// The attached volumes, the root volume first.
    pub(crate) volumes: Vec<Seq>,
    /// The attached network interfaces; one until it is terminated.
    pub(crate) nics: Vec<Seq>,
    /// Whether it uses a machine of the knob `capacity`.
    pub(crate) holds_machine: bool,
    /// The state reason with which its launch will fail; `None` if it succeeds.
    pub(crate) planned_failure: Option<Reason>,
    /// The lines of its console output.
    pub(crate) console: Vec<String>,
    /// How often it has booted, including reboots.
    pub(crate) boots: u64,
    /// The number of the current transition; the end of an earlier one is ignored.
    pub(crate) transition: u64,
    /// The versions that a read may still return.
    pub(crate) versions: History<Version>,
}

/// Why an instance is in its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    /// The code, for example `Client.UserInitiatedShutdown`.
    pub(crate) code: String,
    /// The code and a text.
    pub(crate) message: String,
}

impl Reason {
    /// Creates a reason whose message begins with the code, as EC2's do.
    pub(crate) fn new(code: &str, text: &str) -> Self {
        Self {
            code: code.to_owned(),
            message: format!("{code}: {text}"),
        }
    }
}

/// The properties of an instance that change.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "EC2 has each of them as a bool attribute"
)]
pub(crate) struct Version {
    /// The state.
    pub(crate) state: State,
    /// Why it is in this state; `None` while it is pending or running.
    pub(crate) reason: Option<Reason>,
    /// EC2's text of the last transition, with the date; empty after a launch.
    pub(crate) transition_reason: String,
    /// When it was launched or last started.
    pub(crate) launched: Duration,
    /// When it became `running`; `None` in other states.
    pub(crate) running_since: Option<Duration>,
    /// The public address; only while it runs.
    pub(crate) public_ip: Option<Ipv4Addr>,
    /// The instance type, which can change while it is stopped.
    pub(crate) instance_type: String,
    /// The tags.
    pub(crate) tags: Arc<Tags>,
    /// The user data, decoded.
    pub(crate) user_data: Option<Arc<[u8]>>,
    /// Whether TerminateInstances is refused.
    pub(crate) protected: bool,
    /// What happens when the guest shuts down.
    pub(crate) shutdown: ShutdownBehavior,
    /// Whether it is EBS optimized; only stored.
    pub(crate) ebs_optimized: bool,
    /// The security groups of its network interface.
    pub(crate) groups: Arc<Vec<String>>,
    /// Whether StopInstances is refused.
    pub(crate) stop_protected: bool,
    /// How it spends CPU credits; `None` for a type without credits.
    pub(crate) credits: Option<Credits>,
    /// Whether it has detailed monitoring; only stored.
    pub(crate) monitoring: bool,
    /// The options of its metadata service.
    pub(crate) metadata: MetadataOptions,
    /// Whether it receives only packets for its own addresses; only stored.
    pub(crate) source_dest_check: bool,
}

impl Instance {
    /// Returns the current version.
    pub(crate) fn current(&self) -> &Version {
        self.versions.current()
    }

    /// Returns the version at a time; `None` before its launch.
    pub(crate) fn version_at(&self, moment: Option<Duration>) -> Option<&Version> {
        self.versions.at(moment)
    }
}

impl Record for Instance {
    type Version = Version;
    type Key = Key;

    fn versions(&mut self) -> &mut History<Version> {
        &mut self.versions
    }

    /// Returns the index keys of all its versions, so that a lagging read finds it too.
    fn keys(&self) -> Vec<Key> {
        let token = self.fixed.token.clone().map(Key::Token);
        let mut keys: Vec<Key> = std::iter::once(Key::All).chain(token).collect();
        for version in self.versions.iter() {
            keys.push(Key::State(version.state));
            let tag = |(key, value): (&String, &String)| Key::Tag(key.clone(), value.clone());
            keys.extend(version.tags.iter().map(tag));
        }
        keys.sort();
        keys.dedup();
        keys
    }
}
