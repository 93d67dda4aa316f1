#![doc = include_str!("../README.md")]

mod address;
mod change;
mod client;
mod config;
mod convert;
mod credentials;
mod ends;
mod error;
mod failed;
mod launch;
mod list;
mod lro;
mod machine;
mod options;
mod plan;
mod provisioner;
mod read;
mod reason;
mod state;
mod tags;
mod verbs;

pub use config::{
    AzureLaunchConfig, BootDiagnostics, Eviction, MarketplacePlan, SystemIdentity, UserDataAs,
};
pub use credentials::{AzureCredentials, Token, TokenFailure, TokenSource};
pub use fleetwright;
pub use options::AzureOptions;
pub use provisioner::AzureProvisioner;
