//! An instance, and the versions that a lagging read may still return.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use super::{
    Seq,
    launch::{MetadataOptions, ShutdownBehavior, SpotKind},
    token::TokenKey,
};
use crate::{
    cloud::{history::History, records::Record},
    ec2::knobs::Market,
};

/// The index keys of an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// All instances.
    All,
    State(State),
    Tag(String, String),
    Token(String),
}

/// Tags of a resource.
pub(crate) type Tags = BTreeMap<String, String>;

/// EC2's states of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Pending,
    Running,
    ShuttingDown,
    Terminated,
    Stopping,
    Stopped,
}

impl State {
    pub(crate) const ALL: [Self; 6] = [
        Self::Pending,
        Self::Running,
        Self::ShuttingDown,
        Self::Terminated,
        Self::Stopping,
        Self::Stopped,
    ];

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

    /// Whether the instance is terminating or terminated.
    pub(crate) const fn is_ending(self) -> bool {
        matches!(self, Self::ShuttingDown | Self::Terminated)
    }
}

/// The properties of an instance that never change.
#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) id: String,
    pub(crate) reservation: String,
    pub(crate) launch_index: u32,
    pub(crate) token: Option<String>,
    pub(crate) image: String,
    pub(crate) architecture: String,
    pub(crate) root_device: String,
    pub(crate) zone: String,
    pub(crate) subnet: String,
    pub(crate) groups: Vec<String>,
    pub(crate) key_name: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) market: Market,
    pub(crate) spot: Option<(String, SpotKind)>,
    pub(crate) metadata: MetadataOptions,
    pub(crate) public_address: bool,
    pub(crate) private_ip: Ipv4Addr,
    pub(crate) monitoring: bool,
    /// Launched by an external actor.
    pub(crate) external: bool,
}

/// An instance.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) seq: Seq,
    pub(crate) fixed: Arc<Fixed>,
    pub(crate) token_key: Option<TokenKey>,
    pub(crate) volumes: Vec<Seq>,
    pub(crate) nics: Vec<Seq>,
    /// Whether it uses a machine.
    pub(crate) holds_machine: bool,
    /// Why its launch will fail.
    pub(crate) planned_failures: Option<Reason>,
    pub(crate) console: Vec<String>,
    /// How often it has booted, including reboots.
    pub(crate) boots: u64,
    /// The number of the current transition; the end of an earlier one is ignored.
    pub(crate) transition: u64,
    pub(crate) versions: History<Version>,
}

/// Why an instance is in its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Reason {
    pub(crate) fn new(code: &str, text: &str) -> Self {
        Self {
            code: code.to_owned(),
            message: format!("{code}: {text}"),
        }
    }
}

/// The properties of an instance that change.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) state: State,
    pub(crate) reason: Option<Reason>,
    /// EC2's text, with the date.
    pub(crate) transition_reason: String,
    /// When it was launched or last started.
    pub(crate) launched: Duration,
    /// The time since when it runs.
    pub(crate) running_since: Option<Duration>,
    pub(crate) public_ip: Option<Ipv4Addr>,
    pub(crate) instance_type: String,
    pub(crate) tags: Arc<Tags>,
    pub(crate) user_data: Option<Arc<[u8]>>,
    pub(crate) protected: bool,
    pub(crate) shutdown: ShutdownBehavior,
    pub(crate) ebs_optimized: bool,
}

impl Instance {
    /// Returns the current version.
    pub(crate) fn current(&self) -> &Version {
        self.versions.current()
    }

    /// Returns the version at a time.
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
