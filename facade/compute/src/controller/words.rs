//! What is done to a machine and what is lost by it, in words for its tenant.

use fleetwright_region::server::{ChangeMethod, Phase, Plan};

use crate::lost::name;

/// What another machine costs.
pub(super) const ALL_LOST: &str = "everything on its root disk and its addresses are lost";

/// Which fields become something else, and how.
pub(super) fn changes(plan: &Plan) -> String {
    let changes = plan.methods.iter().map(|(field, way)| {
        let how = match way {
            ChangeMethod::Retag => "changed in place",
            ChangeMethod::NextLaunch => "takes effect with the next launch",
            ChangeMethod::Resize => "the machine is stopped, resized and started",
            ChangeMethod::Reimage => "the machine gets another image",
            ChangeMethod::Replace => "the machine is replaced",
        };
        format!("{}: {how}", name(*field))
    });
    changes.collect::<Vec<_>>().join("; ")
}

/// What an event says of a phase.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "it waits to be launched",
        Phase::Building => "it is being launched",
        Phase::Running => "it runs",
        Phase::Stopping => "it is shutting down",
        Phase::Stopped => "it is stopped",
        Phase::Replacing => "its machine is being exchanged for another",
        Phase::Deleting => "it is being deleted",
        Phase::Failed => "it cannot be made as it is asked for",
        Phase::Lost => "its machine is gone, and its disk with it",
    }
}
