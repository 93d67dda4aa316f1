//! Implements [`Cloud`] for Azure: parsing, execution and encoding of calls.
//!
//! Owns the parts of a response that do not depend on the operation: request ids, dates,
//! `Retry-After`, and the encoding of refusals.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{
    actions,
    engine::{Engine, external_action::ExternalAction},
    error::Refusal,
    knobs::{Knobs, RetryAfter},
    oracle::Oracle,
    wire::{
        operation::Operation,
        request::Request,
        response::{ApiResponse, JSON},
    },
};
use crate::{
    cloud::{
        Cloud, RefusalInfo,
        clock::http_date,
        emulator::Emulator,
        fault::{self, InjectedError},
        inject::CallContext,
    },
    server::{Delivery, HttpRequest, HttpResponse},
};

/// A running emulator of Azure. Dropping it closes every connection and stops it.
///
/// ```
/// use fleetwright_emulators::azure::{AzureEmulator, Knobs};
///
/// let emulator = AzureEmulator::start(Knobs::default())?;
/// assert!(emulator.endpoint().starts_with("http://127.0.0.1:"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub type AzureEmulator = Emulator<Azure>;

/// A fault, and the calls of an operation that it is injected into.
pub type FaultRule = fault::FaultRule<Operation>;

/// The type that stands for Azure in [`Emulator`] and [`Cloud`].
#[derive(Debug)]
pub enum Azure {}

impl Cloud for Azure {
    const NAME: &'static str = "azure";
    type Operation = Operation;
    type Knobs = Knobs;
    type ExternalAction = ExternalAction;
    type Refusal = Refusal;
    type Oracle = Oracle;
    type Engine = Engine;
    type Call = Request;
    type Output = ApiResponse;

    fn parse(request: &HttpRequest, engine: &Engine) -> Result<(Operation, Request), Refusal> {
        let request = Request::read(request, &engine.core.knobs)?;
        let operation = request.operation.ok_or_else(Refusal::internal)?;
        Ok((operation, request))
    }

    fn recorded_parameters(request: &Request) -> BTreeMap<String, String> {
        request.recorded_parameters()
    }

    fn execute(
        request: &Request,
        engine: &mut Engine,
        context: &CallContext,
    ) -> Result<ApiResponse, Refusal> {
        actions::execute(request, engine, context)
    }

    fn response(result: Result<ApiResponse, Refusal>, request_id: &str) -> HttpResponse {
        let response = result.unwrap_or_else(|refusal| refused(&refusal));
        let mut headers = response.headers;
        headers.push(("x-ms-request-id", request_id.to_owned()));
        headers.push(("x-ms-correlation-request-id", request_id.to_owned()));
        HttpResponse {
            status: response.status,
            content_type: response.content_type,
            headers,
            body: response.body,
            delivery: Delivery::Complete,
        }
    }

    fn retry_after(engine: &Engine, seconds: u64) -> String {
        match engine.core.knobs.retry_after {
            RetryAfter::Seconds => seconds.to_string(),
            RetryAfter::Date => {
                let then = engine.now().saturating_add(Duration::from_secs(seconds));
                http_date(engine.date(then))
            }
        }
    }

    fn date(engine: &Engine) -> Option<String> {
        Some(http_date(engine.date(engine.now())))
    }

    fn injected_refusal(_: &Self::Call, error: InjectedError<'_>, _engine: &Engine) -> Refusal {
        match error {
            InjectedError::Throttled => Refusal::throttled(),
            InjectedError::ExpiredCredentials => Refusal::unauthenticated(
                "ExpiredAuthenticationToken",
                "The access token expiry is earlier than the current time.",
            ),
            InjectedError::Forbidden => Refusal::forbidden(),
            InjectedError::Capacity => Refusal::sku_not_available("requested", "any"),
            InjectedError::Quota => Refusal::quota(),
            InjectedError::Internal => Refusal::internal(),
            InjectedError::Custom {
                status,
                code,
                message,
            } => Refusal::new(status, code.to_owned(), message),
        }
    }

    fn perform_external(
        engine: &mut Engine,
        action: ExternalAction,
    ) -> Result<Vec<String>, Refusal> {
        engine.perform(action)
    }

    fn oracle(
        engine: &Engine,
        calls: BTreeMap<String, u64>,
        unused_faults: Vec<FaultRule>,
    ) -> Oracle {
        Oracle::new(engine, calls, unused_faults)
    }

    fn describe(knobs: &Knobs) -> Value {
        json!({
            "cloud": Self::NAME,
            "locations": knobs.locations.iter().map(|it| &it.name).collect::<Vec<_>>(),
            "operations": Operation::all().map(Operation::name).collect::<Vec<_>>(),
        })
    }
}

/// Returns the document of a refusal. 401 also has `WWW-Authenticate`, and 429 the header of the
/// remaining calls, because clients look for them.
fn refused(refusal: &Refusal) -> ApiResponse {
    let mut error = json!({ "code": refusal.code, "message": refusal.message });
    if let Some(target) = &refusal.target {
        error["target"] = json!(target);
    }
    let response = ApiResponse {
        status: refusal.status,
        content_type: JSON,
        headers: Vec::new(),
        body: json!({ "error": error }).to_string(),
    };
    match refusal.status {
        401 => response.header(
            "www-authenticate",
            "Bearer authorization_uri=\"https://login.microsoftonline.com/common\", error=\"invalid_token\"",
        ),
        429 => response.header(
            "x-ms-ratelimit-remaining-resource",
            "Microsoft.Compute/HighCostGetSubscriptionMaximum;0",
        ),
        _ => response,
    }
}

impl crate::cloud::Operation for Operation {
    fn name(self) -> &'static str {
        Self::name(self)
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::from_name(name)
    }
}

impl RefusalInfo for Refusal {
    fn code(&self) -> &str {
        &self.code
    }

    fn message(&self) -> &str {
        &self.message
    }
}
