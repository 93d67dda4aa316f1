//! The one decision: what to do next for a server, by its record, what was seen, and the date. Pure.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{CloudInstanceState, OptionalVerb};
use fleetwright_runtime::clock::later;

use super::{Begin, GiveUp, Rules, Step, Wait};
use crate::{
    monitor::Pulse,
    server::{CloudInstance, Drift, Launch, Observed, Plan, Power, Presence, Server, Way, Why},
};

/// What a decision needs to know beside the record.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What the provider can do.
    pub verbs: &'a BTreeSet<OptionalVerb>,
    /// For how long its reads may lag.
    pub window: Duration,
    /// The monitor's last look at the region.
    pub pulse: Option<&'a Pulse>,
    /// How persistent to be.
    pub rules: &'a Rules,
}

impl Facts<'_> {
    /// How long the monitor takes to look again.
    fn tick(&self) -> Duration {
        const UNTIL_IT_BEGINS: Duration = Duration::from_secs(10);
        self.pulse.map_or(UNTIL_IT_BEGINS, |pulse| pulse.tick)
    }
}

/// The next step for a server.
///
/// Never launches while the record names a machine that is not known to be gone; answers for every record; the same for
/// the same record, facts and date.
pub fn decide(server: &Server, facts: &Facts<'_>, now: DateTime<Utc>) -> Step {
    if let Some(retry) = &server.retry {
        // What is newly asked for does not wait for the failures of what was asked before.
        let holds = retry.generation == server.generation && retry.not_before > now;
        if holds {
            return Step::Wait(Wait::Backoff, Some(retry.not_before));
        }
    }
    match (&server.launch, &server.instance) {
        (None, None) if server.intent.power == Power::Deleted => Step::Forget,
        (None, None) => Step::Begin(Begin::First),
        // Nobody here writes such a record: a machine without a launch is left to those who can tell whose it is.
        (None, Some(_)) => Step::Wait(Wait::Sight, None),
        (Some(launch), None) => without_machine(server, launch, facts),
        (Some(launch), Some(machine)) => with_machine(server, launch, machine, facts, now),
    }
}

fn without_machine(server: &Server, launch: &Launch, facts: &Facts<'_>) -> Step {
    if launch.sent_at.is_some() {
        return Step::Settle;
    }
    if server.intent.power == Power::Deleted {
        return Step::Forget;
    }
    if launch.spent {
        return attempt_again(server, launch, facts);
    }
    if launch.spec == server.spec {
        Step::Resend
    } else {
        Step::Begin(Begin::Changed)
    }
}

fn attempt_again(server: &Server, launch: &Launch, facts: &Facts<'_>) -> Step {
    if server.intent.replaces > launch.replaces {
        Step::Begin(Begin::Replace)
    } else if launch.attempt < facts.rules.max_attempts {
        Step::Begin(Begin::Retry)
    } else {
        Step::GiveUp(GiveUp::AttemptsUsed)
    }
}

fn with_machine(
    server: &Server,
    launch: &Launch,
    machine: &CloudInstance,
    facts: &Facts<'_>,
    now: DateTime<Utc>,
) -> Step {
    let plan = machine.plan_to(&server.spec, facts.verbs);
    let replace = server.intent.replaces > launch.replaces || plan.has(Way::Replace);
    let deleted = server.intent.power == Power::Deleted;
    let seen = server.seen();
    match end_of(machine, seen) {
        End::Sure if deleted => return Step::Forget,
        End::Sure => return after_the_end(server, launch, machine, replace, facts),
        End::Unsure => return Step::Terminate(Why::Missing),
        End::NotYet => {}
    }
    if let Some(ending) = machine.ending {
        let patience = |at| later(at, facts.rules.end_patience);
        return match ending.accepted_at.map(patience) {
            Some(again) if again > now => Step::Wait(Wait::End, Some(again)),
            Some(_) | None => Step::Terminate(ending.why),
        };
    }
    if deleted {
        return Step::Terminate(Why::Delete);
    }
    if replace {
        return Step::Terminate(Why::Replace);
    }
    let too_late = later(machine.recorded_at, facts.rules.boot_patience);
    let Some(seen) = seen else {
        return Step::Wait(Wait::Sight, None);
    };
    if !server.has_booted() && seen.state == CloudInstanceState::Pending {
        // Only a look after the time is up shows that it has not booted in time.
        let looked = server
            .observed_at(facts.pulse)
            .is_some_and(|at| at > too_late);
        return if looked && seen.presence == Presence::Shown {
            Step::Terminate(Why::Failed)
        } else {
            let next_look = later(too_late.max(now), facts.tick());
            Step::Wait(Wait::Cloud, Some(next_look))
        };
    }
    if let Some(acted) = machine.acted {
        let shows_it = later(acted.at, facts.window);
        // What was seen before the change could show says nothing about it.
        if server
            .observed_at(facts.pulse)
            .is_none_or(|at| at <= shows_it)
        {
            let next_look = later(shows_it.max(now), facts.tick());
            return Step::Wait(Wait::Sight, Some(next_look));
        }
    }
    in_place(server, machine, seen, &plan, facts)
}

/// Whether a machine is known to be gone.
enum End {
    /// It may be there.
    NotYet,
    /// It is not shown, and could come back.
    Unsure,
    /// It is gone for good.
    Sure,
}

fn end_of(machine: &CloudInstance, seen: Option<&Observed>) -> End {
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

fn accepted(machine: &CloudInstance) -> bool {
    machine
        .ending
        .is_some_and(|ending| ending.accepted_at.is_some())
}

fn after_the_end(
    server: &Server,
    launch: &Launch,
    machine: &CloudInstance,
    replace: bool,
    facts: &Facts<'_>,
) -> Step {
    let asked_to_go = machine
        .ending
        .is_some_and(|ending| ending.why == Why::Replace);
    if replace || asked_to_go {
        return Step::Begin(Begin::Replace);
    }
    if server.has_booted() {
        return Step::GiveUp(GiveUp::Lost);
    }
    attempt_again(server, launch, facts)
}

/// What is done to a machine that stays the same one.
fn in_place(
    server: &Server,
    machine: &CloudInstance,
    seen: &Observed,
    plan: &Plan,
    facts: &Facts<'_>,
) -> Step {
    use CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated, Terminating};
    if seen.presence != Presence::Shown {
        return Step::Wait(Wait::Sight, None);
    }
    match seen.state {
        Pending | Stopping => return Step::Wait(Wait::Cloud, None),
        Terminating | Terminated => return Step::Wait(Wait::End, None),
        Running | Stopped => {}
    }
    let runs = seen.state == Running;
    let retaggable = facts.verbs.contains(&OptionalVerb::UpdateTags);
    if plan.has(Way::Retag) || (retaggable && server.drift.contains(&Drift::Tags)) {
        return Step::Retag;
    }
    if plan.has(Way::Reimage) {
        return Step::Reimage;
    }
    if plan.has(Way::Resize) {
        return if runs { Step::Stop } else { Step::Resize };
    }
    match (server.intent.power, runs) {
        (Power::Running, false) => Step::Start,
        (Power::Running, true) if server.intent.reboots > machine.reboots => {
            Step::Reboot(server.intent.reboot_how)
        }
        (Power::Stopped, true) => Step::Stop,
        (Power::Running, true) | (Power::Stopped, false) | (Power::Deleted, _) => Step::Done,
    }
}
