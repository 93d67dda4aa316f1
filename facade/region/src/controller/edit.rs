//! What a step leaves in the record: pure changes of the controller's own fields.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use fleetwright::{ErrorKind, InstanceInfo, OptionalVerb, ProvisionError};

use super::GiveUp;
use crate::server::{
    Act, Acted, CloudInstance, ConditionKind, Doubt, Ending, EventKind, Field, Launch, Power,
    Retry, Server, ServerSpec, Way, Why, Writer,
};

/// A launch is decided: the record names it before it is sent, and no machine until it is answered.
pub(super) fn begun(server: &mut Server, launch: Launch, now: DateTime<Utc>) {
    let words = format!(
        "launch {} is sent (attempt {})",
        launch.incarnation, launch.attempt
    );
    server.instance = None;
    server.launch = Some(launch);
    server.keep_conditions(&[ConditionKind::NoCapacity, ConditionKind::QuotaReached]);
    note(server, now, EventKind::Launching, words);
}

/// The launch is about to be sent again.
pub(super) fn sending(server: &mut Server, now: DateTime<Utc>) {
    if let Some(launch) = &mut server.launch {
        launch.sent_at = Some(now);
    }
}

/// The cloud has named the machine of the launch.
pub(super) fn recorded(
    server: &mut Server,
    info: &InstanceInfo,
    now: DateTime<Utc>,
    kind: EventKind,
    words: String,
) {
    let Some(launch) = &mut server.launch else {
        return;
    };
    launch.sent_at = None;
    server.instance = Some(CloudInstance {
        id: info.id.clone(),
        incarnation: launch.incarnation,
        recorded_at: now,
        applied: launch.spec.clone(),
        doubt: Doubt::default(),
        reboots: launch.reboots,
        acted: None,
        ending: None,
    });
    succeeded(server);
    note(server, now, kind, words);
}

/// The launch is known to have made nothing.
pub(super) fn settled_without_effect(server: &mut Server) {
    if let Some(launch) = &mut server.launch {
        launch.sent_at = None;
    }
}

/// The machine is to be destroyed: from here on it is, whatever is asked for until then.
pub(super) fn ending(server: &mut Server, why: Why, now: DateTime<Utc>) {
    let Some(machine) = &mut server.instance else {
        return;
    };
    if machine.ending.is_some() {
        return;
    }
    machine.ending = Some(Ending {
        why,
        accepted_at: None,
    });
    let words = format!("machine {} goes: {}", machine.id, because(why));
    note(server, now, EventKind::Ending, words);
}

/// The cloud destroys the machine.
pub(super) fn end_accepted(server: &mut Server, now: DateTime<Utc>) {
    let machine = server.instance.as_mut();
    if let Some(ending) = machine.and_then(|machine| machine.ending.as_mut()) {
        ending.accepted_at = Some(now);
    }
    succeeded(server);
}

fn because(why: Why) -> &'static str {
    match why {
        Why::Delete => "the server is deleted",
        Why::Replace => "another one was asked for",
        Why::Failed => "it did not boot in time",
        Why::Missing => "the cloud does not show it any more",
    }
}

/// The field that a change in place is about.
fn field_of(act: Act) -> Option<Field> {
    match act {
        Act::Start | Act::Stop | Act::Reboot => None,
        Act::Resize => Some(Field::Flavor),
        Act::Reimage => Some(Field::Image),
        Act::Retag => Some(Field::Tags),
    }
}

/// A change of a field is about to be sent: until it is answered nobody knows what the machine has. Answers the doubt there
/// was before.
pub(super) fn attempting(server: &mut Server, act: Act) -> Doubt {
    let Some(machine) = &mut server.instance else {
        return Doubt::default();
    };
    let before = machine.doubt.clone();
    machine.doubt.fields.extend(field_of(act));
    if act == Act::Retag {
        let keys = server.spec.tags.iter().map(|(key, _)| key.to_owned());
        machine.doubt.tag_keys.extend(keys);
    }
    before
}

/// A change was refused without effect: the doubt is what it was before.
pub(super) fn not_attempted(server: &mut Server, before: Doubt) {
    if let Some(machine) = &mut server.instance {
        machine.doubt = before;
    }
}

/// The cloud accepted a change in place.
pub(super) fn changed(server: &mut Server, act: Act, wanted: &ServerSpec, now: DateTime<Utc>) {
    let reboots = server.intent.reboots;
    let Some(machine) = &mut server.instance else {
        return;
    };
    machine.acted = Some(Acted { act, at: now });
    if let Some(field) = field_of(act) {
        machine.doubt.fields.remove(&field);
    }
    let words = match act {
        // Whatever boots it anew is as good as a reboot.
        Act::Start => {
            machine.reboots = reboots;
            "is started"
        }
        Act::Stop => {
            machine.reboots = reboots;
            "is stopped"
        }
        Act::Reboot => {
            machine.reboots = reboots;
            "is rebooted"
        }
        Act::Resize => {
            machine.applied.flavor = wanted.flavor.clone();
            "has another size"
        }
        Act::Reimage => {
            machine.applied.image = wanted.image.clone();
            "has another image; what was on its root disk is lost"
        }
        Act::Retag => {
            machine.applied.tags = wanted.tags.clone();
            machine.doubt.tag_keys.clear();
            "has other tags"
        }
    };
    let words = format!("machine {} {words}", machine.id);
    succeeded(server);
    note(server, now, EventKind::Changed, words);
}

/// The provider has no reboot: the request is answered by that, and not repeated.
pub(super) fn cannot_reboot(server: &mut Server, now: DateTime<Utc>) {
    let reboots = server.intent.reboots;
    if let Some(machine) = &mut server.instance {
        machine.reboots = reboots;
    }
    let words = "this cloud offers no reboot: stop it and start it";
    server.set_condition(now, ConditionKind::Unsupported, words.to_owned());
    note(server, now, EventKind::Failed, words.to_owned());
}

/// What is asked for cannot be put to the cloud.
pub(super) fn refused(
    server: &mut Server,
    until: DateTime<Utc>,
    now: DateTime<Utc>,
    message: String,
) {
    server.set_condition(now, ConditionKind::Refused, message.clone());
    let failures = server.retry.as_ref().map_or(0, |retry| retry.failures);
    server.retry = Some(Retry {
        not_before: until,
        failures: failures.saturating_add(1),
        generation: server.generation,
    });
    note(server, now, EventKind::Failed, message);
}

/// Whether an error of this kind stays until somebody changes what is asked for.
pub(super) fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Invalid | ErrorKind::Unsupported)
}

/// A call failed.
pub(super) fn failed(
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
        // What is left is the cloud's, the account's or the network's, and passes.
        ConditionKind::CloudTrouble
    };
    let message = format!("{} failed: {}", error.operation(), error.message());
    server.set_condition(now, kind, message.clone());
    server.retry = Some(Retry {
        not_before,
        failures,
        generation: server.generation,
    });
    note(server, now, EventKind::Failed, message);
}

/// Nothing more is done without somebody's word.
pub(super) fn given_up(server: &mut Server, why: GiveUp, attempts: u32, now: DateTime<Utc>) {
    let reason = server.seen().and_then(|seen| seen.state_reason.clone());
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let (kind, message) = match why {
        GiveUp::AttemptsUsed => (
            ConditionKind::AttemptsUsed,
            format!(
                "no machine booted in {attempts} attempts{reason}: mend the cause and ask for a replacement"
            ),
        ),
        GiveUp::Lost => (
            ConditionKind::Lost,
            format!(
                "the machine was destroyed from outside{reason}; its disk is lost: ask for a replacement"
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
        note(server, now, EventKind::GaveUp, message);
    }
}

/// Everything is as it is asked for.
pub(super) fn done(server: &mut Server, verbs: &BTreeSet<OptionalVerb>, now: DateTime<Utc>) {
    server.retry = None;
    server.observed_generation = server.generation;
    server.keep_conditions(&[ConditionKind::NextLaunch, ConditionKind::Unsupported]);
    let (power, reboots) = (server.intent.power, server.intent.reboots);
    if let (Power::Stopped, Some(machine)) = (power, &mut server.instance) {
        // What does not run needs no reboot, however it came to be stopped.
        machine.reboots = reboots;
    }
    let machine = server.instance.as_ref();
    let plan = machine.map(|machine| machine.plan_to(&server.spec, verbs));
    if plan.is_some_and(|plan| plan.has(Way::NextLaunch)) {
        let words = "a change of user data or tags takes effect when it is next launched";
        server.set_condition(now, ConditionKind::NextLaunch, words.to_owned());
    } else {
        server.keep_conditions(&[ConditionKind::Unsupported]);
    }
}

/// A call was answered: what was wrong is over.
fn succeeded(server: &mut Server) {
    server.retry = None;
    server.keep_conditions(&[ConditionKind::NextLaunch, ConditionKind::Unsupported]);
}

fn note(server: &mut Server, now: DateTime<Utc>, kind: EventKind, words: String) {
    server.note(now, Writer::Controller, kind, words);
}
