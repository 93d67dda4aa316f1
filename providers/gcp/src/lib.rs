#![doc = include_str!("../README.md")]

mod address;
mod change;
mod client;
mod config;
mod convert;
mod error;
mod history;
mod labels;
mod launch;
mod list;
mod metadata;
mod operations;
mod options;
mod plan;
mod provisioner;
mod read;
mod reason;
mod state;
mod token;
mod verbs;

pub use config::{
    GcpLaunchConfig, HostMaintenance, ServiceAccount, ShieldedOptions, SpotEnd, UserDataAs,
};
pub use fleetwright;
pub use google_cloud_auth;
pub use options::GcpOptions;
pub use provisioner::GcpProvisioner;
