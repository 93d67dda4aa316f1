//! Concluding from an observation that the desired state is reached, so that the monitor's transaction says so at once. Pure.
//!
//! The controller's fields keep their one writer: this is its step [`Done`](Step::Done) with the same change of the record, for the
//! case that needs no read. In every other case the controller decides when the observation wakes it.

use chrono::{DateTime, Utc};
use fleetwright::Capabilities;

use super::{ControllerPolicy, Facts, Step, dates::replace_future_dates, decide, record};
use crate::server::Server;

/// Records that the generation is applied, if the record of a server that was just observed shows it.
///
/// It leaves to the controller whatever needs more than the record: a failed call, a requested change or replacement, a machine whose
/// flavor was changed, and dates in the future.
pub(crate) fn conclude(server: &mut Server, capabilities: &Capabilities, now: DateTime<Utc>) {
    if server.observed_generation == server.generation || server.retry.is_some() {
        return;
    }
    let (Some(launch), Some(machine)) = (&server.launch, &server.machine) else {
        return;
    };
    let verbs = &capabilities.verbs;
    let is_as_launched = machine.plan_to(&server.spec, verbs).methods.is_empty()
        && server.intent.replaces <= launch.replaces
        && machine.applied.flavor == launch.spec.flavor;
    if !is_as_launched {
        return;
    }
    // What follows is the same with every policy and every scan.
    let policy = ControllerPolicy::default();
    if replace_future_dates(&mut server.clone(), &policy, now) {
        return;
    }
    let facts = Facts {
        verbs,
        usual_lag: capabilities.usual_lag(),
        scan: None,
        policy: &policy,
        refusal: None,
    };
    if decide(server, &facts, now) == Step::Done {
        record::record_done(server, verbs, None, now);
    }
}
