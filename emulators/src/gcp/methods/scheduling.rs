//! The scheduling of an instance: what spot, accelerators and confidential computing require.
//!
//! Spot and preemptible instances cannot be migrated or restarted automatically, and only spot
//! instances have a termination action. Instances with accelerators or confidential computing
//! cannot be migrated.

use serde_json::{Map, Value};

use crate::gcp::{
    engine::record::{Scheduling, TerminationAction},
    error::Refusal,
    wire::body::Fields as _,
};

/// Parses the scheduling of an instance's body. `at` is the path of the properties.
///
/// Defaults: on demand, migrated and restarted; for spot, neither, and stopped at a preemption.
///
/// # Errors
///
/// 400 `invalid` for a combination that Compute Engine does not allow.
pub(super) fn read(body: &Map<String, Value>, at: &str) -> Result<Scheduling, Refusal> {
    let none = Map::new();
    let given = body.object("scheduling").unwrap_or(&none);
    let spot = given.text("provisioningModel") == Some("SPOT");
    let preemptible = given.flag("preemptible").unwrap_or(false);
    let interrupted = spot || preemptible;
    let pinned = !body.objects("guestAccelerators").is_empty() || is_confidential(body);
    let migrates = match given.text("onHostMaintenance") {
        Some(word) => word == "MIGRATE",
        None => !interrupted,
    };
    if migrates && (interrupted || pinned) {
        let field = format!("{at}.scheduling.onHostMaintenance");
        let problem = "It must be TERMINATE for spot instances and for instances with accelerators or confidential \
                   computing.";
        return Err(Refusal::invalid(&field, "MIGRATE", problem));
    }
    let automatic_restart = given.flag("automaticRestart").unwrap_or(!interrupted);
    if automatic_restart && interrupted {
        let field = format!("{at}.scheduling.automaticRestart");
        let problem = "It must be false for spot instances.";
        return Err(Refusal::invalid(&field, "true", problem));
    }
    let termination = match given.text("instanceTerminationAction") {
        Some("DELETE") => Some(TerminationAction::Delete),
        Some("STOP") => Some(TerminationAction::Stop),
        Some(_) | None => spot.then_some(TerminationAction::Stop),
    };
    if termination.is_some() && !spot {
        let field = format!("{at}.scheduling.instanceTerminationAction");
        let given = given.text("instanceTerminationAction").unwrap_or_default();
        let problem = "It can only be given for spot instances.";
        return Err(Refusal::invalid(&field, given, problem));
    }
    Ok(Scheduling {
        spot,
        preemptible,
        automatic_restart,
        migrates,
        termination,
    })
}

/// Returns whether the body requests confidential computing, in the old or the new form.
fn is_confidential(body: &Map<String, Value>) -> bool {
    let config = body.object("confidentialInstanceConfig");
    config.is_some_and(|config| {
        config.flag("enableConfidentialCompute").unwrap_or(false)
            || config.text("confidentialInstanceType").is_some()
    })
}
