//! The record of the account of a region.

use chrono::{DateTime, Utc};
use fleetwright::{AccountId, InstanceId, LaunchToken};
use fleetwright_store::{Document, Invalid, Key};
use serde::{Deserialize, Serialize};

use crate::{ids::RegionId, server::ServerId};

/// How many leaked launches a record keeps. Each one is logged as well.
pub const LEAKED_KEPT: usize = 200;

/// The account that the machines of a region are in. There is one record for each region, created with its first launch.
///
/// An operator reads it by the region's key:
///
/// ```
/// use fleetwright_region::{account::RegionAccount, ids::RegionId};
/// use fleetwright_store::Table;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = fleetwright_facade_testkit::memory_store();
/// let accounts = Table::<RegionAccount>::new(store)?;
/// let found = accounts.get(&RegionAccount::key(&RegionId::new("north")?)?).await?;
/// assert!(found.is_none(), "nothing was launched yet");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RegionAccount {
    /// The region.
    pub region: RegionId,
    /// The account.
    pub account: AccountId,
    /// When it was recorded or accepted.
    pub recorded_at: DateTime<Utc>,
    /// The account that the provider reports instead. While it is set, the region makes no call to the cloud.
    #[serde(default)]
    pub other: Option<OtherAccount>,
    /// The last [`MAX_NOT_FOUND`] machines that the cloud did not find when they were to be terminated, oldest first. The monitor terminates
    /// such a machine if it appears.
    #[serde(default)]
    pub not_found: Vec<NotFoundMachine>,
    /// Launches that reached another account, or may have, oldest first; at most [`LEAKED_KEPT`]. Only an operator can terminate their
    /// machines; see [`RegionAccounts::resolve_leak`](super::RegionAccounts::resolve_leak).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaked: Vec<LeakedLaunch>,
}

/// How many machines [`RegionAccount::not_found`] has at most.
pub const MAX_NOT_FOUND: usize = 100;

/// A machine that the cloud did not find when it was to be terminated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotFoundMachine {
    /// The machine.
    pub machine: InstanceId,
    /// The server that it was launched for.
    pub server: ServerId,
    /// When it was not found.
    pub at: DateTime<Utc>,
}

impl NotFoundMachine {
    /// Creates the entry of a machine.
    pub(crate) const fn new(machine: InstanceId, server: ServerId, at: DateTime<Utc>) -> Self {
        Self {
            machine,
            server,
            at,
        }
    }
}

/// An account that is not the one of the region's machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherAccount {
    /// The account.
    pub account: AccountId,
    /// Since when the monitor finds it.
    pub since: DateTime<Utc>,
}

/// A launch that the region's account does not have, although its machine may exist:
///
/// - it was sent while the account changed, or by a process that ended before it compared the accounts; or
/// - its machine was not found when it was to be terminated, and the region's account has never shown it.
///
/// Search the other account only: the server's next machine can have the same token, in the region's account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeakedLaunch {
    /// The account that the provider reported after the launch. `None` if none was reported: then it is one whose credentials were
    /// configured at that time, if there was any.
    pub account: Option<AccountId>,
    /// The machine, if the launch returned one. Without it, search the account for the token: there may be none.
    pub machine: Option<InstanceId>,
    /// The launch token.
    pub token: LaunchToken,
    /// The server that it was launched for. It has got, or gets, another machine.
    pub server: ServerId,
    /// When the leak was found.
    pub at: DateTime<Utc>,
}

impl LeakedLaunch {
    /// Whether nothing says that a machine exists, except that the result of the launch is not known.
    pub fn is_suspected(&self) -> bool {
        self.account.is_none() && self.machine.is_none()
    }

    /// Logs it for the operator.
    pub(super) fn log(&self, region: &RegionId) {
        let (account, machine) = (&self.account, &self.machine);
        if self.is_suspected() {
            tracing::warn!(
                region = %region, server = %self.server, token = %self.token,
                "a launch may have reached another account: its process ended before it compared the accounts"
            );
        } else {
            tracing::error!(
                region = %region, server = %self.server, token = %self.token, ?account, ?machine,
                "a launch reached another account: an operator has to terminate its machine there"
            );
        }
    }
}

impl Document for RegionAccount {
    const KIND: &'static str = "region-account";
}

impl RegionAccount {
    /// Returns the key of a region's record.
    pub fn key(region: &RegionId) -> Result<Key, Invalid> {
        Key::new(region.as_str())
    }

    /// Creates the record of a region.
    pub(super) fn new(region: RegionId, account: AccountId, now: DateTime<Utc>) -> Self {
        Self {
            region,
            account,
            recorded_at: now,
            other: None,
            not_found: Vec::new(),
            leaked: Vec::new(),
        }
    }

    /// Adds a machine that was not found, unless it is known. The oldest ones beyond [`MAX_NOT_FOUND`] are dropped.
    pub(super) fn add_not_found(&mut self, machine: NotFoundMachine) {
        let known = |one: &NotFoundMachine| one.machine == machine.machine;
        if self.not_found.iter().any(known) {
            return;
        }
        self.not_found.push(machine);
        let surplus = self.not_found.len().saturating_sub(MAX_NOT_FOUND);
        self.not_found.drain(..surplus);
    }

    /// Adds a leak, unless what it says is known. It replaces an entry of its launch that says nothing. Beyond [`LEAKED_KEPT`] entries, the
    /// oldest that says nothing is dropped, or else the oldest.
    pub(super) fn add_leak(&mut self, leak: LeakedLaunch) {
        let same = |known: &LeakedLaunch| {
            let found = (&leak.account, &leak.machine);
            known.token == leak.token
                && (leak.is_suspected() || found == (&known.account, &known.machine))
        };
        if self.leaked.iter().any(same) {
            return;
        }
        self.leaked
            .retain(|known| known.token != leak.token || !known.is_suspected());
        self.leaked.push(leak);
        while self.leaked.len() > LEAKED_KEPT {
            let suspected = self.leaked.iter().position(LeakedLaunch::is_suspected);
            self.leaked.remove(suspected.unwrap_or(0));
        }
    }
}
