//! The changes of a record by a step: pure functions on the controller's own fields.
//!
//! Owns the wording of the controller's conditions and events. It never decides and never calls a cloud; after a conflict, the same function is
//! applied to the newer record.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use fleetwright::{ErrorKind, InstanceInfo, OptionalVerb, ProvisionError};

use super::{ControllerPolicy, FailureReason, dates::moved_to_now};
use crate::server::{
    ChangeMethod, ConditionKind, EventKind, Field, LastAction, Launch, Machine, MachineAction,
    Power, RefusedChanges, RefusedValue, Retry, Server, ServerSpec, Termination, TerminationReason,
    TerminationResponse, UnconfirmedChange, UnconfirmedLaunch, Writer, is_from_the_future,
};

/// Stores a launch before it is sent. The record has no machine until the launch returns one.
///
/// Conditions about capacity and quota stay until the launch succeeds, so that a waiting tenant sees the reason.
pub(super) fn start_launch(server: &mut Server, launch: Launch, now: DateTime<Utc>) {
    let message = format!(
        "launch {} was sent (attempt {})",
        launch.incarnation, launch.attempt
    );
    server.machine = None;
    server.launch = Some(launch);
    server.keep_conditions(&[ConditionKind::NoCapacity, ConditionKind::QuotaReached]);
    add_event(server, now, EventKind::Launching, message);
}

/// Records that the launch is sent again.
pub(super) fn mark_sent(server: &mut Server, now: DateTime<Utc>) {
    if let Some(launch) = &mut server.launch {
        launch.sent_at = Some(now);
        launch.unconfirmed.get_or_insert_default();
    }
}

/// Records the machine that a launch returned, and ends the failure state.
///
/// `applied` is the spec of the launch, not the current one: a change that was requested meanwhile is planned against it.
pub(super) fn record_machine(
    server: &mut Server,
    info: &InstanceInfo,
    now: DateTime<Utc>,
    kind: EventKind,
    message: String,
) {
    let Some(launch) = &mut server.launch else {
        return;
    };
    launch.sent_at = None;
    launch.unconfirmed = None;
    server.machine = Some(Machine {
        id: info.id.clone(),
        incarnation: launch.incarnation,
        recorded_at: now,
        applied: launch.spec.copied(),
        unconfirmed: UnconfirmedChange::default(),
        reboots: launch.reboots,
        last_action: None,
        refused: RefusedChanges::default(),
        termination: None,
        withdrawn_at: None,
    });
    clear_failure(server);
    add_event(server, now, kind, message);
}

/// Records that the launch had no effect, so that it can be sent again or changed.
pub(super) fn record_no_effect(server: &mut Server) {
    if let Some(launch) = &mut server.launch {
        launch.sent_at = None;
        launch.unconfirmed = None;
    }
}

/// Records that a launch may have reached another account: its outcome is unknown. What was found first is kept.
pub(super) fn record_unconfirmed_launch(server: &mut Server, found: UnconfirmedLaunch) {
    let Some(launch) = &mut server.launch else {
        return;
    };
    let known = launch.unconfirmed.take().unwrap_or_default();
    launch.unconfirmed = Some(if known.machine.is_some() {
        known
    } else {
        UnconfirmedLaunch::new(found.account.or(known.account), found.machine)
    });
}

/// Records that the account was the region's after a launch that failed: the launch did not reach another one.
pub(super) fn record_account_confirmed(server: &mut Server) {
    if let Some(launch) = &mut server.launch {
        launch.unconfirmed = None;
    }
}

/// Marks the machine for termination. The mark stays, whatever is requested later.
pub(super) fn mark_for_termination(
    server: &mut Server,
    reason: TerminationReason,
    now: DateTime<Utc>,
) {
    let Some(machine) = &mut server.machine else {
        return;
    };
    if machine.termination.is_some() {
        return;
    }
    machine.termination = Some(Termination {
        reason,
        accepted_at: None,
        response: None,
    });
    let message = format!(
        "machine {} is being terminated: {}",
        machine.id,
        describe_reason(reason)
    );
    add_event(server, now, EventKind::Terminating, message);
}

/// Records that the cloud accepted the termination, or did not find the machine.
pub(super) fn record_termination_accepted(
    server: &mut Server,
    response: TerminationResponse,
    now: DateTime<Utc>,
) {
    let machine = server.machine.as_mut();
    if let Some(termination) = machine.and_then(|machine| machine.termination.as_mut()) {
        termination.accepted_at = Some(now);
        termination.response = Some(response);
    }
    clear_failure(server);
}

/// Removes the mark of a termination that nobody requests, or no longer.
pub(super) fn withdraw_termination(server: &mut Server, now: DateTime<Utc>) {
    let Some(machine) = &mut server.machine else {
        return;
    };
    let withdrawn = machine.termination.take();
    if withdrawn.is_some_and(|withdrawn| withdrawn.reason == TerminationReason::Replace) {
        machine.withdrawn_at = Some(now);
    }
    let message = format!("machine {} is not terminated: it is kept", machine.id);
    clear_failure(server);
    add_event(server, now, EventKind::Changed, message);
}

/// Returns the reason of a termination as part of an event.
fn describe_reason(reason: TerminationReason) -> &'static str {
    match reason {
        TerminationReason::Delete => "the server is deleted",
        TerminationReason::Replace => "a replacement was requested",
        TerminationReason::Failed => "it did not boot in time",
        TerminationReason::Missing => "the cloud no longer lists it",
    }
}

/// Returns the field that a change in place applies.
fn field_of(act: MachineAction) -> Option<Field> {
    match act {
        MachineAction::Start | MachineAction::Stop | MachineAction::Reboot => None,
        MachineAction::Resize => Some(Field::Flavor),
        MachineAction::Reimage => Some(Field::Image),
        MachineAction::Retag => Some(Field::Tags),
    }
}

/// Records a change that is about to be sent as unconfirmed. Returns the unconfirmed changes before that.
///
/// If the response is lost, the field stays unconfirmed, and the next reconcile applies it again whatever the spec says then.
///
/// A reimage is recorded with its time, so that no other controller sends it before the result of this one is known.
pub(super) fn add_unconfirmed(
    server: &mut Server,
    act: MachineAction,
    now: DateTime<Utc>,
) -> UnconfirmedChange {
    let Some(machine) = &mut server.machine else {
        return UnconfirmedChange::default();
    };
    let mut before = machine.unconfirmed.clone();
    before.reimage_sent_at = None;
    if act == MachineAction::Reimage {
        machine.unconfirmed.reimage_sent_at = Some(now);
    }
    machine.unconfirmed.fields.extend(field_of(act));
    if act == MachineAction::Retag {
        let keys = server.spec.tags.iter().map(|(key, _)| key.to_owned());
        machine.unconfirmed.tag_keys.extend(keys);
    }
    before
}

/// Records that a call has returned: whatever its result is, it can be sent again.
pub(super) fn record_returned(server: &mut Server) {
    if let Some(machine) = &mut server.machine {
        machine.unconfirmed.reimage_sent_at = None;
    }
}

/// Restores the unconfirmed changes after a call without effect.
pub(super) fn restore_unconfirmed(server: &mut Server, before: UnconfirmedChange) {
    if let Some(machine) = &mut server.machine {
        machine.unconfirmed = before;
    }
}

/// Records that the cloud accepted a change in place.
pub(super) fn record_change(
    server: &mut Server,
    act: MachineAction,
    wanted: &ServerSpec,
    now: DateTime<Utc>,
) {
    let reboots = server.intent.reboots;
    let Some(machine) = &mut server.machine else {
        return;
    };
    machine.last_action = Some(LastAction {
        action: act,
        at: now,
    });
    if let Some(field) = field_of(act) {
        machine.unconfirmed.fields.remove(&field);
    }
    machine.unconfirmed.reimage_sent_at = None;
    let message = match act {
        // A start or a stop makes a pending reboot unnecessary.
        MachineAction::Start => {
            machine.reboots = reboots;
            "was started"
        }
        MachineAction::Stop => {
            machine.reboots = reboots;
            "was stopped"
        }
        MachineAction::Reboot => {
            machine.reboots = reboots;
            "was rebooted"
        }
        MachineAction::Resize => {
            machine.applied.flavor = wanted.flavor.clone();
            machine.refused.flavor = None;
            "was resized"
        }
        MachineAction::Reimage => {
            machine.applied.image = wanted.image.clone();
            machine.refused.image = None;
            "was reimaged; the content of its root disk is lost"
        }
        MachineAction::Retag => {
            machine.applied.tags = wanted.tags.clone();
            machine.unconfirmed.tag_keys.clear();
            "was retagged"
        }
    };
    let message = format!("machine {} {message}", machine.id);
    // A start, a stop or a reboot does not apply a change that is refused.
    let refused = server.condition(ConditionKind::Refused).cloned();
    clear_failure(server);
    if field_of(act).is_none() {
        server.conditions.extend(refused);
    }
    add_event(server, now, EventKind::Changed, message);
}

/// Records that the provider does not support reboots. The request is not repeated.
pub(super) fn record_reboot_unsupported(server: &mut Server, now: DateTime<Utc>) {
    let reboots = server.intent.reboots;
    if let Some(machine) = &mut server.machine {
        machine.reboots = reboots;
    }
    let message = "this cloud does not support reboots: request a stop, then a start";
    server.set_condition(now, ConditionKind::Unsupported, message.to_owned());
    add_event(server, now, EventKind::Failed, message.to_owned());
}

/// Records that the desired state cannot be sent to the cloud.
///
/// The message becomes a condition and an event. `until` is when the controller tries again without a change of the desired state.
pub(super) fn record_refusal(
    server: &mut Server,
    until: DateTime<Utc>,
    now: DateTime<Utc>,
    message: String,
) {
    server.set_condition(now, ConditionKind::Refused, message.clone());
    let failures = server.retry.as_ref().map_or(0, |retry| retry.failures);
    server.retry = Some(Retry {
        since: Some(now),
        not_before: until,
        failures: failures.saturating_add(1),
        generation: server.generation,
    });
    add_event(server, now, EventKind::Failed, message);
}

/// Records that a change cannot be applied. The machine stays as it is, and its power state can still be changed.
pub(super) fn record_refused_change(server: &mut Server, refusal: &str, now: DateTime<Utc>) {
    let message = format!("the change cannot be applied, and the machine is unchanged: {refusal}");
    let known = server
        .condition(ConditionKind::Refused)
        .is_some_and(|found| found.message == message);
    server.retry = None;
    server.keep_conditions(&[
        ConditionKind::Refused,
        ConditionKind::NextLaunch,
        ConditionKind::Unsupported,
    ]);
    if !known {
        server.set_condition(now, ConditionKind::Refused, message.clone());
        add_event(server, now, EventKind::Failed, message);
    }
}

/// Records that the cloud refused a value, so that it is not sent again while the machine runs. Nothing delays the next step, except the
/// `delay` after a failed call of another controller.
pub(super) fn record_refused_value(
    server: &mut Server,
    act: MachineAction,
    wanted: &ServerSpec,
    error: &ProvisionError,
    retry_at: DateTime<Utc>,
    delay: Option<Retry>,
) {
    let Some(machine) = &mut server.machine else {
        return;
    };
    let message =
        |what: &str, remedy: &str| format!("{what} was refused: {}; {remedy}", error.message());
    match field_of(act) {
        Some(Field::Flavor) => {
            let remedy = "request another flavor, or stop the instance to try this one again";
            machine.refused.flavor = Some(RefusedValue {
                value: wanted.flavor.clone(),
                message: message(&format!("flavor {}", wanted.flavor), remedy),
                retry_at,
            });
        }
        Some(Field::Image) => {
            let remedy = "request another image, or stop the instance to try this one again";
            machine.refused.image = Some(RefusedValue {
                value: wanted.image.clone(),
                message: message(&format!("image {}", wanted.image), remedy),
                retry_at,
            });
        }
        Some(_) | None => return,
    }
    server.retry = delay;
}

/// Returns the delay that has not ended yet. The controller decides nothing before its end, so another controller has recorded it since
/// this one decided, or the clock was set back. A delay that began in the future counts from now, so that it is not longer than it was.
pub(super) fn delay_of_another(
    server: &Server,
    policy: &ControllerPolicy,
    now: DateTime<Utc>,
) -> Option<Retry> {
    let found = server.retry.as_ref();
    let found = found.filter(|found| found.generation == server.generation)?;
    // Another controller may have recorded it after `now`, or its clock may differ a little.
    let found = match found.since {
        Some(since) if !is_from_the_future(since, now) => found.clone(),
        Some(_) | None => moved_to_now(found, policy, now),
    };
    (found.not_before > now).then_some(found)
}

/// Returns whether an error of this kind lasts until the desired state changes.
pub(super) fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Invalid | ErrorKind::Unsupported)
}

/// Records a failed call: a condition of the matching kind, an event, and the time of the next attempt.
pub(super) fn record_failure(
    server: &mut Server,
    error: &ProvisionError,
    failures: u32,
    not_before: DateTime<Utc>,
    now: DateTime<Utc>,
) {
    let kind = if error.kind() == ErrorKind::Capacity {
        ConditionKind::NoCapacity
    } else if error.kind() == ErrorKind::Quota {
        ConditionKind::QuotaReached
    } else if is_refusal(error.kind()) {
        ConditionKind::Refused
    } else {
        // The other kinds are temporary problems of the cloud, the account or the network.
        ConditionKind::CloudError
    };
    let message = format!("{} failed: {}", error.operation(), error.message());
    server.set_condition(now, kind, message.clone());
    server.retry = Some(Retry {
        since: Some(now),
        not_before,
        failures,
        generation: server.generation,
    });
    add_event(server, now, EventKind::Failed, message);
}

/// Records that the controller does nothing more until the desired state changes.
///
/// The message names the cloud's reason, if it gave one, and what the owner can do.
pub(super) fn record_final_failure(
    server: &mut Server,
    reason: FailureReason,
    attempts: u32,
    now: DateTime<Utc>,
) {
    let cloud_reason = server
        .current_observation()
        .and_then(|seen| seen.state_reason.clone());
    let cloud_reason = cloud_reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let (kind, message) = match reason {
        FailureReason::AttemptsExhausted => (
            ConditionKind::AttemptsExhausted,
            format!(
                "no machine booted in {attempts} attempts{cloud_reason}: fix the cause, then request a replacement"
            ),
        ),
        FailureReason::Lost => (
            ConditionKind::Lost,
            format!(
                "the machine was terminated outside this system{cloud_reason}; its disk and addresses are lost: request a replacement"
            ),
        ),
    };
    let known = server
        .condition(kind)
        .is_some_and(|found| found.message == message);
    server.retry = None;
    server.observed_generation = server.generation;
    server.keep_conditions(&[kind]);
    if !known {
        server.set_condition(now, kind, message.clone());
        add_event(server, now, EventKind::GaveUp, message);
    }
}

/// Records that the desired state is reached: the generation is observed and the conditions of failures end.
///
/// A change that takes effect only at the next launch stays visible as a condition.
/// So does a disk that is smaller than the flavor's: no provider grows the disk of a machine.
pub(super) fn record_done(
    server: &mut Server,
    verbs: &BTreeSet<OptionalVerb>,
    disk: Option<SmallerDisk>,
    now: DateTime<Utc>,
) {
    server.retry = None;
    server.observed_generation = server.generation;
    server.keep_conditions(&[ConditionKind::NextLaunch, ConditionKind::Unsupported]);
    let (power, reboots) = (server.intent.power, server.intent.reboots);
    if let (Power::Stopped, Some(machine)) = (power, &mut server.machine) {
        // A stopped machine needs no reboot.
        machine.reboots = reboots;
    }
    let machine = server.machine.as_ref();
    let plan = machine.map(|machine| machine.plan_to(&server.spec, verbs));
    let mut pending = Vec::new();
    if plan.is_some_and(|plan| plan.has(ChangeMethod::NextLaunch)) {
        pending.push("the change of user data or tags takes effect at the next launch".to_owned());
    }
    if let Some(SmallerDisk { has, flavor }) = disk {
        pending.push(format!(
            "the disk was not resized: it has {has} GiB, and the {flavor} GiB of the flavor take effect at the next launch; request a \
             replacement for that, which deletes the data on the disk, or grow the file system on a disk of your own"
        ));
    }
    if !pending.is_empty() {
        server.set_condition(now, ConditionKind::NextLaunch, pending.join("; "));
    } else {
        server.keep_conditions(&[ConditionKind::Unsupported]);
    }
}

/// A disk that is smaller than the flavor of the server says, in GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SmallerDisk {
    /// The size that the machine was launched with.
    pub(super) has: u32,
    /// The size that a machine of the flavor is launched with.
    pub(super) flavor: u32,
}

/// Clears the failure state after a successful call.
fn clear_failure(server: &mut Server) {
    server.retry = None;
    server.keep_conditions(&[ConditionKind::NextLaunch, ConditionKind::Unsupported]);
}

/// Adds an event of the controller.
fn add_event(server: &mut Server, now: DateTime<Utc>, kind: EventKind, message: String) {
    server.note(now, Writer::Controller, kind, message);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::TimeDelta;

    use super::*;
    use crate::controller::tests::arbitrary;

    /// Returns what is left of a delay of 40 seconds that began `offset` after now.
    fn left_of_a_delay(offset: TimeDelta) -> Option<Duration> {
        let now = arbitrary::now();
        let mut server = arbitrary::every_shape().swap_remove(0);
        let since = now + offset;
        server.retry = Some(Retry {
            since: Some(since),
            not_before: since + TimeDelta::seconds(40),
            failures: 3,
            generation: server.generation,
        });
        let found = delay_of_another(&server, &ControllerPolicy::default(), now);
        found.map(|found| (found.not_before - now).to_std().unwrap())
    }

    #[test]
    fn delay_of_another_controller_is_neither_shortened_nor_prolonged() {
        let seconds = Duration::from_secs;
        let cases = [
            (TimeDelta::seconds(-50), None),
            (TimeDelta::seconds(-10), Some(seconds(30))),
            // Recorded after this controller took its date, or by a clock that differs a little.
            (TimeDelta::seconds(2), Some(seconds(42))),
            // Recorded before the clock was set back.
            (TimeDelta::hours(2), Some(seconds(40))),
        ];
        for (offset, left) in cases {
            assert_eq!(left_of_a_delay(offset), left, "{offset}");
        }
    }
}
