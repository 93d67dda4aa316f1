//! Compares the diagram of the module's documentation with the code, and checks the promises of the decision.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use fleetwright::{CloudInstanceState, InstanceInfo, OptionalVerb};
use proptest::prelude::*;

use super::{
    super::{ControllerPolicy, LaunchReason, Stage, Step, decide, record},
    arbitrary::{every_shape, facts, launch, new, now, scan},
};
use crate::server::{
    EventKind, MachineAction, Power, Presence, Server, TerminationReason, TerminationResponse,
};

static SHAPES: LazyLock<Vec<Server>> = LazyLock::new(every_shape);

const DELETED: &str = "(nothing)";

type Diagram = BTreeMap<(String, String), BTreeSet<String>>;

/// Parses the diagram: stage, step, and the stages after it.
fn documented() -> Diagram {
    let source = include_str!("../mod.rs");
    let lines = source.lines().filter_map(|line| {
        let (from, rest) = line.strip_prefix("//! ")?.split_once(" --")?;
        let (step, to) = rest.split_once("--> ")?;
        let to = to.split_whitespace().map(str::to_owned).collect();
        Some(((from.trim().to_owned(), step.to_owned()), to))
    });
    lines.collect()
}

/// The stages in which a record is once a step has succeeded.
fn leads_to(server: &Server, step: &Step) -> BTreeSet<String> {
    let after = |edits: &[&dyn Fn(&mut Server)]| -> BTreeSet<String> {
        let stage = |edit: &&dyn Fn(&mut Server)| {
            let mut server = server.clone();
            edit(&mut server);
            Stage::of(&server).as_str().to_owned()
        };
        edits.iter().map(stage).collect()
    };
    let now = now();
    let changed = |act| {
        after(&[&move |server: &mut Server| {
            let wanted = server.spec.clone();
            record::record_change(server, act, &wanted, now);
        }])
    };
    match step {
        Step::Launch(_) => after(&[&|server| {
            let launch = launch(server, Some(now), 1);
            record::start_launch(server, launch, now);
        }]),
        Step::Resend => after(&[&|server| record::mark_sent(server, now)]),
        Step::Settle => {
            let id = fleetwright::InstanceId::new("i-9").unwrap();
            let info = InstanceInfo::new(id, CloudInstanceState::Pending);
            let found = move |server: &mut Server| {
                record::record_machine(server, &info, now, EventKind::Adopted, String::new());
            };
            after(&[&found, &record::record_no_effect])
        }
        Step::Terminate(reason) => after(&[&|server| {
            record::mark_for_termination(server, *reason, now);
            record::record_termination_accepted(server, TerminationResponse::Accepted, now);
        }]),
        Step::KeepMachine => after(&[&|server| record::withdraw_termination(server, now)]),
        Step::Refuse(refusal) => {
            after(&[&|server| record::record_refused_change(server, refusal, now)])
        }
        Step::Fail(reason) => {
            after(&[&|server| record::record_final_failure(server, *reason, 3, now)])
        }
        Step::Done => after(&[&|server| record::record_done(server, &BTreeSet::new(), None, now)]),
        Step::DeleteRecord => [DELETED.to_owned()].into(),
        Step::Start => changed(MachineAction::Start),
        Step::Stop => changed(MachineAction::Stop),
        Step::Reboot(_) => changed(MachineAction::Reboot),
        Step::Resize => changed(MachineAction::Resize),
        Step::Reimage => changed(MachineAction::Reimage),
        Step::Retag => changed(MachineAction::Retag),
        Step::Wait(..) => BTreeSet::new(),
    }
}

#[test]
fn diagram_matches_the_code() {
    let (policy, scan) = (ControllerPolicy::default(), scan());
    let mut done = Diagram::new();
    let (plain, all) = (BTreeSet::new(), OptionalVerb::ALL.into());
    for (verbs, refusal) in [(&plain, None), (&all, None), (&all, Some("no mapping"))] {
        let mut facts = facts(verbs, &scan, &policy);
        facts.refusal = refusal;
        for server in every_shape() {
            let step = decide(&server, &facts, now());
            if matches!(step, Step::Wait(..)) {
                continue;
            }
            let from = Stage::of(&server).as_str().to_owned();
            let to = done.entry((from, step.name().to_owned())).or_default();
            to.extend(leads_to(&server, &step));
        }
    }
    let documented = documented();
    let steps = |diagram: &Diagram| diagram.keys().cloned().collect::<BTreeSet<_>>();
    let missing: Vec<_> = steps(&done)
        .difference(&steps(&documented))
        .cloned()
        .collect();
    let undone: Vec<_> = steps(&documented)
        .difference(&steps(&done))
        .cloned()
        .collect();
    assert!(
        missing.is_empty(),
        "decided and not documented: {missing:?}"
    );
    assert!(
        undone.is_empty(),
        "documented and never decided: {undone:?}"
    );
    assert_eq!(done, documented, "the stages they lead to");
}

#[test]
fn diagram_contains_every_stage() {
    let documented: BTreeSet<_> = documented().into_keys().map(|(from, _)| from).collect();
    let all = Stage::ALL.map(|stage| stage.as_str().to_owned());
    assert_eq!(documented, all.into());
}

/// Whether the machine that the record names may still exist.
fn may_live(server: &Server) -> bool {
    let Some(machine) = &server.machine else {
        return false;
    };
    let accepted = |termination: &crate::server::Termination| termination.accepted_at.is_some();
    let gone = server
        .current_observation()
        .is_some_and(|seen| match seen.presence {
            Presence::Missing(_) => machine.termination.as_ref().is_some_and(accepted),
            Presence::Shown | Presence::Absent(_) => seen.state.is_final(),
        });
    !gone
}

#[test]
fn no_launch_and_no_deletion_while_a_machine_may_exist() {
    let (policy, scan) = (ControllerPolicy::default(), scan());
    for verbs in [BTreeSet::new(), OptionalVerb::ALL.into()] {
        let facts = facts(&verbs, &scan, &policy);
        for server in every_shape() {
            let step = decide(&server, &facts, now());
            let launches = matches!(step, Step::Launch(_) | Step::Resend | Step::DeleteRecord);
            assert!(!(launches && may_live(&server)), "{step:?}: {server:#?}");
            let unsettled = server
                .launch
                .as_ref()
                .is_some_and(|launch| launch.sent_at.is_some());
            let only_settled = !unsettled || matches!(step, Step::Settle | Step::Wait(..));
            assert!(only_settled, "{step:?}: {server:#?}");
        }
    }
}

#[test]
fn booted_server_is_launched_again_only_on_request() {
    let (policy, scan) = (ControllerPolicy::default(), scan());
    let verbs = OptionalVerb::ALL.into();
    let facts = facts(&verbs, &scan, &policy);
    for server in every_shape().into_iter().filter(Server::has_booted) {
        let step = decide(&server, &facts, now());
        assert_ne!(step, Step::Launch(LaunchReason::Retry), "{server:#?}");
    }
    let used_up = |server: &Server| {
        server
            .launch
            .as_ref()
            .is_some_and(|launch| launch.attempt >= 3)
    };
    for server in every_shape().into_iter().filter(used_up) {
        let step = decide(&server, &facts, now());
        assert_ne!(step, Step::Launch(LaunchReason::Retry), "{server:#?}");
    }
}

#[test]
fn deleted_server_is_never_launched_started_or_changed() {
    let (policy, scan) = (ControllerPolicy::default(), scan());
    let verbs = OptionalVerb::ALL.into();
    let facts = facts(&verbs, &scan, &policy);
    let deleted = |server: &Server| server.intent.power == Power::Deleted;
    for server in every_shape().into_iter().filter(deleted) {
        let step = decide(&server, &facts, now());
        let allowed = matches!(
            step,
            Step::Settle | Step::Terminate(_) | Step::DeleteRecord | Step::Wait(..)
        );
        assert!(allowed, "{step:?}: {server:#?}");
    }
}

/// Whether the tenant requested the end of the machine: by a deletion, a replacement, or a change that needs one.
fn end_requested(server: &Server, verbs: &BTreeSet<OptionalVerb>) -> bool {
    let (Some(launch), Some(machine)) = (&server.launch, &server.machine) else {
        return false;
    };
    let plan = machine.plan_to(&server.spec, verbs);
    let marked = machine.termination.map(|termination| termination.reason);
    server.intent.power == Power::Deleted
        || server.intent.replaces > launch.replaces
        || plan.has(crate::server::ChangeMethod::Replace)
        || matches!(
            marked,
            Some(TerminationReason::Delete | TerminationReason::Replace)
        )
}

#[test]
fn machine_that_ran_is_terminated_only_on_request() {
    let (policy, scan) = (ControllerPolicy::default(), scan());
    for verbs in [BTreeSet::new(), OptionalVerb::ALL.into()] {
        let facts = facts(&verbs, &scan, &policy);
        for server in every_shape().into_iter().filter(Server::has_booted) {
            // A machine that did not boot in time may be marked from before it was observed running.
            let failed = |machine: &crate::server::Machine| {
                machine
                    .termination
                    .is_some_and(|termination| termination.reason == TerminationReason::Failed)
            };
            if server.machine.as_ref().is_some_and(failed) {
                continue;
            }
            let step = decide(&server, &facts, now());
            let terminates = matches!(step, Step::Terminate(_));
            assert!(
                !terminates || end_requested(&server, &verbs),
                "{step:?}: {server:#?}"
            );
        }
    }
}

#[test]
fn nothing_is_stopped_or_terminated_for_a_change_that_cannot_be_applied() {
    let (policy, scan, verbs) = (
        ControllerPolicy::default(),
        scan(),
        OptionalVerb::ALL.into(),
    );
    let mut facts = facts(&verbs, &scan, &policy);
    facts.refusal = Some("no mapping");
    for server in every_shape() {
        let step = decide(&server, &facts, now());
        let marked = server
            .machine
            .as_ref()
            .is_some_and(|machine| machine.termination.is_some());
        let stops = step == Step::Stop;
        assert!(
            !stops || server.intent.power == Power::Stopped,
            "{server:#?}"
        );
        let replaces = step == Step::Terminate(TerminationReason::Replace);
        assert!(!replaces || marked, "{server:#?}");
        let changes = matches!(step, Step::Resize | Step::Reimage);
        assert!(!changes, "{step:?}: {server:#?}");
    }
}

/// Whatever is pending and refused, a machine that runs or is stopped is brought to the desired power state by the next step.
#[test]
fn refused_change_delays_no_power_request() {
    let (policy, scan, verbs) = (
        ControllerPolicy::default(),
        scan(),
        OptionalVerb::ALL.into(),
    );
    let mut facts = facts(&verbs, &scan, &policy);
    facts.refusal = Some("no mapping");
    let mut checked = 0;
    for server in every_shape() {
        let Some(machine) = &server.machine else {
            continue;
        };
        let acted = machine
            .last_action
            .is_some_and(|last| last.at > scan.at - chrono::TimeDelta::seconds(10));
        let Some(seen) = server.current_observation() else {
            continue;
        };
        if machine.termination.is_some() || acted || seen.presence != Presence::Shown {
            continue;
        }
        let reboot = server.intent.reboots > machine.reboots;
        let expected = match (server.intent.power, seen.state, reboot) {
            (Power::Stopped, CloudInstanceState::Running, _) => "stop",
            (Power::Running, CloudInstanceState::Stopped, _) => "start",
            (Power::Running, CloudInstanceState::Running, true) => "reboot",
            _ => continue,
        };
        checked += 1;
        let step = decide(&server, &facts, now());
        assert_eq!(step.name(), expected, "{server:#?}");
    }
    assert!(checked > 20, "only {checked} shapes were checked");
}

proptest! {
    /// Whatever the date and the scan are, the decision is always the same, and names no time that has passed.
    #[test]
    fn decision_is_total_and_deterministic(
        shape in 0..SHAPES.len(), seconds in -200_000_i64..200_000, look in 0_u64..100_000,
        known: bool,
    ) {
        let server = &SHAPES[shape];
        let date = now() + chrono::TimeDelta::seconds(seconds);
        let mut scan = scan();
        scan.at = fleetwright_runtime::clock::later(chrono::DateTime::UNIX_EPOCH, std::time::Duration::from_secs(look));
        let (policy, verbs) = (ControllerPolicy::default(), OptionalVerb::ALL.into());
        let mut facts = facts(&verbs, &scan, &policy);
        if !known {
            facts.scan = None;
        }
        let step = decide(server, &facts, date);
        prop_assert_eq!(&step, &decide(server, &facts, date));
        if let Step::Wait(_, Some(until)) = step {
            prop_assert!(until > date, "{} is not after {}", until, date);
        }
    }
}

#[test]
fn new_server_launches_and_new_deleted_server_is_removed() {
    let (policy, scan, verbs) = (ControllerPolicy::default(), scan(), BTreeSet::new());
    let facts = facts(&verbs, &scan, &policy);
    let step = |power| decide(&new(power), &facts, now());
    assert_eq!(step(Power::Running), Step::Launch(LaunchReason::First));
    assert_eq!(step(Power::Stopped), Step::Launch(LaunchReason::First));
    assert_eq!(step(Power::Deleted), Step::DeleteRecord);
}
