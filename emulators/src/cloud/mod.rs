//! What every emulated cloud is made of, whatever it speaks.
//!
//! Owns the way of a request (fault, throttling, lost replies), the handle and the control endpoint,
//! and the parts that engines are built of: time, lag, pages, indexes, machines, names. It knows no
//! cloud: what differs is behind [`Cloud`].
//!
//! | file | what it does |
//! | --- | --- |
//! | `service`, `strike`, `throttle`, `calls` | a request from its first byte to its last, and its record |
//! | `emulator`, `control` | the handle of a test, and the same for other processes |
//! | `fault` | what can go wrong, at which call |
//! | `knobs`, `millis` | the knobs that all clouds have |
//! | `clock`, `schedule` | time that can be put forward, and what is due when |
//! | `lag`, `history` | how far reads trail behind, and what they may still see |
//! | `page`, `index`, `records` | parts of a list, and finding without looking at everything |
//! | `machines` | how many machines there are, and who has them |
//! | `names`, `pool` | numbers that are never given twice, and addresses that are, but not soon |

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
use knobs::Throttle;
use lag::Lag;

/// A cloud: what it speaks, and what happens in it.
pub trait Cloud: Debug + Sized + Send + Sync + 'static {
    /// What the program and the control endpoint call it.
    const NAME: &'static str;
    /// The name of a kind of call.
    type Operation: Operation;
    /// Everything that can be turned.
    type Knobs: CommonKnobs;
    /// What somebody else does.
    type ExternalAction: DeserializeOwned;
    /// Why a request was refused.
    type Refusal: RefusalInfo;
    /// The truth.
    type Oracle: Serialize;
    /// All there is.
    type Engine: CloudEngine<Knobs = Self::Knobs>;
    /// A request that was understood.
    type Call: Send;
    /// What a call that succeeds is answered with.
    type Output;

    /// Understands a request, or refuses what does not even count as a call.
    fn parse(
        request: &HttpRequest,
        engine: &Self::Engine,
    ) -> Result<(Self::Operation, Self::Call), Self::Refusal>;

    /// The parameters of a call as its record shows them.
    fn recorded_parameters(call: &Self::Call) -> BTreeMap<String, String>;

    /// How many resources a call asks for or names.
    fn resource_count(call: &Self::Call) -> NonZeroU32;

    /// How much longer a call that began at `since` has to wait for what it is about, if it waits.
    fn remaining_wait(
        call: &Self::Call,
        engine: &Self::Engine,
        since: Duration,
    ) -> Option<Duration> {
        let _ = (call, engine, since);
        None
    }

    /// Carries a call out.
    fn execute(
        call: &Self::Call,
        engine: &mut Self::Engine,
        context: &CallContext,
    ) -> Result<Self::Output, Self::Refusal>;

    /// The reply to a request.
    fn response(result: Result<Self::Output, Self::Refusal>, request_id: &str) -> HttpResponse;

    /// How a `Retry-After` header says to come back in so many seconds.
    fn retry_after(engine: &Self::Engine, seconds: u64) -> String {
        let _ = engine;
        seconds.to_string()
    }

    /// What a `Date` header says, where clients go by the cloud's time; none, the machine's.
    fn date(engine: &Self::Engine) -> Option<String> {
        let _ = engine;
        None
    }

    /// Whether a fault means anything here.
    fn supports_fault(fault: &Fault) -> bool;

    /// This cloud's words for a refusal that is not a call's own.
    fn injected_refusal(error: InjectedError<'_>, engine: &Self::Engine) -> Self::Refusal;

    /// Lets somebody else act, and answers the ids of what it was about.
    fn perform_external(
        engine: &mut Self::Engine,
        action: Self::ExternalAction,
    ) -> Result<Vec<String>, Self::Refusal>;

    /// The truth, with what was asked so far.
    fn oracle(
        engine: &Self::Engine,
        calls: BTreeMap<String, u64>,
        unused_faults: Vec<FaultRule<Self::Operation>>,
    ) -> Self::Oracle;

    /// What the control endpoint says about this cloud.
    fn describe(knobs: &Self::Knobs) -> Value;
}

/// All there is in a cloud, and its time.
pub trait CloudEngine: Debug + Send {
    /// Everything that can be turned.
    type Knobs;

    /// The beginning.
    fn new(knobs: Self::Knobs, clock: Arc<dyn Clock>) -> Self;

    /// The knobs as they are.
    fn knobs(&self) -> &Self::Knobs;

    /// Turns the knobs.
    fn set_knobs(&mut self, knobs: Self::Knobs);

    /// Carries out everything that is due by now.
    fn catch_up(&mut self);

    /// The id of the next request.
    fn request_id(&mut self) -> String;
}

/// The name of a kind of call, which fault rules, buckets and counts go by.
pub trait Operation:
    Copy + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Its name.
    fn name(self) -> &'static str;

    /// The operation of that name.
    fn named(name: &str) -> Option<Self>;
}

/// The knobs that all clouds have, as the shared code reads and changes them.
pub trait CommonKnobs: Clone + Debug + Serialize + DeserializeOwned + Send {
    /// The seed of all random choices.
    fn seed(&self) -> u64;

    /// Changes the seed. It takes effect at the next reset.
    fn set_seed(&mut self, seed: u64);

    /// The lag of reads and writes.
    fn lag_mut(&mut self) -> &mut Lag;

    /// The token buckets by operation.
    fn throttle(&self) -> &BTreeMap<String, Throttle>;
}

/// Implements [`CommonKnobs`] for a type with the fields `seed`, `lag` and `throttle`.
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

            fn throttle(
                &self,
            ) -> &std::collections::BTreeMap<String, $crate::cloud::knobs::Throttle> {
                &self.throttle
            }
        }
    };
}
pub(crate) use impl_common_knobs;

/// A refusal as records and the control endpoint show it.
pub trait RefusalInfo: Debug {
    /// The cloud's code.
    fn code(&self) -> &str;

    /// What a human reads.
    fn message(&self) -> &str;
}
