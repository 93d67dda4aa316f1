//! Compute Engine as the shared machinery sees it: access token, method, reply.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::{
    engine::{World, operator::Act},
    error::Refusal,
    knobs::Knobs,
    methods::{self, Call},
    oracle::Oracle,
    wire::{body::Fields as _, method::Method, query::Query, route},
};
use crate::{
    cloud::{
        Cloud, Operation, Refused,
        emulator::Emulator,
        fault::{self, Fault, StandIn},
        strike::Served,
    },
    server::{Delivery, Incoming, Outgoing, Unreadable},
};

/// A Compute Engine on a socket of this process. Dropping it closes every connection and stops it.
pub type GcpEmulator = Emulator<Gcp>;

/// A fault and the calls of a method that it strikes, as the control endpoint reads it.
pub type FaultRule = fault::FaultRule<Method>;

/// Compute Engine, among the clouds that can be emulated.
#[derive(Debug)]
pub enum Gcp {}

impl Cloud for Gcp {
    const NAME: &'static str = "gcp";
    type Operation = Method;
    type Knobs = Knobs;
    type Act = Act;
    type Refusal = Refusal;
    type Oracle = Oracle;
    type World = World;
    type Call = Call;
    type Answer = String;

    fn prepare(request: &Incoming, world: &World) -> Result<(Method, Call), Refusal> {
        let call = understand(request, &world.knobs)?;
        Ok((call.method, call))
    }

    fn shown(call: &Call) -> BTreeMap<String, String> {
        call.shown()
    }

    fn resources(call: &Call) -> NonZeroU32 {
        if call.method != Method::InstancesBulkInsert {
            return NonZeroU32::MIN;
        }
        let body: Option<Value> = serde_json::from_slice(&call.body).ok();
        let count = body
            .as_ref()
            .and_then(|body| body.as_object()?.long("count"));
        let count = count.and_then(|count| u32::try_from(count).ok());
        count.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
    }

    fn patience(call: &Call, world: &World, since: Duration) -> Option<Duration> {
        methods::patience(call, world, since)
    }

    fn act(call: &Call, world: &mut World, served: &Served) -> Result<String, Refusal> {
        methods::act(call, world, served)
    }

    fn reply(done: Result<String, Refusal>, _request_id: &str) -> Outgoing {
        let (status, body) = match done {
            Ok(body) => (200, body),
            Err(refusal) => (refusal.status, refusal.document().to_string()),
        };
        Outgoing {
            status,
            content_type: "application/json; charset=UTF-8",
            headers: vec![("vary", "Origin, X-Origin, Referer".to_owned())],
            body,
            delivery: Delivery::Whole,
        }
    }

    fn can(_fault: &Fault) -> bool {
        true
    }

    fn refuse(why: StandIn<'_>, world: &World) -> Refusal {
        match why {
            StandIn::Throttled => Refusal::throttled(world.knobs.throttle_status),
            StandIn::Expired => Refusal::unauthenticated(),
            StandIn::Forbidden => Refusal::forbidden("projects/any"),
            StandIn::Capacity => Refusal::stockout("projects/any/zones/any"),
            StandIn::Quota => Refusal::quota("CPUS", 0, "any"),
            StandIn::Internal => Refusal::internal(),
            StandIn::Any {
                status,
                code,
                message,
            } => Refusal::new(status, code.to_owned(), message),
        }
    }

    fn let_act(world: &mut World, act: Act) -> Result<Vec<String>, Refusal> {
        world.act(act)
    }

    fn oracle(world: &World, calls: BTreeMap<String, u64>, unstruck: Vec<FaultRule>) -> Oracle {
        Oracle::new(world, calls, unstruck)
    }

    fn introduction(knobs: &Knobs) -> Value {
        json!({
            "cloud": Self::NAME,
            "zones": knobs.zones,
            "methods": Method::ALL.map(Method::name).as_slice(),
        })
    }
}

impl Operation for Method {
    fn name(self) -> &'static str {
        Self::name(self)
    }

    fn named(name: &str) -> Option<Self> {
        Self::named(name)
    }
}

impl Refused for Refusal {
    fn code(&self) -> &str {
        &self.reason
    }

    fn message(&self) -> &str {
        &self.message
    }
}

fn understand(request: &Incoming, knobs: &Knobs) -> Result<Call, Refusal> {
    let (method, target) = route::find(&request.method, request.uri.path())?;
    check_token(request, knobs)?;
    let body = request
        .body
        .as_ref()
        .map_err(|unreadable| match unreadable {
            Unreadable::TooLarge => {
                let message = "Request payload size exceeds the limit.";
                Refusal::new(413, "uploadTooLarge", message)
            }
            Unreadable::Broken => {
                let message = "The request did not arrive in time.";
                Refusal::new(408, "requestTimeout", message)
            }
        })?;
    let query = Query::read(method, request.uri.query().unwrap_or_default())?;
    Ok(Call {
        method,
        target,
        query,
        body: body.clone(),
    })
}

/// Refuses tokens that are not known, if any are.
fn check_token(request: &Incoming, knobs: &Knobs) -> Result<(), Refusal> {
    let header = request.headers.get(AUTHORIZATION);
    let given = header.and_then(|value| value.to_str().ok());
    let token = given.and_then(|text| text.strip_prefix("Bearer "));
    let known = &knobs.access_tokens;
    if known.is_empty() || token.is_some_and(|token| known.contains(token)) {
        return Ok(());
    }
    Err(Refusal::unauthenticated())
}
