#![doc = include_str!("../README.md")]

pub mod catalog;
pub mod file;
pub mod ids;
pub mod mapping;
pub mod schema;
#[cfg(test)]
mod testing;
pub mod uses;
