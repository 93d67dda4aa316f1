//! The decision of the controller: the next step for a server, by its record, the last scan and the date. Pure.
//!
//! Owns the rules about a machine's beginning and end. What keeps the machine is decided in [`in_place`](super::in_place).

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{CloudInstanceState, OptionalVerb};
use fleetwright_runtime::clock::later;

use super::{ControllerPolicy, FailureReason, LaunchReason, Step, Wait, in_place::decide_in_place};
use crate::{
    monitor::RegionScan,
    server::{
        ChangeMethod, Launch, Machine, Observed, Power, Presence, Server, Termination,
        TerminationReason, TerminationResponse,
    },
};

/// The input of a decision in addition to the record.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The optional verbs that the provider supports.
    pub verbs: &'a BTreeSet<OptionalVerb>,
    /// How long the provider's reads usually show the state from before a change.
    pub usual_lag: Duration,
    /// The last scan of the region.
    pub scan: Option<&'a RegionScan>,
    /// The policy of the controller.
    pub policy: &'a ControllerPolicy,
    /// Why no machine with the desired spec can be launched now: no mapping, or a limit of the provider. `None` if one can be.
    pub refusal: Option<&'a str>,
}

impl Facts<'_> {
    /// The time until the next scan.
    fn tick(&self) -> Duration {
        const UNTIL_IT_BEGINS: Duration = Duration::from_secs(10);
        self.scan.map_or(UNTIL_IT_BEGINS, |scan| scan.tick)
    }
}

/// Returns the next step for a server.
///
/// Never launches while the record has a machine that is not known to be terminated. Total and deterministic: the same record, facts and
/// date give the same step.
pub fn decide(server: &Server, facts: &Facts<'_>, now: DateTime<Utc>) -> Step {
    if let Some(retry) = &server.retry {
        // A changed desired state does not wait for the failures of the previous one.
        let holds = retry.generation == server.generation && retry.not_before > now;
        if holds {
            return Step::Wait(Wait::Backoff, Some(retry.not_before));
        }
    }
    match (&server.launch, &server.machine) {
        (None, None) if server.intent.power == Power::Deleted => Step::DeleteRecord,
        (None, None) => Step::Launch(LaunchReason::First),
        // No writer creates such a record: a machine without a launch is left to the operator.
        (None, Some(_)) => Step::Wait(Wait::Observation, None),
        (Some(launch), None) => without_machine(server, launch, facts),
        (Some(launch), Some(machine)) => with_machine(server, launch, machine, facts, now),
    }
}

/// Decides for a record without a machine: the launch is unsettled, was refused, or was not sent yet.
///
/// A launch that may have been sent is settled before anything else, also when the server is being deleted: its machine must be found
/// before the record can be removed.
fn without_machine(server: &Server, launch: &Launch, facts: &Facts<'_>) -> Step {
    if launch.sent_at.is_some() {
        return Step::Settle;
    }
    if server.intent.power == Power::Deleted {
        return Step::DeleteRecord;
    }
    if launch.spent {
        return attempt_again(server, launch, facts);
    }
    if launch.spec == server.spec {
        Step::Resend
    } else {
        Step::Launch(LaunchReason::Changed)
    }
}

/// Decides after a machine that did not boot, or a launch whose token is spent.
///
/// A requested replacement starts a new count of attempts. Otherwise the next attempt is made until
/// [`max_attempts`](ControllerPolicy::max_attempts) is reached.
fn attempt_again(server: &Server, launch: &Launch, facts: &Facts<'_>) -> Step {
    if server.intent.replaces > launch.replaces {
        Step::Launch(LaunchReason::Replace)
    } else if launch.attempt < facts.policy.max_attempts {
        Step::Launch(LaunchReason::Retry)
    } else {
        Step::Fail(FailureReason::AttemptsExhausted)
    }
}

/// Decides for a record with a machine.
///
/// In this order: the machine is known to be terminated, or it is missing; its termination was requested before and is completed; the
/// server is deleted or replaced; the boot took too long; the last action is not visible in an observation yet; then changes in place.
///
/// A machine is terminated for a replacement only while the replacement is requested and can be launched: otherwise it is kept. That is
/// decided again each time the termination is sent, until the cloud has accepted it.
fn with_machine(
    server: &Server,
    launch: &Launch,
    machine: &Machine,
    facts: &Facts<'_>,
    now: DateTime<Utc>,
) -> Step {
    let plan = machine.plan_to(&server.spec, facts.verbs);
    let replace_requested =
        server.intent.replaces > launch.replaces || plan.has(ChangeMethod::Replace);
    let replace = replace_requested && facts.refusal.is_none();
    let deleted = server.intent.power == Power::Deleted;
    let seen = server.current_observation();
    match end_of(machine, seen) {
        End::Sure if deleted => return Step::DeleteRecord,
        End::Sure => return after_the_end(server, launch, machine, replace_requested, facts, now),
        End::Unsure => return missing(server, machine, replace),
        End::NotYet => {}
    }
    if let Some(termination) = machine.termination {
        let after_call = is_observed_after_call(server, &termination, facts, now);
        if !deleted && is_withdrawn(server, &termination, seen, after_call, replace) {
            return Step::KeepMachine;
        }
        if !deleted && is_held(&termination, seen, after_call, replace) {
            let next_scan = later(now, facts.tick());
            return Step::Wait(Wait::Observation, Some(next_scan));
        }
        let retry_at = |accepted| later(accepted, facts.policy.termination_timeout);
        return match termination.accepted_at.map(retry_at) {
            Some(date) if date > now => Step::Wait(Wait::Termination, Some(date)),
            Some(_) | None => Step::Terminate(termination.reason),
        };
    }
    if deleted {
        return Step::Terminate(TerminationReason::Delete);
    }
    if replace {
        return Step::Terminate(TerminationReason::Replace);
    }
    let boot_deadline = later(machine.recorded_at, facts.policy.boot_timeout);
    let Some(seen) = seen else {
        return Step::Wait(Wait::Observation, None);
    };
    if !server.has_booted() && seen.state == CloudInstanceState::Pending {
        // Only a scan after the timeout shows that it has not booted in time.
        let is_scanned = server
            .observed_at(facts.scan, now)
            .is_some_and(|at| at > boot_deadline);
        return if is_scanned && seen.presence == Presence::Shown {
            Step::Terminate(TerminationReason::Failed)
        } else {
            let next_scan = later(boot_deadline.max(now), facts.tick());
            Step::Wait(Wait::Cloud, Some(next_scan))
        };
    }
    if let Some(last_action) = machine.last_action {
        let shows_it = later(last_action.at, facts.usual_lag);
        // An observation from before the change could be visible says nothing. A later one can still be stale; then the change is made again,
        // which has no further effect.
        if server
            .observed_at(facts.scan, now)
            .is_none_or(|at| at <= shows_it)
        {
            let next_scan = later(shows_it.max(now), facts.tick());
            return Step::Wait(Wait::Observation, Some(next_scan));
        }
    }
    decide_in_place(server, machine, seen, &plan, replace_requested, facts, now)
}

/// Whether a machine is known to be terminated.
enum End {
    /// It may exist.
    NotYet,
    /// It is not listed, and could reappear.
    Unsure,
    /// It is terminated for good.
    Sure,
}

/// Derives from the last observation whether the machine is terminated.
///
/// A missing machine counts as terminated only if its termination was sent before: otherwise it could reappear beside its successor.
fn end_of(machine: &Machine, seen: Option<&Observed>) -> End {
    let Some(seen) = seen else {
        return End::NotYet;
    };
    match (seen.presence, seen.state) {
        (Presence::Missing(_), _) if accepted(machine) => End::Sure,
        (Presence::Missing(_), _) => End::Unsure,
        (Presence::Shown | Presence::Absent(_), CloudInstanceState::Terminated) => End::Sure,
        (
            Presence::Shown | Presence::Absent(_),
            CloudInstanceState::Pending
            | CloudInstanceState::Running
            | CloudInstanceState::Stopping
            | CloudInstanceState::Stopped
            | CloudInstanceState::Terminating,
        ) => End::NotYet,
    }
}

/// Decides for a machine that the cloud does not know any more.
///
/// It is terminated only if that was requested, or if it never ran: then another one is launched in its place, beside which it must not
/// appear. A machine that ran is reported as lost and never terminated because it is missing: the list may come from another account, and
/// a machine that appears again is used again.
fn missing(server: &Server, machine: &Machine, replace: bool) -> Step {
    let deleted = server.intent.power == Power::Deleted;
    if let Some(termination) = machine.termination {
        return match termination.reason {
            TerminationReason::Missing if server.has_booted() && !deleted => Step::KeepMachine,
            TerminationReason::Replace if !replace && !deleted => Step::KeepMachine,
            reason @ (TerminationReason::Delete
            | TerminationReason::Replace
            | TerminationReason::Failed
            | TerminationReason::Missing) => Step::Terminate(reason),
        };
    }
    if deleted {
        Step::Terminate(TerminationReason::Delete)
    } else if replace {
        Step::Terminate(TerminationReason::Replace)
    } else if server.has_booted() {
        Step::Fail(FailureReason::Lost)
    } else {
        Step::Terminate(TerminationReason::Missing)
    }
}

/// Returns whether a termination is withdrawn. The cloud has not accepted it, and
///
/// - it was sent because the machine was missing, and the machine ran before or is listed again; or
/// - it was sent for a replacement, which cannot be launched any more, or which the tenant has taken back (`replace` is false), and the
///   machine was observed after the last call (`after_call`).
///
/// One that has an effect although no response arrived is seen in an observation, and then the replacement is launched.
fn is_withdrawn(
    server: &Server,
    termination: &Termination,
    seen: Option<&Observed>,
    after_call: bool,
    replace: bool,
) -> bool {
    if termination.response == Some(TerminationResponse::Accepted) {
        return false;
    }
    let listed = |seen: &Observed| seen.presence == Presence::Shown && !seen.state.is_ending();
    match termination.reason {
        TerminationReason::Missing => server.has_booted() || seen.is_some_and(listed),
        TerminationReason::Replace => !replace && after_call && seen.is_none_or(listed),
        TerminationReason::Delete | TerminationReason::Failed => false,
    }
}

/// Returns whether a termination is not sent for now: the replacement is not requested or cannot be launched any more, and the cloud does
/// not show whether the machine still exists, so that the termination can be neither withdrawn nor completed.
fn is_held(
    termination: &Termination,
    seen: Option<&Observed>,
    after_call: bool,
    replace: bool,
) -> bool {
    let accepted = termination.response == Some(TerminationResponse::Accepted);
    let unknown = seen.map_or(!after_call, |seen| match seen.presence {
        Presence::Shown => !seen.state.is_ending() && !after_call,
        Presence::Absent(_) => !seen.state.is_ending(),
        Presence::Missing(_) => false,
    });
    let for_replacement = termination.reason == TerminationReason::Replace;
    for_replacement && !accepted && !replace && unknown
}

/// Returns whether the machine was observed after the last call that was to terminate it. True if the record shows no such call.
///
/// An earlier observation does not show whether the call had an effect, also if the cloud reported that it failed: another call, whose
/// response was lost, may have ended the machine.
fn is_observed_after_call(
    server: &Server,
    termination: &Termination,
    facts: &Facts<'_>,
    now: DateTime<Utc>,
) -> bool {
    let failed_at = server.retry.as_ref().and_then(|retry| retry.since);
    let Some(called_at) = termination.accepted_at.max(failed_at) else {
        return true;
    };
    server
        .observed_at(facts.scan, now)
        .is_some_and(|at| at > called_at)
}

/// Returns whether the termination of the machine was accepted, or the cloud did not find the machine.
fn accepted(machine: &Machine) -> bool {
    machine
        .termination
        .is_some_and(|termination| termination.accepted_at.is_some())
}

/// Decides after the end of a machine: replace it if that was requested, report the loss if it had booted, else try again.
fn after_the_end(
    server: &Server,
    launch: &Launch,
    machine: &Machine,
    replace: bool,
    facts: &Facts<'_>,
    now: DateTime<Utc>,
) -> Step {
    let was_replaced = machine
        .termination
        .is_some_and(|termination| termination.reason == TerminationReason::Replace);
    // A call that was in flight when the replacement was taken back has ended it.
    let timeout = facts.policy.termination_timeout;
    let was_late = machine
        .withdrawn_at
        .is_some_and(|withdrawn_at| now <= later(withdrawn_at, timeout));
    if replace || was_replaced || was_late {
        return Step::Launch(LaunchReason::Replace);
    }
    if server.has_booted() {
        return Step::Fail(FailureReason::Lost);
    }
    attempt_again(server, launch, facts)
}
