#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! | task | start with |
//! | --- | --- |
//! | run the service in a program | [`Server`] |
//! | check a configuration file | [`check`] |
//! | run the program | [`run`] |

mod auth;
mod cli;
mod cloud;
mod config;
mod console;
mod docs;
mod document;
mod error;
mod failure;
mod follow;
mod http;
mod idempotency;
mod keys;
mod listen;
mod meaning;
mod resource;
mod router;
mod sample;
mod service;
mod start;
mod telemetry;
mod tls;
mod traces;
mod wire;

pub use cli::run;
pub use config::{ConfigError, check};
pub use error::ServerError;
pub use start::Server;
