//! The part of the decision that keeps the machine: power first, then changes of the spec. Pure.
//!
//! Owns the order of the steps on a machine that runs or is stopped. A change that cannot be applied never delays a start, a stop or a
//! reboot.

use chrono::{DateTime, Utc};
use fleetwright::{CloudInstanceState, OptionalVerb};
use fleetwright_runtime::clock::later;

use super::{Facts, Step, Wait};
use crate::server::{
    ChangeMethod, Drift, Machine, Observed, Plan, Power, Presence, RefusedValue, Server,
};

/// Decides on a machine that is kept.
///
/// In this order: a requested stop; a start or a reboot, if no change that can be applied stops the machine anyway; tags; the image; the
/// size, for which the machine is stopped; the start after that; and the report of a change that cannot be applied.
pub(super) fn decide_in_place(
    server: &Server,
    machine: &Machine,
    seen: &Observed,
    plan: &Plan,
    replace_requested: bool,
    facts: &Facts<'_>,
    now: DateTime<Utc>,
) -> Step {
    use CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated, Terminating};
    if seen.presence != Presence::Shown {
        return Step::Wait(Wait::Observation, None);
    }
    match seen.state {
        Pending | Stopping => return Step::Wait(Wait::Cloud, None),
        Terminating | Terminated => return Step::Wait(Wait::Termination, None),
        Running | Stopped => {}
    }
    let runs = seen.state == Running;
    if runs && server.intent.power == Power::Stopped {
        return Step::Stop;
    }
    let pending = PendingChange::of(server, machine, plan, runs, facts, now);
    let restarts_it = pending.resize || (pending.reimage && !runs);
    let power = power_step(server, machine, runs).filter(|_| !restarts_it);
    if let Some(step) = power {
        return step;
    }
    let retaggable = facts.verbs.contains(&OptionalVerb::UpdateTags);
    if plan.has(ChangeMethod::Retag) || (retaggable && server.drift.contains(&Drift::Tags)) {
        return Step::Retag;
    }
    if pending.reimage {
        let sent_at = machine.unconfirmed.reimage_sent_at;
        // Another controller may be waiting for its result: a second one would delete what was written since.
        return match sent_at.map(|sent_at| later(sent_at, facts.policy.reimage_timeout)) {
            Some(until) if until > now => Step::Wait(Wait::Cloud, Some(until)),
            Some(_) | None => Step::Reimage,
        };
    }
    if pending.resize {
        return if runs { Step::Stop } else { Step::Resize };
    }
    let replacement = facts.refusal.filter(|_| replace_requested);
    match pending.refusal.or(replacement) {
        Some(refusal) => Step::Refuse(refusal.to_owned()),
        None => Step::Done,
    }
}

/// Returns the step that brings the machine to the desired power state, if it is not in it.
fn power_step(server: &Server, machine: &Machine, runs: bool) -> Option<Step> {
    match (server.intent.power, runs) {
        (Power::Running, false) => Some(Step::Start),
        (Power::Running, true) if server.intent.reboots > machine.reboots => {
            Some(Step::Reboot(server.intent.reboot_how))
        }
        (Power::Stopped, true) => Some(Step::Stop),
        (Power::Running, true) | (Power::Stopped, false) | (Power::Deleted, _) => None,
    }
}

/// The pending changes of size and image that can be applied, and why another one cannot be.
struct PendingChange<'a> {
    resize: bool,
    reimage: bool,
    refusal: Option<&'a str>,
}

impl<'a> PendingChange<'a> {
    fn of(
        server: &Server,
        machine: &'a Machine,
        plan: &Plan,
        runs: bool,
        facts: &Facts<'a>,
        now: DateTime<Utc>,
    ) -> Self {
        let refused = &machine.refused;
        // A change that the cloud refused is tried again only while that costs no running machine.
        let may_retry = !runs && server.intent.power == Power::Stopped;
        let flavor = refusal_of(refused.flavor.as_ref(), &server.spec.flavor, may_retry, now);
        let image = refusal_of(refused.image.as_ref(), &server.spec.image, may_retry, now);
        let of_resize = facts.refusal.or(flavor);
        let of_reimage = facts.refusal.or(image);
        let (resizes, reimages) = (
            plan.has(ChangeMethod::Resize),
            plan.has(ChangeMethod::Reimage),
        );
        Self {
            resize: resizes && of_resize.is_none(),
            reimage: reimages && of_reimage.is_none(),
            refusal: of_resize
                .filter(|_| resizes)
                .or(of_reimage.filter(|_| reimages)),
        }
    }
}

/// Returns why a value is not sent to the cloud again, if the cloud refused it before.
fn refusal_of<'a, T: PartialEq>(
    refused: Option<&'a RefusedValue<T>>,
    wanted: &T,
    may_retry: bool,
    now: DateTime<Utc>,
) -> Option<&'a str> {
    let refused = refused.filter(|refused| refused.value == *wanted)?;
    let retried = may_retry && refused.retry_at <= now;
    (!retried).then_some(refused.message.as_str())
}
