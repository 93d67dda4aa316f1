//! DescribeInstances.
//!
//! Without ids it returns pages of the instances that the filters select, grouped by reservation.
//! Terminated instances are returned for `timing.terminated_visible`.

use serde::Serialize;

use super::{Call, view};
use crate::ec2::{engine::Engine, error::Refusal, shapes::instance::Reservation, wire::xml::Set};

/// The response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// The instances, grouped by the RunInstances call that launched them.
    reservation_set: Set<Reservation>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// Describes instances. The read may lag, and an injected state replaces the state names.
///
/// # Errors
///
/// `InvalidInstanceID.NotFound` if any id is missing, `InvalidParameterCombination` for ids
/// together with page parameters, `InvalidParameterValue` for an unknown filter.
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.root().list("InstanceId");
    let filters = call.filters()?;
    let paging = call.paging(engine)?;
    call.finish_read()?;
    let page = call.read_instances(engine, &ids, &filters, &paging)?;
    call.respond(&Response {
        reservation_set: view::reservations(engine, &page.items, call.context.state.as_deref())
            .into(),
        next_token: call.next_token(page.next),
    })
}
