//! An instance, and the versions of it that a lagging read may still see.

use std::{collections::BTreeMap, collections::VecDeque, net::Ipv4Addr, sync::Arc, time::Duration};

use super::{
    Seq,
    index::Key,
    launch::{MetadataOptions, ShutdownBehavior, SpotKind},
    token::TokenKey,
};
use crate::ec2::knobs::Market;

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

    /// Whether nothing can be done with it any more.
    pub(crate) const fn is_ending(self) -> bool {
        matches!(self, Self::ShuttingDown | Self::Terminated)
    }
}

/// What of an instance never changes.
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
    /// Launched past the wire, by somebody else.
    pub(crate) foreign: bool,
}

/// An instance.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) seq: Seq,
    pub(crate) fixed: Arc<Fixed>,
    pub(crate) token_key: Option<TokenKey>,
    pub(crate) created: Duration,
    pub(crate) volumes: Vec<Seq>,
    pub(crate) nics: Vec<Seq>,
    /// Whether a machine is taken by it.
    pub(crate) holds_machine: bool,
    /// Why its launch is going to fail.
    pub(crate) doom: Option<Reason>,
    pub(crate) console: Vec<String>,
    /// Counts transitions, so that the end of an overtaken one is ignored.
    pub(crate) transition: u64,
    /// The oldest that may still be seen first, the truth last. Never empty.
    pub(crate) versions: VecDeque<Version>,
}

/// Why an instance is in its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Reason {
    pub(crate) fn new(code: &str, words: &str) -> Self {
        Self {
            code: code.to_owned(),
            message: format!("{code}: {words}"),
        }
    }
}

/// What of an instance changes.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// Since when it is so.
    pub(crate) since: Duration,
    pub(crate) state: State,
    pub(crate) reason: Option<Reason>,
    /// In EC2's words, with the date.
    pub(crate) transition_reason: String,
    /// When it was launched or last started.
    pub(crate) launched: Duration,
    /// Since when it runs.
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
    /// The truth.
    #[expect(
        clippy::expect_used,
        reason = "versions begin with one, and pruning keeps the last"
    )]
    pub(crate) fn current(&self) -> &Version {
        self.versions.back().expect("an instance has a version")
    }

    /// What a read sees that looks at `moment`: nothing before the launch. The oldest version that is
    /// kept stands in for those that were dropped when the lag was shorter.
    pub(crate) fn version_at(&self, moment: Option<Duration>) -> Option<&Version> {
        let moment = moment.filter(|moment| *moment >= self.created)?;
        let seen = |version: &&Version| version.since <= moment;
        let newest = self.versions.iter().rev().find(seen);
        newest.or_else(|| self.versions.front())
    }

    /// Drops the versions that no read can see any more which looks back to `oldest` at most.
    pub(super) fn prune(&mut self, oldest: Duration) {
        let replaced = |next: &Version| next.since <= oldest;
        while self.versions.get(1).is_some_and(replaced) {
            self.versions.pop_front();
        }
    }

    /// How the index must find it: as every version that can be seen.
    pub(super) fn keys(&self) -> Vec<Key> {
        let token = self.fixed.token.clone().map(Key::Token);
        let mut keys: Vec<Key> = std::iter::once(Key::All).chain(token).collect();
        for version in &self.versions {
            keys.push(Key::State(version.state));
            let tag = |(key, value): (&String, &String)| Key::Tag(key.clone(), value.clone());
            keys.extend(version.tags.iter().map(tag));
        }
        keys.sort();
        keys.dedup();
        keys
    }
}
