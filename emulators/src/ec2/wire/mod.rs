//! The query protocol of EC2 and STS: parameters in, XML out, signatures checked for their form.
//!
//! Owns the protocol and no behaviour: what an action means is in `actions`, what happens in
//! `engine`.

pub(crate) mod action;
pub(crate) mod known;
pub(crate) mod params;
pub(crate) mod service;
pub(crate) mod sigv4;
pub(crate) mod sts;
pub(crate) mod tree;
pub(crate) mod xml;

/// The API version of EC2 that the emulator supports.
pub(crate) const VERSION: &str = "2016-11-15";
