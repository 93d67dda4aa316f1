//! DescribeInstances.

use serde::Serialize;

use super::{Call, view};
use crate::ec2::{engine::Engine, error::Refusal, shapes::instance::Reservation, wire::xml::Set};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    reservation_set: Set<Reservation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.root().list("InstanceId");
    let filters = call.filters()?;
    let (paging, paged) = call.paging(engine)?;
    call.finish_read()?;
    let (read, next) = if ids.is_empty() {
        let page = engine.instances_page(&filters, &paging, call.context.read_lag)?;
        (page.items, page.next)
    } else if paged {
        let message = "The parameter instancesSet cannot be used with the parameter maxResults";
        return Err(Refusal::combination(message));
    } else {
        (
            engine.instances_by_id(&ids, &filters, call.context.read_lag)?,
            None,
        )
    };
    call.reply(&Reply {
        reservation_set: view::reservations(engine, &read, call.context.state.as_deref()).into(),
        next_token: call.next_token(next),
    })
}
