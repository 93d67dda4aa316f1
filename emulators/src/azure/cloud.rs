//! Azure as the shared machinery sees it: token, path, document, operation.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{
    actions,
    engine::{World, operator::Act},
    error::Refusal,
    knobs::{Knobs, RetryAfter},
    oracle::Oracle,
    wire::{
        answer::{Answer, JSON},
        operation::Operation,
        request::Request,
    },
};
use crate::{
    cloud::{
        Cloud, Refused,
        emulator::Emulator,
        fault::{self, Fault, StandIn},
        strike::Served,
    },
    server::{Delivery, Incoming, Outgoing},
};

/// An Azure on a socket of this process. Dropping it closes every connection and stops it.
pub type AzureEmulator = Emulator<Azure>;

/// A fault and the calls of an operation that it strikes, as the control endpoint reads it.
pub type FaultRule = fault::FaultRule<Operation>;

/// Azure, among the clouds that can be emulated.
#[derive(Debug)]
pub enum Azure {}

impl Cloud for Azure {
    const NAME: &'static str = "azure";
    type Operation = Operation;
    type Knobs = Knobs;
    type Act = Act;
    type Refusal = Refusal;
    type Oracle = Oracle;
    type World = World;
    type Call = Request;
    type Answer = Answer;

    fn prepare(request: &Incoming, world: &World) -> Result<(Operation, Request), Refusal> {
        let request = Request::read(request, &world.knobs)?;
        let operation = request.operation.ok_or_else(Refusal::internal)?;
        Ok((operation, request))
    }

    fn shown(request: &Request) -> BTreeMap<String, String> {
        request.shown()
    }

    fn resources(_request: &Request) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    fn act(request: &Request, world: &mut World, served: &Served) -> Result<Answer, Refusal> {
        actions::act(request, world, served)
    }

    fn reply(done: Result<Answer, Refusal>, request_id: &str) -> Outgoing {
        let answer = done.unwrap_or_else(|refusal| refused(&refusal));
        let mut headers = answer.headers;
        headers.push(("x-ms-request-id", request_id.to_owned()));
        headers.push(("x-ms-correlation-request-id", request_id.to_owned()));
        Outgoing {
            status: answer.status,
            content_type: answer.content_type,
            headers,
            body: answer.body,
            delivery: Delivery::Whole,
        }
    }

    fn retry_after(world: &World, seconds: u64) -> String {
        match world.knobs.retry_after {
            RetryAfter::Seconds => seconds.to_string(),
            RetryAfter::Date => {
                let then = world.now().saturating_add(Duration::from_secs(seconds));
                http_date(world.date(then))
            }
        }
    }

    fn date(world: &World) -> Option<String> {
        Some(http_date(world.date(world.now())))
    }

    fn can(_fault: &Fault) -> bool {
        true
    }

    fn refuse(why: StandIn<'_>, _world: &World) -> Refusal {
        match why {
            StandIn::Throttled => Refusal::throttled(),
            StandIn::Expired => Refusal::unauthenticated(
                "ExpiredAuthenticationToken",
                "The access token expiry is earlier than the current time.",
            ),
            StandIn::Forbidden => Refusal::forbidden(),
            StandIn::Capacity => Refusal::no_sku("requested", "any"),
            StandIn::Quota => Refusal::quota(),
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
            "locations": knobs.locations.iter().map(|it| &it.name).collect::<Vec<_>>(),
            "operations": Operation::all().map(Operation::name).collect::<Vec<_>>(),
        })
    }
}

fn http_date(date: DateTime<Utc>) -> String {
    date.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// The document of a refusal, with what a client may look for beside it.
fn refused(refusal: &Refusal) -> Answer {
    let mut error = json!({ "code": refusal.code, "message": refusal.message });
    if let Some(target) = &refusal.target {
        error["target"] = json!(target);
    }
    let answer = Answer {
        status: refusal.status,
        content_type: JSON,
        headers: Vec::new(),
        body: json!({ "error": error }).to_string(),
    };
    match refusal.status {
        401 => answer.header(
            "www-authenticate",
            "Bearer authorization_uri=\"https://login.microsoftonline.com/common\", error=\"invalid_token\"",
        ),
        429 => answer.header(
            "x-ms-ratelimit-remaining-resource",
            "Microsoft.Compute/HighCostGetSubscriptionMaximum;0",
        ),
        _ => answer,
    }
}

impl crate::cloud::Operation for Operation {
    fn name(self) -> &'static str {
        Self::name(self)
    }

    fn named(name: &str) -> Option<Self> {
        Self::named(name)
    }
}

impl Refused for Refusal {
    fn code(&self) -> &str {
        &self.code
    }

    fn message(&self) -> &str {
        &self.message
    }
}
