//! The handle of a running emulator.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use fleetwright_chaos::Clock;

use super::{
    calls::CallRecord,
    clock::RealClock,
    engine::operator::Act,
    error::Refusal,
    fault::FaultRule,
    knobs::Knobs,
    oracle::Oracle,
    service::{Inner, Service},
    throttle::Buckets,
};
use crate::server::Running;

/// An EC2 on a socket of this process. Dropping it closes every connection and stops it.
#[derive(Debug)]
pub struct Ec2Emulator {
    service: Arc<Service>,
    server: Running,
}

impl Ec2Emulator {
    /// Starts one on a free port of the loopback address, in real time.
    pub fn start(knobs: Knobs) -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), knobs)
    }

    /// Starts one at an address, in real time.
    pub fn start_at(address: SocketAddr, knobs: Knobs) -> io::Result<Self> {
        Self::start_on(address, knobs, Arc::new(RealClock::new()))
    }

    /// Starts one at an address, on a clock. Only what happens follows it; sockets live in real time.
    pub fn start_on(address: SocketAddr, knobs: Knobs, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let service = Arc::new(Service::new(knobs, clock));
        let server = Running::start(address, service.clone())?;
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
    pub fn add_fault(&self, rule: FaultRule) {
        self.service.faults.add(rule.into());
    }

    /// Takes every fault away.
    pub fn clear_faults(&self) {
        self.service.faults.clear();
    }

    /// The rules that have not struck yet: a test whose fault never happened proves nothing.
    pub fn unstruck_faults(&self) -> Vec<FaultRule> {
        self.service.unstruck()
    }

    /// The knobs as they are.
    pub fn knobs(&self) -> Knobs {
        self.service.knobs()
    }

    /// Turns knobs. Buckets are full again; the seed counts from the next reset.
    pub fn set_knobs(&self, knobs: Knobs) {
        self.service.set_knobs(knobs);
    }

    /// Forgets everything but the knobs; with a seed, begins from it.
    pub fn reset(&self, seed: Option<u64>) {
        self.service.reset(seed);
    }

    /// Lets somebody else act, and answers the ids of what it was about.
    pub fn act(&self, act: Act) -> Result<Vec<String>, Refusal> {
        self.service.do_act(act)
    }

    /// Lets time have passed.
    pub fn advance(&self, by: Duration) {
        self.service.advance(by);
    }

    /// The truth.
    pub fn oracle(&self) -> Oracle {
        self.service.oracle()
    }

    /// The latest calls, oldest first.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.service.call_records()
    }
}

impl Service {
    pub(super) fn knobs(&self) -> Knobs {
        self.state().world.knobs.clone()
    }

    pub(super) fn set_knobs(&self, knobs: Knobs) {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let mut state = self.state();
        state.buckets = Buckets::new(&knobs.throttle, &clock);
        state.world.set_knobs(knobs);
    }

    pub(super) fn reset(&self, seed: Option<u64>) {
        let mut knobs = self.knobs();
        knobs.seed = seed.unwrap_or(knobs.seed);
        self.faults.clear();
        *self.state() = Inner::new(knobs, &self.clock);
    }

    pub(super) fn do_act(&self, act: Act) -> Result<Vec<String>, Refusal> {
        self.state().world.act(act)
    }

    pub(super) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    pub(super) fn unstruck(&self) -> Vec<FaultRule> {
        self.faults
            .unstruck()
            .into_iter()
            .map(FaultRule::from)
            .collect()
    }

    pub(super) fn oracle(&self) -> Oracle {
        let state = self.state();
        Oracle::new(&state.world, state.calls.counts(), self.unstruck())
    }

    pub(super) fn call_records(&self) -> Vec<CallRecord> {
        self.state().calls.latest()
    }
}
