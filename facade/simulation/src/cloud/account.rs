//! The accounts that the façade's credentials may belong to.

use fleetwright::InstanceProvisioner;
use fleetwright_memory::{MemoryCloud, MemoryProvisioner};

use crate::environment::Credentials;

/// A handle on each account, of one part of one process.
#[derive(Debug)]
pub struct Accounts {
    /// The account of the region.
    pub right: MemoryProvisioner,
    empty: MemoryProvisioner,
    other: MemoryProvisioner,
}

impl Accounts {
    /// Opens a handle on each account.
    pub fn open(right: &MemoryCloud, empty: &MemoryCloud, other: &MemoryCloud) -> Self {
        Self {
            right: right.provisioner(),
            empty: empty.provisioner(),
            other: other.provisioner(),
        }
    }

    /// Returns the account that credentials belong to, if the cloud accepts them.
    pub fn of(&self, credentials: Credentials) -> Option<&dyn InstanceProvisioner> {
        match credentials {
            Credentials::Right => Some(&self.right),
            Credentials::Refused => None,
            Credentials::EmptyAccount => Some(&self.empty),
            Credentials::OtherAccount => Some(&self.other),
        }
    }
}
