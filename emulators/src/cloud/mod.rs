//! The parts that every emulated cloud is built from, whatever its protocol.
//!
//! Owns the path of a request (faults, throttling, lost responses), the handle and the control
//! endpoint, and the building blocks of engines: time, lag, pages, indexes, capacity, ids. It knows
//! no cloud: each cloud implements [`Cloud`] and [`CloudEngine`].
//!
//! | file | purpose |
//! | --- | --- |
//! | `service`, `inject`, `throttle`, `calls` | a request from its first byte to its last, and its record |
//! | `emulator`, `control` | the handle that a test holds, and the same for other processes |
//! | `fault` | the faults, and the calls that they are injected into |
//! | `knobs`, `millis` | the knobs that all clouds have |
//! | `engine` | the state that all engines have |
//! | `clock`, `schedule` | time that tests can advance, and the events that are due |
//! | `lag`, `history` | how far reads lag behind, and the older versions that they return |
//! | `page`, `index`, `records` | pages of a list, and lookups that do not scan everything |
//! | `capacity` | how many machines there are and how many are in use |
//! | `ids`, `address_pool` | numbers that are never reused, and addresses that are reused late |

pub(crate) mod address_pool;
pub(crate) mod calls;
pub(crate) mod capacity;
pub(crate) mod clock;
mod control;
pub(crate) mod emulator;
pub(crate) mod engine;
pub(crate) mod fault;
pub(crate) mod history;
pub(crate) mod ids;
pub(crate) mod index;
pub(crate) mod inject;
pub(crate) mod knobs;
pub(crate) mod lag;
pub(crate) mod millis;
pub(crate) mod page;
pub(crate) mod records;
pub(crate) mod schedule;
pub(crate) mod service;
mod throttle;

use std::{collections::BTreeMap, fmt::Debug, num::NonZeroU32, sync::Arc, time::Duration};

use fleetwright_chaos::Clock;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::server::{HttpRequest, HttpResponse};
use fault::{Fault, FaultRule, InjectedError};
use inject::CallContext;
use knobs::{Capacity, Throttle};
use lag::Lag;

/// A cloud that can be emulated: its protocol and its engine.
///
/// [`Emulator`](emulator::Emulator) and the control endpoint are generic over it. The
/// implementations are `ec2::Ec2`, `gcp::Gcp` and `azure::Azure`; tests use the aliases
/// `Ec2Emulator`, `GcpEmulator` and `AzureEmulator`.
pub trait Cloud: Debug + Sized + Send + Sync + 'static {
    /// The cloud's name: the program's subcommand and the `cloud` field of `GET /_emulator`.
    const NAME: &'static str;
    /// The operations of the API, which fault rules, token buckets and call counts are keyed by.
    type Operation: Operation;
    /// The settings of the emulator.
    type Knobs: CommonKnobs;
    /// What an external actor can do to the account, past the API.
    type ExternalAction: DeserializeOwned;
    /// The cloud's error response.
    type Refusal: RefusalInfo;
    /// The true state of the cloud, read past its API.
    type Oracle: Serialize;
    /// The state of the cloud.
    type Engine: CloudEngine<Knobs = Self::Knobs>;
    /// A parsed request.
    type Call: Send;
    /// The result of a successful call, before it is encoded as a response.
    type Output;

    /// Parses a request.
    ///
    /// # Errors
    ///
    /// The refusal of a request that is not a call: a bad signature, path, or body. It is recorded, and no fault is injected
    /// into it. It is counted only if its operation is not emulated.
    fn parse(
        request: &HttpRequest,
        engine: &Self::Engine,
    ) -> Result<(Self::Operation, Self::Call), Self::Refusal>;

    /// Returns the name under which a request that is not a call is recorded and counted, and its parameters without secrets.
    /// Default: the method and the path.
    fn name_request(request: &HttpRequest) -> (String, BTreeMap<String, String>) {
        let name = format!("{} {}", request.method, request.uri.path());
        (name, BTreeMap::new())
    }

    /// Returns the parameters of a call for its record, without secrets.
    fn recorded_parameters(call: &Self::Call) -> BTreeMap<String, String>;

    /// Returns how many resources a call creates or names, for throttling that counts resources.
    /// Default: 1.
    fn resource_count(call: &Self::Call) -> NonZeroU32 {
        let _ = call;
        NonZeroU32::MIN
    }

    /// Returns how much longer a call that began at `since` waits for an operation; `None` if it
    /// does not wait.
    fn remaining_wait(
        call: &Self::Call,
        engine: &Self::Engine,
        since: Duration,
    ) -> Option<Duration> {
        let _ = (call, engine, since);
        None
    }

    /// Executes a call.
    ///
    /// # Errors
    ///
    /// The cloud's refusal. Nothing was changed.
    fn execute(
        call: &Self::Call,
        engine: &mut Self::Engine,
        context: &CallContext,
    ) -> Result<Self::Output, Self::Refusal>;

    /// Encodes the result of a call.
    fn response(result: Result<Self::Output, Self::Refusal>, request_id: &str) -> HttpResponse;

    /// Returns the value of a `Retry-After` header for a delay in seconds.
    fn retry_after(engine: &Self::Engine, seconds: u64) -> String {
        let _ = engine;
        seconds.to_string()
    }

    /// Returns the value of the `Date` header, for clouds whose clients read the cloud's time from
    /// it; `None` keeps the real time.
    fn date(engine: &Self::Engine) -> Option<String> {
        let _ = engine;
        None
    }

    /// Whether this cloud can inject the fault. A rule with another fault never applies. Default: every
    /// fault.
    fn supports_fault(fault: &Fault) -> bool {
        let _ = fault;
        true
    }

    /// Returns this cloud's refusal of a call for an injected error.
    fn injected_refusal(
        call: &Self::Call,
        error: InjectedError<'_>,
        engine: &Self::Engine,
    ) -> Self::Refusal;

    /// Records what the cloud remembers of a call although it refuses it, for an injected error. Default:
    /// nothing.
    fn record_refusal(call: &Self::Call, engine: &mut Self::Engine, error: InjectedError<'_>) {
        let _ = (call, engine, error);
    }

    /// Performs an external action and returns the ids of the resources that it created or changed.
    fn perform_external(
        engine: &mut Self::Engine,
        action: Self::ExternalAction,
    ) -> Result<Vec<String>, Self::Refusal>;

    /// Returns the true state, with the number of calls by operation and the fault rules that were
    /// never applied.
    fn oracle(
        engine: &Self::Engine,
        calls: BTreeMap<String, u64>,
        unused_faults: Vec<FaultRule<Self::Operation>>,
    ) -> Self::Oracle;

    /// Returns the document of `GET /_emulator`: the cloud, its region or zones, and its
    /// operations.
    fn describe(knobs: &Self::Knobs) -> Value;
}

/// The state of a cloud, and its time.
pub trait CloudEngine: Debug + Send {
    /// The settings of the emulator.
    type Knobs;

    /// Creates an engine without any resources except those that the knobs describe.
    fn new(knobs: Self::Knobs, clock: Arc<dyn Clock>) -> Self;

    /// Returns the current knobs.
    fn knobs(&self) -> &Self::Knobs;

    /// Replaces the knobs.
    fn set_knobs(&mut self, knobs: Self::Knobs);

    /// Processes all events that are due.
    fn catch_up(&mut self);

    /// Returns the id of the next request.
    fn request_id(&mut self) -> String;
}

/// An operation of a cloud's API.
pub trait Operation:
    Copy + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Returns the name that the cloud's documentation uses.
    fn name(self) -> &'static str;

    /// Returns the operation with this name.
    fn from_name(name: &str) -> Option<Self>;
}

/// The knobs that all clouds have, as the shared code reads and changes them.
pub trait CommonKnobs: Clone + Debug + Serialize + DeserializeOwned + Send {
    /// The seed of all random choices.
    fn seed(&self) -> u64;

    /// Changes the seed. It takes effect at the next reset.
    fn set_seed(&mut self, seed: u64);

    /// The lag of reads and writes.
    fn lag_mut(&mut self) -> &mut Lag;

    /// The limits on the machines that run at once.
    fn capacity_mut(&mut self) -> &mut Vec<Capacity>;

    /// The token buckets by operation.
    fn throttle(&self) -> &BTreeMap<String, Throttle>;
}

/// Implements [`CommonKnobs`] for a type with the fields `seed`, `lag`, `capacity` and `throttle`.
macro_rules! impl_common_knobs {
    ($knobs:ty) => {
        impl $crate::cloud::CommonKnobs for $knobs {
            fn seed(&self) -> u64 {
                self.seed
            }

            fn set_seed(&mut self, seed: u64) {
                self.seed = seed;
            }

            fn lag_mut(&mut self) -> &mut $crate::cloud::lag::Lag {
                &mut self.lag
            }

            fn capacity_mut(&mut self) -> &mut Vec<$crate::cloud::knobs::Capacity> {
                &mut self.capacity
            }

            fn throttle(
                &self,
            ) -> &std::collections::BTreeMap<String, $crate::cloud::knobs::Throttle> {
                &self.throttle
            }
        }
    };
}
pub(crate) use impl_common_knobs;

/// The parts of a refusal that call records and the control endpoint show.
pub trait RefusalInfo: Debug {
    /// The cloud's code.
    fn code(&self) -> &str;

    /// The message for humans.
    fn message(&self) -> &str;
}
