#![doc = include_str!("../README.md")]

pub mod ids;
pub mod mapping;
pub mod uses;
