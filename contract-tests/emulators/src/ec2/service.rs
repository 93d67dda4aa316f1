//! A request from its first byte to its last: signature, fault, throttling, action, delivery.
//!
//! Owns the order of these. What is right to answer is the actions' to know, and what a fault does to it
//! is `strike`'s.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleetwright_chaos::{Clock, FaultPlan};
use hyper::Method;

use super::{
    actions,
    calls::{CallRecord, Calls},
    clock::SkippingClock,
    control,
    engine::World,
    error::Refusal,
    fault::{Fault, Phase},
    knobs::Knobs,
    strike::{delivered, lost, served, wait},
    throttle::Buckets,
    wire::{VERSION, action::Action, params::Params, sigv4, xml},
};
use crate::server::{Delivery, Handler, Handling, Incoming, Outgoing, Unreadable};

/// Everything behind the socket.
#[derive(Debug)]
pub(crate) struct Service {
    pub(super) clock: Arc<SkippingClock>,
    pub(super) faults: FaultPlan<Fault>,
    state: Mutex<Inner>,
}

/// What changes with every call.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) world: World,
    pub(super) calls: Calls,
    pub(super) buckets: Buckets,
}

impl Service {
    pub(crate) fn new(knobs: Knobs, clock: Arc<dyn Clock>) -> Self {
        let clock = Arc::new(SkippingClock::new(clock));
        let inner = Inner::new(knobs, &clock);
        Self {
            clock,
            faults: FaultPlan::new(),
            state: Mutex::new(inner),
        }
    }

    /// The state, with everything done that is due.
    pub(super) fn state(&self) -> MutexGuard<'_, Inner> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.world.catch_up();
        state
    }

    async fn serve(self: Arc<Self>, request: Incoming) -> Outgoing {
        if control::is_control(&request) {
            return control::handle(&self, &request);
        }
        let (action, params) = match self.prepare(&request) {
            Ok(prepared) => prepared,
            Err(refusal) => {
                let request_id = self.state().world.request_id();
                return document(Err(refusal), &request_id);
            }
        };
        let fault = self.faults.strike(action.name());
        self.state().calls.count(action);
        wait(fault.as_ref(), Phase::Before).await;
        let before = match fault {
            Some(Fault::Lost {
                phase: Phase::Before,
            }) => Some(Delivery::Nothing),
            Some(Fault::Hang {
                phase: Phase::Before,
            }) => Some(Delivery::Never),
            Some(_) | None => None,
        };
        if let Some(delivery) = before {
            self.keep_lost(action, &params, fault.as_ref());
            return lost(delivery);
        }
        let reply = self.act(action, &params, fault.as_ref());
        wait(fault.as_ref(), Phase::After).await;
        delivered(reply, fault.as_ref())
    }

    /// Everything that is refused before it counts as a call.
    fn prepare(&self, request: &Incoming) -> Result<(Action, Params), Refusal> {
        if request.method != Method::GET && request.method != Method::POST {
            let message = format!("The HTTP method {} is not supported.", request.method);
            return Err(Refusal::client("InvalidRequest", message));
        }
        let body = request
            .body
            .as_ref()
            .map_err(|unreadable| match unreadable {
                Unreadable::TooLarge => {
                    Refusal::new(413, "RequestEntityTooLarge", "The request is too large.")
                }
                Unreadable::Broken => {
                    Refusal::new(408, "RequestTimeout", "The request did not arrive in time.")
                }
            })?;
        let params = Params::parse(request.uri.query().unwrap_or_default(), body)?;
        sigv4::check(&request.headers, &params, &self.state().world.knobs)?;
        let Some(name) = params.peek("Action") else {
            let message = "The request is missing an action.";
            return Err(Refusal::client("MissingAction", message));
        };
        let Some(action) = Action::named(name) else {
            let message = format!("The action {name} is not valid for this web service.");
            return Err(Refusal::client("InvalidAction", message));
        };
        match params.peek("Version") {
            Some(VERSION) => Ok((action, params)),
            None => Err(Refusal::missing("Version")),
            Some(other) => {
                let message =
                    format!("The requested version ({other}) of service AmazonEC2 does not exist");
                Err(Refusal::client("NoSuchVersion", message))
            }
        }
    }

    /// Keeps the record of a call that was lost before it had an effect.
    fn keep_lost(&self, action: Action, params: &Params, fault: Option<&Fault>) {
        let mut state = self.state();
        let request_id = state.world.request_id();
        state.calls.keep(record(action, params, request_id, fault));
    }

    /// Carries a call out, as far as its fault lets it, and keeps its record.
    fn act(&self, action: Action, params: &Params, fault: Option<&Fault>) -> Outgoing {
        let mut state = self.state();
        let Inner {
            world,
            calls,
            buckets,
        } = &mut *state;
        let served = served(world.request_id(), fault);
        let done = match fault.and_then(Fault::refusal) {
            Some(refusal) => Err(refusal),
            None => buckets
                .take(action, params)
                .and_then(|()| actions::act(action, params, world, &served)),
        };
        let done = match fault {
            Some(Fault::ServerError {
                phase: Phase::After,
            }) => Err(Refusal::internal()),
            Some(_) | None => done,
        };
        let code = done
            .as_ref()
            .err()
            .map(|refusal| refusal.code.clone().into_owned());
        let reply = document(done, &served.request_id);
        let mut kept = record(action, params, served.request_id, fault);
        (kept.status, kept.code) = (Some(reply.status), code);
        calls.keep(kept);
        reply
    }
}

impl Inner {
    pub(super) fn new(knobs: Knobs, clock: &Arc<SkippingClock>) -> Self {
        let clock: Arc<dyn Clock> = clock.clone();
        Self {
            buckets: Buckets::new(&knobs.throttle, &clock),
            calls: Calls::default(),
            world: World::new(knobs, clock),
        }
    }
}

impl Handler for Service {
    fn handle(self: Arc<Self>, request: Incoming) -> Handling {
        Box::pin(self.serve(request))
    }
}

/// The record of a call, without what it came to.
fn record(
    action: Action,
    params: &Params,
    request_id: String,
    fault: Option<&Fault>,
) -> CallRecord {
    CallRecord {
        operation: action.name().to_owned(),
        parameters: params.shown(),
        request_id,
        status: None,
        code: None,
        fault: fault.map(|fault| format!("{fault:?}")),
    }
}

fn document(done: Result<String, Refusal>, request_id: &str) -> Outgoing {
    let (status, body) = match done {
        Ok(body) => (200, body),
        Err(refusal) => (refusal.status, xml::refusal(&refusal, request_id)),
    };
    Outgoing {
        status,
        content_type: "text/xml;charset=UTF-8",
        headers: vec![("x-amzn-requestid", request_id.to_owned())],
        body,
        delivery: Delivery::Whole,
    }
}
