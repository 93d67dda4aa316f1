//! Implements [`Cloud`] for Compute Engine: parsing, execution and encoding of calls.
//!
//! A call is parsed in this order: the path (404 `notFound`), the access token (401 `authError`),
//! the size and completeness of the body (413, 408), and the query (400). The method parses the
//! body itself.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::{
    engine::{Engine, external_action::ExternalAction},
    error::Refusal,
    knobs::Knobs,
    methods::{self, Call},
    oracle::Oracle,
    wire::{body::Fields as _, method::Method, query::Query, route},
};
use crate::{
    cloud::{
        Cloud, Operation, RefusalInfo,
        clock::http_date,
        emulator::Emulator,
        fault::{self, InjectedError},
        inject::CallContext,
    },
    server::{BodyError, HttpRequest, HttpResponse},
};

/// A running emulator of Compute Engine. Dropping it closes every connection and stops it.
///
/// Start one with `GcpEmulator::start` and point a client at its `endpoint()`.
pub type GcpEmulator = Emulator<Gcp>;

/// A fault, and the calls of a method that it is injected into.
pub type FaultRule = fault::FaultRule<Method>;

/// The type that stands for Compute Engine in [`Emulator`] and [`Cloud`]. It has no values.
#[derive(Debug)]
pub enum Gcp {}

impl Cloud for Gcp {
    const NAME: &'static str = "gcp";
    type Operation = Method;
    type Knobs = Knobs;
    type ExternalAction = ExternalAction;
    type Refusal = Refusal;
    type Oracle = Oracle;
    type Engine = Engine;
    type Call = Call;
    type Output = String;

    /// Finds the method of a request and checks token, body and query.
    fn parse(request: &HttpRequest, engine: &Engine) -> Result<(Method, Call), Refusal> {
        let call = parse_call(request, &engine.core.knobs)?;
        Ok((call.method, call))
    }

    /// Returns path, query and body fields by name, for the call record.
    fn recorded_parameters(call: &Call) -> BTreeMap<String, String> {
        call.recorded_parameters()
    }

    /// Returns how many resources a call is about: the `count` of a bulkInsert, else 1.
    ///
    /// Token buckets charge a call for this number.
    fn resource_count(call: &Call) -> NonZeroU32 {
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

    /// Returns how long `operations.wait` still waits.
    fn remaining_wait(call: &Call, engine: &Engine, since: Duration) -> Option<Duration> {
        methods::remaining_wait(call, engine, since)
    }

    /// Executes a call on the engine.
    fn execute(call: &Call, engine: &mut Engine, context: &CallContext) -> Result<String, Refusal> {
        methods::execute(call, engine, context)
    }

    /// Encodes the document of a call, or the error envelope with the refusal's status.
    fn response(result: Result<String, Refusal>, _request_id: &str) -> HttpResponse {
        let (status, body) = match result {
            Ok(body) => (200, body),
            Err(refusal) => (refusal.status, refusal.document().to_string()),
        };
        HttpResponse::new(status, "application/json; charset=UTF-8", body)
            .with_header("vary", "Origin, X-Origin, Referer")
    }

    /// Returns the cloud's own date, by which clients correct their clock.
    fn date(engine: &Engine) -> Option<String> {
        Some(http_date(engine.calendar(engine.now())))
    }

    /// Returns the error that Compute Engine would send for an injected fault.
    ///
    /// The status of a throttled call is the knob `throttle_status`.
    fn injected_refusal(_: &Self::Call, error: InjectedError<'_>, engine: &Engine) -> Refusal {
        match error {
            InjectedError::Throttled => Refusal::throttled(engine.core.knobs.throttle_status),
            InjectedError::ExpiredCredentials => Refusal::unauthenticated(),
            InjectedError::Forbidden => Refusal::forbidden("projects/any"),
            InjectedError::Capacity => Refusal::stockout("projects/any/zones/any"),
            InjectedError::Quota => Refusal::quota("CPUS", 0, "any"),
            InjectedError::Internal => Refusal::internal(),
            InjectedError::Custom {
                status,
                code,
                message,
            } => Refusal::new(status, code.to_owned(), message),
        }
    }

    /// Performs an external action and returns the ids of its resources.
    fn perform_external(
        engine: &mut Engine,
        action: ExternalAction,
    ) -> Result<Vec<String>, Refusal> {
        engine.perform(action)
    }

    /// Returns the true state.
    fn oracle(
        engine: &Engine,
        calls: BTreeMap<String, u64>,
        unused_faults: Vec<FaultRule>,
    ) -> Oracle {
        Oracle::new(engine, calls, unused_faults)
    }

    /// Returns the document of the control endpoint: name, zones, methods.
    fn describe(knobs: &Knobs) -> Value {
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

    fn from_name(name: &str) -> Option<Self> {
        Self::from_name(name)
    }
}

impl RefusalInfo for Refusal {
    fn code(&self) -> &str {
        &self.reason
    }

    fn message(&self) -> &str {
        &self.message
    }
}

/// Parses a request up to its body.
///
/// # Errors
///
/// 404 for an unknown path, 401 for an unknown token, 413 for a body that is too large, 408 for
/// one that did not arrive completely, 400 for an unknown query parameter.
fn parse_call(request: &HttpRequest, knobs: &Knobs) -> Result<Call, Refusal> {
    let (method, target) = route::find(&request.method, request.uri.path())?;
    check_token(request, knobs)?;
    let body = request.body.as_ref().map_err(|error| match error {
        BodyError::TooLarge => {
            let message = "Request payload size exceeds the limit.";
            Refusal::new(413, "uploadTooLarge", message)
        }
        BodyError::Incomplete => {
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

/// Refuses unknown bearer tokens with 401, if the knobs name any; otherwise accepts every request.
fn check_token(request: &HttpRequest, knobs: &Knobs) -> Result<(), Refusal> {
    let header = request.headers.get(AUTHORIZATION);
    let given = header.and_then(|value| value.to_str().ok());
    let token = given.and_then(|text| text.strip_prefix("Bearer "));
    let known = &knobs.access_tokens;
    if known.is_empty() || token.is_some_and(|token| known.contains(token)) {
        return Ok(());
    }
    Err(Refusal::unauthenticated())
}
