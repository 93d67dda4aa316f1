#![doc = include_str!("../README.md")]
//! ## Modules
//!
//! | module | owns |
//! | --- | --- |
//! | `provisioner`, `options`, `config`, `hardware`, `credentials`, `cloud` | the public types |
//! | `launch`, `token`, `settle`, `plan` | launches: the calls, what a token has launched, late failures, the request |
//! | `cleanup`, `removal`, `recent_deletions` | the remains of failed creations: the background task, the proof, the memory |
//! | `change`, `verbs`, `lro` | changes: power state, optional verbs, polling operations |
//! | `lookup`, `read`, `list`, `interfaces` | reads: by id, by filter, and addresses |
//! | `convert`, `state`, `tags`, `address`, `machine` | plain types and pure conversions |
//! | `error`, `reason` | failures and the meaning of native codes |
//! | `client` | the calls of the SDK, the transport, and in `client/identity` the tokens |

mod address;
mod change;
mod cleanup;
mod client;
mod cloud;
mod config;
mod convert;
mod credentials;
mod ends;
mod error;
mod hardware;
mod image;
mod interfaces;
mod launch;
mod list;
mod lookup;
mod lro;
mod machine;
mod native_costs;
mod options;
mod plan;
mod provisioner;
mod read;
mod reason;
mod recent_deletions;
mod removal;
mod settle;
mod state;
mod tags;
mod token;
mod verbs;

pub use cleanup::AzureCleanup;
pub use cloud::AzureCloud;
pub use config::{
    AzureLaunchConfig, BootDiagnostics, Eviction, MarketplacePlan, SystemIdentity, UserDataAs,
};
pub use credentials::{
    AzureCredentials, ManagedIdentity, ServicePrincipal, Token, TokenFailure, TokenSource,
};
pub use fleetwright;
pub use hardware::{AcceleratedNetworking, BootSecurity, DataDisk, SystemDisk};
pub use options::AzureOptions;
pub use provisioner::AzureProvisioner;
