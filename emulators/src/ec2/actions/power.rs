//! StartInstances, StopInstances, TerminateInstances, RebootInstances.
//!
//! Each applies to all named instances or to none, except as EC2 documents for protected
//! instances.

use serde::Serialize;

use super::{Call, view};
use crate::ec2::{
    engine::Engine,
    error::Refusal,
    shapes::instance::StateChange,
    wire::{action::Action, xml::Set},
};

/// The response: the states of each instance before and after the call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// One entry for each instance, in the order of the request.
    instances_set: Set<StateChange>,
}

/// Starts, stops or terminates instances.
///
/// # Errors
///
/// `MissingParameter` without ids, `InvalidInstanceID.NotFound`, `IncorrectInstanceState`,
/// `UnsupportedHibernationConfiguration` for a stop with hibernation, `OperationNotPermitted`
/// for a protected instance, and `UnauthorizedOperation` for one without the required tag.
pub(super) fn change(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.ids("InstanceId")?;
    let mode = call.mode()?;
    engine.check_permission(call.action.name(), &ids)?;
    let root = call.root();
    let changes = if call.action == Action::StartInstances {
        call.finish()?;
        engine.start(&ids, mode)?
    } else if call.action == Action::StopInstances {
        // A guest never refuses to stop here, so `Force` makes no difference.
        let _force = root.flag("Force")?;
        let hibernate = root.flag("Hibernate")?.unwrap_or(false);
        call.finish()?;
        if hibernate {
            let message = "Hibernation is not configured for these instances.";
            return Err(Refusal::client(
                "UnsupportedHibernationConfiguration",
                message,
            ));
        }
        engine.stop(&ids, mode)?
    } else {
        call.finish()?;
        engine.terminate(&ids, mode)?
    };
    let state_name = call.context.state.as_deref();
    let shapes = changes.into_iter().map(|change| StateChange {
        instance_id: change.id,
        current_state: view::state(change.after, state_name),
        previous_state: view::state(change.before, None),
    });
    call.respond(&Response {
        instances_set: shapes.collect(),
    })
}

/// Reboots running instances.
///
/// # Errors
///
/// `IncorrectInstanceState` if any of them does not run.
pub(super) fn reboot(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.ids("InstanceId")?;
    let mode = call.mode()?;
    call.finish()?;
    engine.check_permission(call.action.name(), &ids)?;
    engine.reboot(&ids, mode)?;
    call.success()
}
