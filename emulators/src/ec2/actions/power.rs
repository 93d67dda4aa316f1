//! StartInstances, StopInstances, TerminateInstances, RebootInstances.

use serde::Serialize;

use super::{Call, view};
use crate::ec2::{
    engine::Engine,
    error::Refusal,
    shapes::instance::StateChange,
    wire::{action::Action, xml::Set},
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    instances_set: Set<StateChange>,
}

/// Starts, stops or terminates.
pub(super) fn change(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.ids("InstanceId")?;
    let mode = call.mode()?;
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
    call.reply(&Reply {
        instances_set: shapes.collect(),
    })
}

pub(super) fn reboot(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.ids("InstanceId")?;
    let mode = call.mode()?;
    call.finish()?;
    engine.reboot(&ids, mode)?;
    call.success()
}
