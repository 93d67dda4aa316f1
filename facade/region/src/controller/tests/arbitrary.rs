//! Records of every shape that matters to a decision, for the tests.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{
    CloudInstanceState, InstanceConfig, InstanceId, InstanceStatus, OptionalVerb, Tags,
};
use fleetwright_identity::{OrganizationId, ProjectId};
use fleetwright_runtime::clock::later;
use uuid::Uuid;

use super::super::{ControllerPolicy, Facts};
use crate::{
    ids::{FlavorId, ImageId, NetworkId, RegionId},
    monitor::RegionScan,
    server::{
        Booted, ChangeMethod, Field, Intent, LastAction, Launch, Machine, MachineAction, Observed,
        Owner, Power, Presence, RefusedChanges, Retry, Server, ServerId, ServerSpec, Termination,
        TerminationReason, TerminationResponse, UnconfirmedChange,
    },
};

/// A day after all records were made.
pub(in crate::controller) fn now() -> DateTime<Utc> {
    later(DateTime::UNIX_EPOCH, Duration::from_secs(86_400))
}

fn ago(seconds: u64) -> DateTime<Utc> {
    later(DateTime::UNIX_EPOCH, Duration::from_secs(86_400 - seconds))
}

pub(super) fn scan() -> RegionScan {
    serde_json::from_value(serde_json::json!({
        "region": "here", "at": ago(1), "tick": Duration::from_secs(2), "machines": 1, "servers": 1,
        "gaps": [], "frozen": null, "orphans": [],
    }))
    .unwrap()
}

pub(super) fn facts<'a>(
    verbs: &'a BTreeSet<OptionalVerb>,
    scan: &'a RegionScan,
    policy: &'a ControllerPolicy,
) -> Facts<'a> {
    Facts {
        verbs,
        usual_lag: Duration::from_secs(5),
        scan: Some(scan),
        policy,
        refusal: None,
    }
}

pub(super) fn spec() -> ServerSpec {
    ServerSpec::new(
        FlavorId::new("small").unwrap(),
        ImageId::new("linux").unwrap(),
        NetworkId::from_uuid(Uuid::from_u128(3)),
    )
}

/// A server of which nothing is launched.
pub(super) fn new(power: Power) -> Server {
    Server {
        id: ServerId::from_uuid(Uuid::from_u128(1)),
        owner: Owner::new("instance", "1"),
        region: RegionId::new("here").unwrap(),
        organization: OrganizationId::new(Uuid::from_u128(1)),
        project: ProjectId::new(Uuid::from_u128(2)),
        created_at: DateTime::UNIX_EPOCH,
        spec: spec(),
        intent: Intent::new(power),
        generation: 4,
        observed_generation: 3,
        launch: None,
        machine: None,
        retry: None,
        conditions: Vec::new(),
        observed: None,
        booted: None,
        drift: BTreeSet::new(),
        public_key: None,
        events: Vec::new(),
    }
}

pub(super) fn launch(server: &Server, sent_at: Option<DateTime<Utc>>, attempt: u32) -> Launch {
    Launch {
        incarnation: 3,
        token: server.token(3),
        attempt,
        life: 2,
        replaces: 0,
        reboots: 0,
        spec: spec(),
        config: InstanceConfig::builder("linux", "small").build().unwrap(),
        sent_at,
        spent: false,
        sealed_user_data: None,
        unconfirmed: None,
    }
}

fn machine(applied: ServerSpec) -> Machine {
    Machine {
        id: InstanceId::new("i-3").unwrap(),
        incarnation: 3,
        recorded_at: ago(40_000),
        applied,
        unconfirmed: UnconfirmedChange::default(),
        reboots: 0,
        last_action: None,
        refused: RefusedChanges::default(),
        termination: None,
        withdrawn_at: None,
    }
}

/// The least record for each place in the drawing and each reason to leave it.
pub(in crate::controller) fn every_shape() -> Vec<Server> {
    let mut shapes = Vec::new();
    for power in [Power::Running, Power::Stopped, Power::Deleted] {
        let bare = new(power);
        shapes.push(bare.clone());
        shapes.extend(launched(&bare));
        for applied in applied() {
            for (termination, last_action, unconfirmed) in actions() {
                let mut server = bare.clone();
                let mut current = machine(applied.clone());
                (current.termination, current.last_action) = (termination, last_action);
                current.unconfirmed.fields.extend(unconfirmed);
                server.machine = Some(current);
                shapes.extend(with_observation(&server));
            }
        }
    }
    shapes
}

fn launched(bare: &Server) -> Vec<Server> {
    let mut shapes = Vec::new();
    for (sent, spent, attempt, replaces, other) in [
        (true, false, 1, 0, false),
        (true, true, 1, 0, false),
        (false, false, 1, 0, false),
        (false, false, 1, 0, true),
        (false, true, 1, 0, false),
        (false, true, 3, 0, false),
        (false, true, 3, 1, false),
    ] {
        let mut server = bare.clone();
        let mut launch = launch(&server, sent.then(|| ago(60)), attempt);
        launch.spent = spent;
        server.launch = Some(launch);
        server.intent.replaces = replaces;
        if other {
            server.spec.image = ImageId::new("bsd").unwrap();
        }
        shapes.push(server.clone());
        server.retry = Some(Retry {
            since: Some(now()),
            not_before: later(now(), Duration::from_secs(9)),
            failures: 2,
            generation: server.generation,
        });
        shapes.push(server);
    }
    shapes
}

/// What may be applied to a machine: the desired spec, and one other spec for each change method.
fn applied() -> Vec<ServerSpec> {
    let methods = [
        ChangeMethod::Retag,
        ChangeMethod::Resize,
        ChangeMethod::Reimage,
        ChangeMethod::Replace,
    ];
    let other = methods.map(|method| {
        let mut spec = spec();
        match method {
            ChangeMethod::Retag | ChangeMethod::NextLaunch => {
                spec.tags = Tags::new().with("a", "b").unwrap();
            }
            ChangeMethod::Resize => spec.flavor = FlavorId::new("large").unwrap(),
            ChangeMethod::Reimage => spec.image = ImageId::new("bsd").unwrap(),
            ChangeMethod::Replace => spec.network = NetworkId::from_uuid(Uuid::from_u128(4)),
        }
        spec
    });
    std::iter::once(spec()).chain(other).collect()
}

type ActionState = (Option<Termination>, Option<LastAction>, Option<Field>);

fn actions() -> Vec<ActionState> {
    let last_action = |seconds| {
        Some(LastAction {
            action: MachineAction::Stop,
            at: ago(seconds),
        })
    };
    let termination = |reason, accepted_at| {
        Some(Termination {
            reason,
            accepted_at,
            response: accepted_at.map(|_| TerminationResponse::NotFound),
        })
    };
    vec![
        (None, None, None),
        (None, None, Some(Field::Image)),
        (None, last_action(60), None),
        (None, last_action(2), None),
        (termination(TerminationReason::Delete, None), None, None),
        (
            termination(TerminationReason::Replace, Some(ago(1))),
            None,
            None,
        ),
        (
            termination(TerminationReason::Failed, Some(ago(4000))),
            None,
            None,
        ),
        (
            termination(TerminationReason::Missing, Some(ago(1))),
            None,
            None,
        ),
        (termination(TerminationReason::Missing, None), None, None),
    ]
}

/// A server with a machine, in every observed state, booted or not, with every request.
fn with_observation(bare: &Server) -> Vec<Server> {
    let mut shapes = Vec::new();
    let presences = [
        Presence::Shown,
        Presence::Absent(ago(30)),
        Presence::Missing(ago(30)),
    ];
    for attempt in [1, 3] {
        for (booted, replaces, reboots) in [(false, 0, 0), (true, 0, 0), (true, 1, 0), (true, 0, 1)]
        {
            let mut server = bare.clone();
            server.launch = Some(launch(&server, None, attempt));
            server.booted = booted.then(|| Booted {
                incarnation: 3,
                at: ago(50),
            });
            (server.intent.replaces, server.intent.reboots) = (replaces, reboots);
            shapes.push(server.clone());
            for state in CloudInstanceState::ALL {
                for presence in presences {
                    let id = InstanceId::new("i-3").unwrap();
                    let mut seen = Observed::of(InstanceStatus::new(id, state), ago(50), None);
                    seen.presence = presence;
                    server.observed = Some(seen);
                    shapes.push(server.clone());
                }
            }
        }
    }
    shapes
}
