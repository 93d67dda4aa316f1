//! What a fault does to a call: to its work, to its reply, to the time it takes.

use std::time::Duration;

use super::{
    fault::{Failure, Fault, Phase},
    lag::Look,
    page::Trick,
};
use crate::server::{Delivery, Outgoing};

/// What the work of a call is told about the call that it serves.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// The id of the request.
    pub request_id: String,
    /// How far reads lag behind.
    pub look: Look,
    /// What goes wrong with a page.
    pub trick: Trick,
    /// The state to show for every instance, if the cloud says something nobody knows.
    pub state: Option<String>,
    /// Why what is begun is going to fail; nothing, if it is not.
    pub doom: Vec<Failure>,
    /// The operation that is asked for is not remembered.
    pub forgotten: bool,
}

/// What a fault changes in the work of a call.
pub(super) fn served(request_id: String, fault: Option<&Fault>) -> Served {
    let mut served = Served {
        request_id,
        ..Served::default()
    };
    match fault {
        Some(Fault::StaleRead) => served.look = Look::Stale,
        Some(Fault::EmptyPage) => served.trick = Trick::Empty,
        Some(Fault::RepeatedToken) => served.trick = Trick::Repeated,
        Some(Fault::UnknownState { state }) => served.state = Some(state.clone()),
        Some(Fault::FailsLate { code, message }) => {
            served.doom = vec![Failure::new(code, message)];
        }
        Some(Fault::OperationError { errors }) => served.doom.clone_from(errors),
        Some(Fault::OperationExpired) => served.forgotten = true,
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
    served
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
pub(super) fn undone(fault: Option<&Fault>) -> Option<Outgoing> {
    let delivery = match fault {
        Some(Fault::Lost {
            phase: Phase::Before,
        }) => Delivery::Nothing,
        Some(Fault::Hang {
            phase: Phase::Before,
        }) => Delivery::Never,
        Some(_) | None => return None,
    };
    Some(Outgoing {
        status: 500,
        content_type: "text/plain",
        headers: Vec::new(),
        body: String::new(),
        delivery,
    })
}

/// What a fault does to a reply.
pub(super) fn delivered(mut reply: Outgoing, fault: Option<&Fault>) -> Outgoing {
    match fault {
        Some(Fault::Lost {
            phase: Phase::After,
        }) => reply.delivery = Delivery::Nothing,
        Some(Fault::Hang {
            phase: Phase::After,
        }) => reply.delivery = Delivery::Never,
        Some(Fault::Reset) => reply.delivery = Delivery::Half,
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
            | Fault::FailsLate { .. }
            | Fault::OperationError { .. }
            | Fault::OperationExpired
            | Fault::Delay { .. }
            | Fault::Refused { .. },
        )
        | None => {}
    }
    reply
}
