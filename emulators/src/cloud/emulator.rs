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

/// A running emulator in this process. Dropping it closes every connection and stops it.
///
/// It serves on its own thread and runtime, so tests may pause their runtime's clock or have none.
/// Use the alias of a cloud, for example `ec2::Ec2Emulator`. Every method has a counterpart at the
/// control endpoint, `/_emulator`, for tests in other languages.
///
/// ```
/// # #[cfg(feature = "ec2")] {
/// use std::time::Duration;
///
/// use fleetwright_emulators::ec2::{Action, Ec2Emulator, ExternalAction, Fault, FaultRule, Knobs};
///
/// // Start on a free port, with reads that return data of up to five seconds ago.
/// let mut knobs = Knobs::default();
/// knobs.lag.reads = Duration::from_secs(5);
/// let emulator = Ec2Emulator::start(knobs)?;
/// println!("point the client at {}", emulator.endpoint());
///
/// // The second RunInstances gets the capacity error.
/// emulator.add_fault(FaultRule::nth(Action::RunInstances, 2, Fault::Capacity));
/// assert_eq!(emulator.unused_faults().len(), 1);
///
/// // An external actor terminates an instance; here there is none.
/// let terminate = ExternalAction::Terminate { id: "i-00000000000000bad".to_owned() };
/// assert!(emulator.perform_external(terminate).is_err());
///
/// // Let an hour pass, and read the true state past the API.
/// emulator.advance(Duration::from_secs(3600));
/// assert!(emulator.oracle().instances.is_empty());
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Emulator<C: Cloud> {
    service: Arc<Service<C>>,
    server: RunningServer,
}

impl<C: Cloud> Emulator<C> {
    /// Starts an emulator on a free port of 127.0.0.1, in real time.
    ///
    /// # Errors
    ///
    /// If the port cannot be bound or the thread cannot be started.
    pub fn start(knobs: C::Knobs) -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), knobs)
    }

    /// Starts an emulator at an address, in real time. Port 0 takes a free port.
    ///
    /// # Errors
    ///
    /// As [`Emulator::start`].
    pub fn start_at(address: SocketAddr, knobs: C::Knobs) -> io::Result<Self> {
        Self::start_on(address, knobs, Arc::new(RealClock::new()))
    }

    /// Starts an emulator at an address, on a given clock. Transitions, lag and token buckets
    /// follow the clock; sockets and delays that faults inject are in real time.
    ///
    /// # Errors
    ///
    /// As [`Emulator::start`].
    pub fn start_on(
        address: SocketAddr,
        knobs: C::Knobs,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let service = Arc::new(Service::new(knobs, clock));
        let server = RunningServer::start(address, service.clone())?;
        Ok(Self { service, server })
    }

    /// Returns the address that the emulator listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the URL for the client's endpoint setting, for example `http://127.0.0.1:4566`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Adds a fault rule. If several rules match a call, the one that was added first applies.
    pub fn add_fault(&self, rule: FaultRule<C::Operation>) {
        self.service.add_fault(rule);
    }

    /// Removes all fault rules.
    pub fn clear_faults(&self) {
        self.service.clear_faults();
    }

    /// Returns the rules that were never applied to a call. A test should check that there are
    /// none: a test whose fault never happened proves nothing.
    pub fn unused_faults(&self) -> Vec<FaultRule<C::Operation>> {
        self.service.unused_faults()
    }

    /// Returns the current knobs.
    pub fn knobs(&self) -> C::Knobs {
        self.service.knobs()
    }

    /// Replaces the knobs. All token buckets become full. A new seed takes effect at the next
    /// reset.
    pub fn set_knobs(&self, knobs: C::Knobs) {
        self.service.set_knobs(knobs);
    }

    /// Removes all resources, faults and call records; keeps the knobs. `seed` replaces the seed if
    /// given.
    pub fn reset(&self, seed: Option<u64>) {
        self.service.reset(seed);
    }

    /// Performs an external action, past the API, and returns the ids of the resources that it
    /// created or changed.
    ///
    /// # Errors
    ///
    /// The cloud's refusal, for example if the resource does not exist. Nothing was changed.
    pub fn perform_external(&self, action: C::ExternalAction) -> Result<Vec<String>, C::Refusal> {
        self.service.perform_external(action)
    }

    /// Advances the emulator's time. Everything that becomes due happens before the next call.
    ///
    /// The time ends with the year 9900, because many clients cannot parse dates with five digits for a year. What would
    /// exceed it is left out; the control endpoint refuses it.
    pub fn advance(&self, by: Duration) {
        self.service.advance(by);
    }

    /// Returns the true state of the cloud: without lag, filters or pages.
    pub fn oracle(&self) -> C::Oracle {
        self.service.oracle()
    }

    /// Returns the latest 10,000 calls, oldest first.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.service.call_records()
    }
}
