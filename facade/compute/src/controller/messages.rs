//! What tenants read about changes of their machines and about phases.

use fleetwright_region::server::{ChangeMethod, Phase, Plan};

use crate::loss::field_name;

/// What is lost with a machine.
pub(super) const ALL_LOST: &str = "the data on its root disk and its addresses are lost";

/// The changed fields of a plan, each with its change method.
pub(super) fn changes(plan: &Plan) -> String {
    let changes = plan.methods.iter().map(|(field, method)| {
        let how = match method {
            ChangeMethod::Retag => "changed in place",
            ChangeMethod::NextLaunch => "takes effect at the next launch",
            ChangeMethod::Resize => "the machine is stopped, resized and started",
            ChangeMethod::Reimage => "the machine is reinstalled with another image",
            ChangeMethod::Replace => "the machine is replaced",
        };
        format!("{}: {how}", field_name(*field))
    });
    changes.collect::<Vec<_>>().join("; ")
}

/// The message of an event about a phase.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "the instance waits for its launch",
        Phase::Building => "the instance is being launched",
        Phase::Running => "the instance is running",
        Phase::Stopping => "the instance is being stopped",
        Phase::Stopped => "the instance is stopped",
        Phase::Replacing => "the machine is being replaced",
        Phase::Deleting => "the instance is being deleted",
        Phase::Failed => "the instance cannot be launched as requested",
        Phase::Lost => {
            "the machine no longer exists; the data on its root disk and its addresses are lost"
        }
    }
}
