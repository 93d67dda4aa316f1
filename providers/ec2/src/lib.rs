#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! [`Ec2Provisioner`] is the backend, [`Ec2Options`] its settings, and [`Ec2LaunchConfig`] what its launches have in common.

mod account;
mod batch;
mod by_token;
mod change;
mod client;
mod config;
mod convert;
mod error;
mod image;
mod late;
mod launch;
mod native_costs;
mod one_launch;
mod options;
mod plan;
mod provisioner;
mod read;
mod refusal;
mod scope;
mod send;
mod state;
mod tags;
mod token;
mod token_reads;
mod unsent;

pub use aws_config;
pub use config::{
    Ec2LaunchConfig, ExtraVolume, GuestShutdown, MetadataOptions, MetadataTokens, OnTermination,
    RootDevice,
};
pub use fleetwright;
pub use options::Ec2Options;
pub use provisioner::Ec2Provisioner;
