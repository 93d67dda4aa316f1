//! Injects a fault into a call: into its execution, its response, or its duration.

use std::time::Duration;

use super::{
    fault::{Failure, Fault, Phase},
    lag::ReadLag,
    page::PageFault,
};
use crate::server::{Delivery, HttpResponse};

/// What the execution of a call needs to know besides its parameters: the request id, and what an
/// injected fault changes.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    /// The id of the request.
    pub request_id: String,
    /// How far the call's reads lag behind.
    pub read_lag: ReadLag,
    /// The fault of the page that the call returns.
    pub page_fault: PageFault,
    /// The state that every instance in the response has instead of its own.
    pub state: Option<String>,
    /// The errors with which the launch or the operation of the call fails; empty if it does not
    /// fail.
    pub planned_failures: Vec<Failure>,
    /// Whether the operation that the call reads has expired.
    pub operation_expired: bool,
}

/// Returns the context of a call with its fault.
pub(super) fn call_context(request_id: String, fault: Option<&Fault>) -> CallContext {
    let mut context = CallContext {
        request_id,
        ..CallContext::default()
    };
    match fault {
        Some(Fault::StaleRead) => context.read_lag = ReadLag::Maximum,
        Some(Fault::EmptyPage) => context.page_fault = PageFault::Empty,
        Some(Fault::RepeatedToken) => context.page_fault = PageFault::Repeated,
        Some(Fault::UnknownState { state }) => context.state = Some(state.clone()),
        Some(Fault::LateFailure { code, message }) => {
            context.planned_failures = vec![Failure::new(code, message)];
        }
        Some(Fault::OperationError { errors }) => context.planned_failures.clone_from(errors),
        Some(Fault::OperationExpired) => context.operation_expired = true,
        Some(
            Fault::Lost { .. }
            | Fault::Reset
            | Fault::Truncated
            | Fault::Malformed
            | Fault::Throttled { .. }
            | Fault::ServerError { .. }
            | Fault::ExpiredCredentials
            | Fault::Forbidden
            | Fault::Capacity
            | Fault::Quota
            | Fault::Hang { .. }
            | Fault::Delay { .. }
            | Fault::Refused { .. },
        )
        | None => {}
    }
    context
}

/// Sleeps if the fault delays the call in this phase.
pub(super) async fn delay(fault: Option<&Fault>, current: Phase) {
    if let Some(Fault::Delay { phase, by }) = fault {
        if *phase == current && *by > Duration::ZERO {
            tokio::time::sleep(*by).await;
        }
    }
}

/// Returns the response of a call that a fault ends before its effect, or `None`.
pub(super) fn lost_before_effect(fault: Option<&Fault>) -> Option<HttpResponse> {
    let delivery = match fault {
        Some(Fault::Lost {
            phase: Phase::Before,
        }) => Delivery::Closed,
        Some(Fault::Hang {
            phase: Phase::Before,
        }) => Delivery::Hang,
        Some(_) | None => return None,
    };
    Some(HttpResponse::new(500, "text/plain", String::new()).with_delivery(delivery))
}

/// Applies a fault to the delivery of a response.
pub(super) fn apply_delivery_fault(
    mut response: HttpResponse,
    fault: Option<&Fault>,
) -> HttpResponse {
    match fault {
        Some(Fault::Lost {
            phase: Phase::After,
        }) => response.delivery = Delivery::Closed,
        Some(Fault::Hang {
            phase: Phase::After,
        }) => response.delivery = Delivery::Hang,
        Some(Fault::Reset) => response.delivery = Delivery::Reset,
        Some(Fault::Truncated) => {
            let half = response.body.len() / 2;
            let end = (0..=half)
                .rev()
                .find(|end| response.body.is_char_boundary(*end));
            response.body.truncate(end.unwrap_or(0));
        }
        Some(Fault::Malformed) => {
            response.status = 200;
            response.content_type = "text/html";
            response.body =
                "<html><head><title>Welcome</title></head><body><p>Please log in<br></body></html>"
                    .to_owned();
        }
        Some(
            Fault::Lost {
                phase: Phase::Before,
            }
            | Fault::Hang {
                phase: Phase::Before,
            }
            | Fault::Throttled { .. }
            | Fault::ServerError { .. }
            | Fault::StaleRead
            | Fault::ExpiredCredentials
            | Fault::Forbidden
            | Fault::Capacity
            | Fault::Quota
            | Fault::EmptyPage
            | Fault::RepeatedToken
            | Fault::UnknownState { .. }
            | Fault::LateFailure { .. }
            | Fault::OperationError { .. }
            | Fault::OperationExpired
            | Fault::Delay { .. }
            | Fault::Refused { .. },
        )
        | None => {}
    }
    response
}
