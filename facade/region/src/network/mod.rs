//! Networks, the security groups on them, and SSH certificate authorities: records of tenants that servers refer to.
//!
//! Every call takes the caller's principal. A record that is not visible is reported as missing. A record in use cannot be
//! deleted: the check is part of the transaction that deletes it, under the indexes of [`references`](crate::references).
//! Nothing here calls a cloud: native networks and groups are named in the region's [mapping](crate::mapping).

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
