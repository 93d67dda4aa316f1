//! RunInstances.
//!
//! The response describes the new instances, all in one reservation and `pending`. A replay with
//! the same client token describes the first launch's instances as they are now.

use super::{Call, launch_request, view};
use crate::ec2::{
    engine::{Engine, record::Reason},
    error::Refusal,
};

/// Launches instances.
///
/// # Errors
///
/// The refusals of the parameters and of the engine: names that do not exist, exhausted quota or
/// capacity, and a client token with other parameters or with terminated instances.
pub(super) fn run(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let request = launch_request::parse(call, engine)?;
    let mode = call.mode()?;
    call.finish()?;
    let planned_failure = call.context.planned_failures.first();
    let planned_failure =
        planned_failure.map(|failure| Reason::new(&failure.code, &failure.message));
    let launched = engine.launch(&request, planned_failure.as_ref(), mode)?;
    let read: Vec<_> = launched
        .iter()
        .filter_map(|seq| Some((*seq, engine.instances.get(seq)?.current().clone())))
        .collect();
    let reservations = view::reservations(engine, &read, call.context.state.as_deref());
    // A replay whose instances have all expired does not get here: its token is spent.
    let reservation = reservations
        .into_iter()
        .next()
        .ok_or_else(Refusal::internal)?;
    call.respond(&reservation)
}
