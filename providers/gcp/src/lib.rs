#![doc = include_str!("../README.md")]
//! ## Modules
//!
//! | module | owns |
//! | --- | --- |
//! | `provisioner`, `options`, `config` | the public types |
//! | `launch`, `token`, `twins`, `plan` | launches: the sequence of calls, what a token has launched, also in another zone, the request |
//! | `change`, `verbs`, `operations` | changes: power state, optional verbs, waiting for operations |
//! | `read`, `list`, `resolve`, `memory`, `history` | reads: by id, by filter, what they mean, what this handle remembers, and the history of instances that do not exist |
//! | `convert`, `state`, `labels`, `metadata`, `address` | pure conversions |
//! | `error`, `reason` | failures and the meaning of native codes |
//! | `client` | the calls of the SDK |

mod address;
mod bulk;
mod change;
mod client;
mod config;
mod convert;
mod error;
mod history;
mod image;
mod labels;
mod launch;
mod list;
mod memory;
mod metadata;
mod native_costs;
mod operations;
mod options;
mod plan;
mod provisioner;
mod read;
mod reason;
mod resolve;
mod scope;
mod state;
mod token;
mod twins;
mod verbs;

pub use config::{
    GcpLaunchConfig, HostMaintenance, ServiceAccount, ShieldedOptions, SpotEnd, UserDataAs,
};
pub use fleetwright;
pub use google_cloud_auth;
pub use options::GcpOptions;
pub use provisioner::GcpProvisioner;
