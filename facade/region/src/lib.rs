#![doc = include_str!("../README.md")]

pub mod catalog;
pub mod entropy;
pub mod file;
pub mod ids;
pub mod mapping;
pub mod name;
pub mod network;
pub mod schema;
pub mod secret;
#[cfg(test)]
mod testing;
pub mod uses;
