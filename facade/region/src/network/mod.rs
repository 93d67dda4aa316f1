//! What tenants make for their servers to stand in: networks, security groups on them, SSH certificate authorities.
//!
//! Every call takes the caller's principal. What it may not see looks exactly like what does not exist. What is used is
//! not deleted: the check is in the transaction that deletes, under the indexes that [`uses`](crate::uses) names.

mod authority;
mod error;
mod group;
mod key;
mod networks;
mod prefix;
mod record;
mod rule;
mod tenant_records;

pub use authority::{NewSshAuthority, SshAuthorities, SshAuthority};
pub use error::RecordError;
pub use group::{NewSecurityGroup, SecurityGroup, SecurityGroups};
pub use key::{AuthorityKey, InvalidAuthorityKey};
pub use networks::{Deletion, IfUsed, Networks};
pub use prefix::{InvalidPrefix, Prefix};
pub use record::{InvalidNetwork, Network, NetworkState, NewNetwork};
pub use rule::{Direction, InvalidRule, MAX_RULES, Ports, Protocol, Rule, Rules};
pub use tenant_records::{Filter, RecordList};

#[cfg(test)]
mod tests;
