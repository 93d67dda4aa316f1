#![doc = include_str!("../README.md")]
//!
//! ## Where to find things
//!
//! | task | start with |
//! | --- | --- |
//! | use a provisioner | [`prelude`], [`InstanceProvisioner`], [`InstanceProvisionerExt`] |
//! | describe an instance to launch | [`InstanceConfig`], [`Placement`], [`Tags`], [`UserData`] |
//! | make launches crash-safe | [`LaunchToken`], [`LaunchRecord`], [`LaunchAttempt`] |
//! | select instances | [`InstanceFilter`] |
//! | react to errors | [`ProvisionError`], [`ErrorKind`], [`Effect`], [`RetryAdvice`], [`Scope`] |
//! | wait for a state | [`wait`], [`CloudInstanceState`] |
//! | add retries, limits, metrics | [`layer::Stack`] |
//! | write a layer | [`layer`] |
//! | write a backend | [`InstanceProvisioner`], [`Capabilities`], [`Call`], `docs/adding-a-provider.md` |
//!
//! ## Features
//!
//! All are on by default.
//!
//! | feature | adds |
//! | --- | --- |
//! | `limit` | `layer::Limit`, which keeps calls below a cloud's rate limits |
//! | `metrics` | `layer::Metrics`, counters and histograms through the `metrics` crate |
//! | `trace` | `layer::Trace`, spans and events through the `tracing` crate |

mod capability;
mod config;
mod error;
mod ext;
mod filter;
mod forward;
mod id;
mod info;
mod invalid;
pub mod layer;
mod list_item;
mod mac;
mod native_cost;
mod operation;
mod placement;
pub mod prelude;
mod provisioner;
mod state;
mod tags;
mod token;
mod user_data;
mod verbs;
pub mod wait;

/// Re-exported for implementations of [`InstanceProvisioner`].
pub use async_trait::async_trait;
pub use capability::{BatchLaunch, Capabilities, OptionalVerb};
pub use config::{ConfigBuilder, Fingerprint, InstanceConfig};
pub use error::{
    Call, Effect, ErrorKind, NamePattern, ProvisionError, Result, RetryAdvice, Scope, TypeFamily,
};
pub use ext::{InstanceProvisionerExt, LaunchAttempt};
pub use filter::InstanceFilter;
/// Re-exported for implementations of [`InstanceProvisioner`] and [`layer::Layer`].
pub use futures_util::{future::BoxFuture, stream::BoxStream};
pub use id::{
    AccountId, ImageId, InstanceId, InstanceType, MAX_NAME_BYTES, NetworkId, SecurityGroupId, Zone,
};
pub use info::{InstanceInfo, InstanceStatus, LaunchFailure, LaunchRecord};
pub use invalid::{InvalidValue, Problem};
pub use list_item::ListItem;
pub use mac::MacAddress;
pub use native_cost::NativeCost;
pub use operation::Operation;
pub use placement::{Market, Placement, PlacementField, PublicAddress};
pub use provisioner::InstanceProvisioner;
pub use state::CloudInstanceState;
pub use tags::{Iter as TagsIter, KeyCase, RESERVED_PREFIX, TagLimits, Tags};
pub use token::{LaunchToken, MAX_TOKEN_BYTES};
pub use user_data::UserData;
pub use verbs::{ConsoleOutput, ConsoleSession, Reboot, SnapshotRequest, TagChange};
