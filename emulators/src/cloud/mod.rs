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
//! | `clock`, `agenda` | time that can be put forward, and what is due when |
//! | `lag`, `history` | how far reads trail behind, and what they may still see |
//! | `page`, `index`, `records` | parts of a list, and finding without looking at everything |
//! | `machines` | how many machines there are, and who has them |
//! | `names`, `pool` | numbers that are never given twice, and addresses that are, but not soon |

pub(crate) mod agenda;
pub(crate) mod calls;
pub(crate) mod clock;
mod control;
pub(crate) mod emulator;
pub(crate) mod fault;
pub(crate) mod history;
pub(crate) mod index;
pub(crate) mod knobs;
pub(crate) mod lag;
pub(crate) mod machines;
pub(crate) mod millis;
pub(crate) mod names;
pub(crate) mod page;
pub(crate) mod pool;
pub(crate) mod records;
pub(crate) mod service;
pub(crate) mod strike;
mod throttle;

use std::{collections::BTreeMap, fmt::Debug, num::NonZeroU32, sync::Arc, time::Duration};

use fleetwright_chaos::Clock;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::server::{Incoming, Outgoing};
use fault::{Fault, FaultRule, StandIn};
use knobs::Throttle;
use strike::Served;

/// A cloud: what it speaks, and what happens in it.
pub trait Cloud: Debug + Sized + Send + Sync + 'static {
    /// What the program and the control endpoint call it.
    const NAME: &'static str;
    /// The name of a kind of call.
    type Operation: Operation;
    /// Everything that can be turned.
    type Knobs: Turned;
    /// What somebody else does.
    type Act: DeserializeOwned;
    /// Why a request was refused.
    type Refusal: Refused;
    /// The truth.
    type Oracle: Serialize;
    /// All there is.
    type World: World<Knobs = Self::Knobs>;
    /// A request that was understood.
    type Call: Send;
    /// What a call that succeeds is answered with.
    type Answer;

    /// Understands a request, or refuses what does not even count as a call.
    fn prepare(
        request: &Incoming,
        world: &Self::World,
    ) -> Result<(Self::Operation, Self::Call), Self::Refusal>;

    /// The parameters of a call as its record shows them.
    fn shown(call: &Self::Call) -> BTreeMap<String, String>;

    /// How many resources a call asks for or names.
    fn resources(call: &Self::Call) -> NonZeroU32;

    /// How much longer a call that began at `since` has to wait for what it is about, if it waits.
    fn patience(call: &Self::Call, world: &Self::World, since: Duration) -> Option<Duration> {
        let _ = (call, world, since);
        None
    }

    /// Carries a call out.
    fn act(
        call: &Self::Call,
        world: &mut Self::World,
        served: &Served,
    ) -> Result<Self::Answer, Self::Refusal>;

    /// The reply to a request.
    fn reply(done: Result<Self::Answer, Self::Refusal>, request_id: &str) -> Outgoing;

    /// How a `Retry-After` header says to come back in so many seconds.
    fn retry_after(world: &Self::World, seconds: u64) -> String {
        let _ = world;
        seconds.to_string()
    }

    /// What a `Date` header says, where clients go by the cloud's time; none, the machine's.
    fn date(world: &Self::World) -> Option<String> {
        let _ = world;
        None
    }

    /// Whether a fault means anything here.
    fn can(fault: &Fault) -> bool;

    /// This cloud's words for a refusal that is not a call's own.
    fn refuse(why: StandIn<'_>, world: &Self::World) -> Self::Refusal;

    /// Lets somebody else act, and answers the ids of what it was about.
    fn let_act(world: &mut Self::World, act: Self::Act) -> Result<Vec<String>, Self::Refusal>;

    /// The truth, with what was asked so far.
    fn oracle(
        world: &Self::World,
        calls: BTreeMap<String, u64>,
        unstruck: Vec<FaultRule<Self::Operation>>,
    ) -> Self::Oracle;

    /// What the control endpoint says about this cloud.
    fn introduction(knobs: &Self::Knobs) -> Value;
}

/// All there is in a cloud, and its time.
pub trait World: Debug + Send {
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

/// Knobs that all clouds have.
pub trait Turned: Clone + Debug + Serialize + DeserializeOwned + Send {
    /// Where all chance comes from.
    fn seed_mut(&mut self) -> &mut u64;

    /// The token buckets.
    fn throttle(&self) -> &BTreeMap<String, Throttle>;
}

/// A refusal as records and the control endpoint show it.
pub trait Refused: Debug {
    /// The cloud's code.
    fn code(&self) -> &str;

    /// What a human reads.
    fn message(&self) -> &str;
}
