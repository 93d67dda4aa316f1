//! The handle of a running emulator.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use fleetwright_chaos::Clock;

use super::{Cloud, calls::CallRecord, clock::RealClock, fault::FaultRule, service::Service};
use crate::server::RunningServer;

/// A cloud on a socket of this process. Dropping it closes every connection and stops it.
///
/// Each cloud's module has its own name for it, such as `ec2::Ec2Emulator`.
#[derive(Debug)]
pub struct Emulator<C: Cloud> {
    service: Arc<Service<C>>,
    server: RunningServer,
}

impl<C: Cloud> Emulator<C> {
    /// Starts one on a free port of the loopback address, in real time.
    pub fn start(knobs: C::Knobs) -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), knobs)
    }

    /// Starts one at an address, in real time.
    pub fn start_at(address: SocketAddr, knobs: C::Knobs) -> io::Result<Self> {
        Self::start_on(address, knobs, Arc::new(RealClock::new()))
    }

    /// Starts one at an address, on a clock. Only what happens follows it; sockets live in real time.
    pub fn start_on(
        address: SocketAddr,
        knobs: C::Knobs,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let service = Arc::new(Service::new(knobs, clock));
        let server = RunningServer::start(address, service.clone())?;
        Ok(Self { service, server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL that clients are pointed at.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Makes something go wrong. Where several rules strike one call, the one added first counts.
    pub fn add_fault(&self, rule: FaultRule<C::Operation>) {
        self.service.add_fault(rule);
    }

    /// Takes every fault away.
    pub fn clear_faults(&self) {
        self.service.clear_faults();
    }

    /// The rules that have not struck yet: a test whose fault never happened proves nothing.
    pub fn unused_faults(&self) -> Vec<FaultRule<C::Operation>> {
        self.service.unused_faults()
    }

    /// The knobs as they are.
    pub fn knobs(&self) -> C::Knobs {
        self.service.knobs()
    }

    /// Turns knobs. Buckets are full again; the seed counts from the next reset.
    pub fn set_knobs(&self, knobs: C::Knobs) {
        self.service.set_knobs(knobs);
    }

    /// Forgets everything but the knobs; with a seed, begins from it.
    pub fn reset(&self, seed: Option<u64>) {
        self.service.reset(seed);
    }

    /// Lets somebody else act, and answers the ids of what it was about.
    pub fn perform_external(&self, action: C::ExternalAction) -> Result<Vec<String>, C::Refusal> {
        self.service.perform_external(action)
    }

    /// Lets time have passed.
    pub fn advance(&self, by: Duration) {
        self.service.advance(by);
    }

    /// The truth.
    pub fn oracle(&self) -> C::Oracle {
        self.service.oracle()
    }

    /// The latest calls, oldest first.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.service.call_records()
    }
}
