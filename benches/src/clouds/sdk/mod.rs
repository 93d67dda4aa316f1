//! The vendors' SDKs as a program would use them without fleetwright: one call for each thing to do.
//!
//! Owns nothing but the calls. It handles no failure: a measurement in which one occurs ends.

use std::time::Duration;

use async_trait::async_trait;

pub mod azure;
pub mod ec2;
pub mod gcp;

/// The tag of every instance of a measurement.
pub const TAG: (&str, &str) = ("fleet", "bench");

/// What a read says about an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It runs.
    Running,
    /// It is terminated, or there is no record of it.
    Gone,
    /// Anything else.
    Changing,
}

/// Whether a launch can be repeated without launching twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// The request has the cloud's own token.
    Sent,
    /// It has none.
    Absent,
}

/// What is measured of a vendor's SDK.
#[async_trait]
pub trait Sdk: Send + Sync {
    /// Launches `count` instances in as few calls as the usual way takes. `name` is not used twice.
    async fn launch(&self, name: &str, token: Token, count: u32) -> Vec<String>;
    /// Reads one instance.
    async fn describe(&self, id: &str) -> Seen;
    /// Reads many instances with as few calls as the SDK offers for it. An instance that is not listed is not in the result.
    async fn poll(&self, ids: &[String]) -> Vec<Seen>;
    /// Lists the instances with [`TAG`] with the SDK's paginator. Returns their number and the time to the first one.
    async fn list(&self) -> (usize, Duration);
    /// Stops one instance.
    async fn stop(&self, id: &str);
    /// Starts one instance.
    async fn start(&self, id: &str);
    /// Terminates instances.
    async fn terminate(&self, ids: &[String]);
}
