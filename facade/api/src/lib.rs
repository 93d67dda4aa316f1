#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! | task | types |
//! | --- | --- |
//! | create, read and change instances | [`InstanceCreate`], [`Instance`], [`InstanceUpdate`], [`Plan`] |
//! | list and watch them | [`InstancePage`], [`InstanceChange`], [`InstanceGone`] |
//! | networks, groups, authorities | [`NetworkCreate`], [`SecurityGroupCreate`], [`SshAuthorityCreate`] |
//! | tenants, roles, quotas, audit log | [`Organization`], [`RoleBinding`], [`Quota`], [`AuditEntry`] |
//! | errors | [`Problem`] |

mod catalog;
mod instance;
mod metadata;
mod network;
mod number;
mod operator;
mod plan;
mod problem;
#[cfg(feature = "openapi")]
mod schema;
mod secret;
mod tenancy;
mod watch;

pub use catalog::*;
pub use instance::*;
pub use metadata::*;
pub use network::*;
pub use operator::*;
pub use plan::*;
pub use problem::*;
pub use secret::UserDataText;
pub use tenancy::*;
pub use watch::*;
