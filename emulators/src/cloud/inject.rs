//! What a fault does to a call: to its work, to its reply, to the time it takes.

use std::time::Duration;

use super::{
    fault::{Failure, Fault, Phase},
    lag::ReadLag,
    page::PageFault,
};
use crate::server::{Delivery, HttpResponse};

/// What the work of a call is told about the call that it serves.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    /// The id of the request.
    pub request_id: String,
    /// How far reads lag behind.
    pub read_lag: ReadLag,
    /// What goes wrong with a page.
    pub page_fault: PageFault,
    /// The state to show for every instance, if the cloud says something nobody knows.
    pub state: Option<String>,
    /// Why what is begun is going to fail; nothing, if it is not.
    pub planned_failures: Vec<Failure>,
    /// The operation that is asked for is not remembered.
    pub operation_expired: bool,
}

/// What a fault changes in the work of a call.
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

/// Waits where a fault delays a call.
pub(super) async fn wait(fault: Option<&Fault>, now: Phase) {
    if let Some(Fault::Delay { phase, by }) = fault {
        if *phase == now && *by > Duration::ZERO {
            tokio::time::sleep(*by).await;
        }
    }
}

/// What becomes of a call that a fault ends before its effect.
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

/// What a fault does to a reply.
pub(super) fn apply_delivery_fault(mut reply: HttpResponse, fault: Option<&Fault>) -> HttpResponse {
    match fault {
        Some(Fault::Lost {
            phase: Phase::After,
        }) => reply.delivery = Delivery::Closed,
        Some(Fault::Hang {
            phase: Phase::After,
        }) => reply.delivery = Delivery::Hang,
        Some(Fault::Reset) => reply.delivery = Delivery::Reset,
        Some(Fault::Truncated) => {
            let half = reply.body.len() / 2;
            let end = (0..=half)
                .rev()
                .find(|end| reply.body.is_char_boundary(*end));
            reply.body.truncate(end.unwrap_or(0));
        }
        Some(Fault::Malformed) => {
            reply.status = 200;
            reply.content_type = "text/html";
            reply.body =
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
    reply
}
