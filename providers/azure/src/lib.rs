#![doc = include_str!("../README.md")]

mod address;
mod change;
mod cleanup;
mod client;
mod config;
mod convert;
mod credentials;
mod error;
mod launch;
mod list;
mod lro;
mod machine;
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
pub use config::{
    AzureLaunchConfig, BootDiagnostics, Eviction, MarketplacePlan, SystemIdentity, UserDataAs,
};
pub use credentials::{AzureCredentials, Token, TokenFailure, TokenSource};
pub use fleetwright;
pub use options::AzureOptions;
pub use provisioner::AzureProvisioner;
