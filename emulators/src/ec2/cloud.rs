//! Implements [`Cloud`] for EC2: parsing, execution and encoding of calls.
//!
//! It also serves the one action of STS that clients of EC2 need, `GetCallerIdentity`, at the same endpoint.
//!
//! A call is parsed in this order: the HTTP method, the size and completeness of the body (413,
//! 408), the parameters, the signature, the action and the version. The action reads the other
//! parameters itself.

use std::{collections::BTreeMap, num::NonZeroU32};

use hyper::Method;
use serde_json::{Value, json};

use super::{
    actions,
    engine::{Engine, external_action::ExternalAction},
    error::Refusal,
    knobs::Knobs,
    oracle::Oracle,
    wire::{action::Action, known, params::Params, service::Service, sigv4},
};
use crate::{
    cloud::{
        Cloud, Operation, RefusalInfo,
        emulator::Emulator,
        fault::{self, Fault, InjectedError},
        inject::CallContext,
    },
    server::{BodyError, HttpRequest, HttpResponse},
};

/// A running emulator of EC2. Dropping it closes every connection and stops it.
///
/// Start one with `Ec2Emulator::start` and point a client at its `endpoint()`.
pub type Ec2Emulator = Emulator<Ec2>;

/// A fault, and the calls of an action that it is injected into.
pub type FaultRule = fault::FaultRule<Action>;

/// The type that stands for EC2 in [`Emulator`] and [`Cloud`]. It has no values.
#[derive(Debug)]
pub enum Ec2 {}

impl Cloud for Ec2 {
    const NAME: &'static str = "ec2";
    type Operation = Action;
    type Knobs = Knobs;
    type ExternalAction = ExternalAction;
    type Refusal = Refusal;
    type Oracle = Oracle;
    type Engine = Engine;
    type Call = (Action, Params);
    type Output = String;

    /// Finds the action of a request and checks body, signature and version.
    fn parse(request: &HttpRequest, engine: &Engine) -> Result<(Action, Self::Call), Refusal> {
        let (action, params) = parse_call(request, &engine.core.knobs)?;
        Ok((action, (action, params)))
    }

    /// Returns the action that a request names, also one that is not emulated, and its parameters.
    fn name_request(request: &HttpRequest) -> (String, BTreeMap<String, String>) {
        let body = request.body.as_deref().unwrap_or_default();
        let params = Params::parse(request.uri.query().unwrap_or_default(), body);
        let params = params.unwrap_or_default();
        let name = params.peek("Action").map_or_else(
            || format!("{} {}", request.method, request.uri.path()),
            str::to_owned,
        );
        (name, params.recorded_parameters())
    }

    /// Returns all parameters except secrets, for the call record.
    fn recorded_parameters((_, params): &Self::Call) -> BTreeMap<String, String> {
        params.recorded_parameters()
    }

    /// Returns how many resources a call is about: the `MaxCount` of a launch, or the number of
    /// ids, at least 1.
    ///
    /// Token buckets charge a call for this number.
    fn resource_count((_, params): &Self::Call) -> NonZeroU32 {
        let requested = params.peek("MaxCount").and_then(|count| count.parse().ok());
        let id_count = || {
            ["InstanceId", "ResourceId"]
                .into_iter()
                .map(|name| params.count(name))
                .sum::<u32>()
        };
        NonZeroU32::new(requested.unwrap_or_else(id_count)).unwrap_or(NonZeroU32::MIN)
    }

    /// Executes a call on the engine.
    fn execute(
        (action, params): &Self::Call,
        engine: &mut Engine,
        context: &CallContext,
    ) -> Result<String, Refusal> {
        actions::execute(*action, params, engine, context)
    }

    /// Encodes the document of a call, or the error envelope with the refusal's status, and the
    /// request id in a header.
    fn response(result: Result<String, Refusal>, request_id: &str) -> HttpResponse {
        let (status, body) = match result {
            Ok(body) => (200, body),
            Err(refusal) => (
                refusal.status,
                refusal.service.document(&refusal, request_id),
            ),
        };
        HttpResponse::new(status, "text/xml;charset=UTF-8", body)
            .with_header("x-amzn-requestid", request_id)
    }

    /// Returns whether EC2 can have a fault. It has no operations, so faults of those do not
    /// apply.
    fn supports_fault(fault: &Fault) -> bool {
        !fault.needs_operations()
    }

    /// Binds the client token of a launch that an injected fault refuses for lack of capacity or quota.
    fn record_refusal(
        (action, params): &Self::Call,
        engine: &mut Engine,
        error: InjectedError<'_>,
    ) {
        let is_shortage = matches!(error, InjectedError::Capacity | InjectedError::Quota);
        if is_shortage && *action == Action::RunInstances {
            actions::record_refused_launch(params, engine);
        }
    }

    /// Returns the error that EC2 or STS would send for an injected fault.
    fn injected_refusal(
        (action, _): &Self::Call,
        error: InjectedError<'_>,
        _engine: &Engine,
    ) -> Refusal {
        let refusal = match error {
            InjectedError::Throttled => Refusal::throttled(),
            InjectedError::ExpiredCredentials => Refusal::expired(),
            InjectedError::Forbidden => Refusal::unauthorized(),
            InjectedError::Capacity => Refusal::capacity("requested", "any"),
            InjectedError::Quota => Refusal::vcpu_quota(0),
            InjectedError::Internal => Refusal::internal(),
            InjectedError::Custom {
                status,
                code,
                message,
            } => Refusal::new(status, code.to_owned(), message),
        };
        action.service().refusal(refusal)
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

    /// Returns the document of the control endpoint: name, region, actions.
    fn describe(knobs: &Knobs) -> Value {
        json!({
            "cloud": Self::NAME,
            "region": knobs.region,
            "actions": actions_of(Service::Ec2),
            "sts_actions": actions_of(Service::Sts),
        })
    }
}

/// Returns the names of the actions of a service.
fn actions_of(service: Service) -> Vec<&'static str> {
    let actions = Action::ALL.into_iter();
    let actions = actions.filter(|action| action.service() == service);
    actions.map(Action::name).collect()
}

impl Operation for Action {
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

/// Parses a request up to the parameters of its action.
///
/// # Errors
///
/// `InvalidRequest` for another HTTP method than GET and POST, 413 or 408 for the body, the
/// refusals of the signature, `MissingAction`, `UnsupportedOperation` for an action that EC2 has and the emulator has not,
/// `InvalidAction` for any other one, `MissingParameter` without a version, and `NoSuchVersion` for another one than the
/// service's.
fn parse_call(request: &HttpRequest, knobs: &Knobs) -> Result<(Action, Params), Refusal> {
    if request.method != Method::GET && request.method != Method::POST {
        let message = format!("The HTTP method {} is not supported.", request.method);
        return Err(Refusal::client("InvalidRequest", message));
    }
    let body = request.body.as_ref().map_err(|error| match error {
        BodyError::TooLarge => {
            Refusal::new(413, "RequestEntityTooLarge", "The request is too large.")
        }
        BodyError::Incomplete => {
            Refusal::new(408, "RequestTimeout", "The request did not arrive in time.")
        }
    })?;
    let params = Params::parse(request.uri.query().unwrap_or_default(), body)?;
    let service = params.peek("Action").and_then(Action::from_name);
    let service = service.map_or(Service::Ec2, Action::service);
    match check_call(request, &params, service, knobs) {
        Ok(action) => Ok((action, params)),
        Err(refusal) => Err(service.refusal(refusal)),
    }
}

/// Checks the signature, the action and the version of a call of a service.
fn check_call(
    request: &HttpRequest,
    params: &Params,
    service: Service,
    knobs: &Knobs,
) -> Result<Action, Refusal> {
    let name = params.peek("Action");
    let unknown = name.filter(|name| Action::from_name(name).is_none());
    if let Some(name) = unknown.filter(|name| known::is_action(name)) {
        return Err(not_emulated(name));
    }
    sigv4::check(&request.headers, params, service.name(), knobs)?;
    let Some(name) = name else {
        let message = "The request is missing an action.";
        return Err(Refusal::client("MissingAction", message));
    };
    let Some(action) = Action::from_name(name) else {
        let message = format!(
            "The action {name} is not valid for this web service. {}",
            emulated_actions()
        );
        return Err(Refusal::client("InvalidAction", message));
    };
    match params.peek("Version") {
        Some(version) if version == service.version() => Ok(action),
        None => Err(Refusal::missing("Version")),
        Some(other) => {
            let message = format!(
                "The requested version ({other}) of service {} does not exist",
                service.long_name()
            );
            Err(Refusal::client("NoSuchVersion", message))
        }
    }
}

/// Refuses an action that EC2 has, so that it cannot be taken for one about something that does not exist.
fn not_emulated(name: &str) -> Refusal {
    Refusal::unsupported(format!(
        "The action {name} is not emulated. {}",
        emulated_actions()
    ))
}

/// Returns a sentence with the actions that the emulator has.
fn emulated_actions() -> String {
    let names = [actions_of(Service::Ec2), actions_of(Service::Sts)].concat();
    format!("The emulator has: {}.", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(text: &str) -> u32 {
        let params = Params::parse(text, b"").unwrap();
        Ec2::resource_count(&(Action::RunInstances, params)).get()
    }

    #[test]
    fn resource_count_is_what_a_call_creates_or_names() {
        assert_eq!(resources("MaxCount=3"), 3);
        assert_eq!(resources("InstanceId.1=a&InstanceId.2=b"), 2);
        assert_eq!(resources("ResourceId.1=a"), 1);
        assert_eq!(resources(""), 1);
    }
}
