#![doc = include_str!("../README.md")]

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
pub mod snapshot;
pub mod tags;
#[cfg(test)]
mod testing;
