#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! | task | start with |
//! | --- | --- |
//! | load the two files | [`catalog::CatalogService`], [`mapping::RegionPlanner`] |
//! | manage tenants' networks, groups and authorities | [`network::Networks`], [`network::SecurityGroups`], [`network::SshAuthorities`] |
//! | request servers | [`server::Servers`], [`server::NewServer`], [`server::ServerSpec`] |
//! | run the loops of a region | [`controller::Controller`], [`monitor::Monitor`], [`snapshot::Snapshots`] |
//! | use a machine: console, key, image | [`machine::MachineAccess`] |
//! | seal secrets | [`secret::Keyring`], [`secret::ServerKeys`] |
//! | open a store | [`schema`], [`references::References`] |

pub mod account;
pub mod catalog;
pub mod controller;
pub mod file;
pub mod ids;
pub mod launch_config;
pub mod machine;
pub mod mapping;
pub mod monitor;
pub mod name;
pub mod network;
pub mod references;
pub mod schema;
pub mod secret;
pub mod server;
pub mod setting;
pub mod snapshot;
pub mod tags;
#[cfg(test)]
mod testing;
