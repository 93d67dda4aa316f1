//! Console and key of a server's machine, and the errors while there is none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{num::NonZeroUsize, time::Duration};

use fleetwright::{OptionalVerb, Reboot};
use fleetwright_facade_testkit::{
    Tenant, TestFacade, new_snapshot, north, operator, server_id, tenant,
};
use fleetwright_identity::{
    Actor, ActorName, Binding, Permission, Principal, Resource, Role, RoleName, Roles, Scope, Verb,
};
use fleetwright_memory::{Fault, MemoryCloud, Phase as When, RefusalReason, Rule, WireCall};
use fleetwright_region::{
    machine::{MachineAccess, MachineError},
    secret::SshKeys,
    server::{Phase, Power, ServerId},
};

const VERBS: [Verb; 4] = [
    Verb::ConsoleOutput,
    Verb::ConsoleSession,
    Verb::SshKey,
    Verb::Snapshot,
];

async fn machine_call(
    machines: &MachineAccess,
    principal: &Principal,
    id: ServerId,
    verb: Verb,
) -> Result<(), MachineError> {
    match verb {
        Verb::ConsoleOutput => machines.console_output(principal, id, None).await.map(drop),
        Verb::ConsoleSession => machines.console_session(principal, id).await.map(drop),
        Verb::SshKey => machines.ssh_key(principal, id).await.map(drop),
        Verb::Snapshot => machines
            .snapshot(principal, id, &new_snapshot())
            .await
            .map(drop),
        other @ (Verb::Create
        | Verb::Read
        | Verb::List
        | Verb::Update
        | Verb::Delete
        | Verb::Start
        | Verb::Stop
        | Verb::Reboot) => panic!("{other:?} is no call to a machine"),
    }
}

/// A principal with these verbs on servers in a project.
fn somebody(tenant: Tenant, verbs: &[Verb]) -> Principal {
    let name = RoleName::new("some").unwrap();
    let permissions = verbs
        .iter()
        .map(|verb| Permission::new(*verb, Resource::Servers).unwrap());
    let scope = Scope::Project(tenant.0, tenant.1);
    let role = Role::new(name.clone(), scope.level(), permissions).unwrap();
    let roles = Roles::built_in().with(role).unwrap();
    let actor = Actor::User(ActorName::new("bob").unwrap());
    let binding = Binding::new(name, scope);
    roles.principal(actor, &[binding]).unwrap()
}

/// Checks that a future is `Send`, as a web server needs it.
fn may_move_between_threads<T: Send>(work: T) -> T {
    work
}

#[tokio::test(start_paused = true)]
async fn every_future_is_send() {
    let facade = TestFacade::on(&MemoryCloud::new()).await;
    facade.running_server().await;
    let (principal, new, id) = (operator(), new_snapshot(), server_id(1));
    let machines = &facade.machines;
    let output = may_move_between_threads(machines.console_output(&principal, id, None));
    let session = may_move_between_threads(machines.console_session(&principal, id));
    let key = may_move_between_threads(machines.ssh_key(&principal, id));
    let copy = may_move_between_threads(machines.snapshot(&principal, id, &new));
    let (output, session, key, copy) = tokio::join!(output, session, key, copy);
    assert!(output.is_ok() && session.is_ok() && key.is_ok() && copy.is_ok());
    may_move_between_threads(facade.region().snapshots.pass())
        .await
        .unwrap();
    drop(may_move_between_threads(facade.region().snapshots.run()));
}

#[tokio::test(start_paused = true)]
async fn each_verb_needs_its_own_permission_and_invisible_servers_look_absent() {
    let facade = TestFacade::on(&MemoryCloud::new()).await;
    facade.running_server().await;
    let (project, other_project) = (tenant(1, 1), tenant(1, 2));
    for verb in VERBS {
        let with = somebody(project, &[verb]);
        machine_call(&facade.machines, &with, server_id(1), verb)
            .await
            .unwrap();
        let all_but = Verb::ALL.into_iter().filter(|other| *other != verb);
        let all_but = somebody(project, &all_but.collect::<Vec<_>>());
        let refused = machine_call(&facade.machines, &all_but, server_id(1), verb).await;
        assert!(
            matches!(refused, Err(MachineError::Refused(_))),
            "{verb:?}: {refused:?}"
        );
        let stranger = somebody(other_project, &Verb::ALL);
        let hidden = machine_call(&facade.machines, &stranger, server_id(1), verb).await;
        let absent = machine_call(&facade.machines, &operator(), server_id(9), verb).await;
        let message_of = |result: Result<(), MachineError>| result.unwrap_err().to_string();
        let of_nine = server_id(9).to_string();
        assert_eq!(
            message_of(hidden),
            message_of(absent).replace(&of_nine, &server_id(1).to_string())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn console_output_is_complete_or_its_last_lines_and_hidden_in_debug() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let principal = operator();
    facade
        .during_region(async {
            let reboot = facade
                .servers
                .request_reboot(&principal, server_id(1), Reboot::Hard);
            reboot.await.unwrap();
            tokio::time::sleep(Duration::from_secs(60)).await;
            facade.until_server(Phase::Running).await;
        })
        .await;
    let machines = &facade.machines;
    let whole = machines
        .console_output(&principal, server_id(1), None)
        .await;
    let whole = whole.unwrap();
    let lines: Vec<_> = whole.text.lines().collect();
    assert!(
        lines.len() >= 2 && lines.concat().contains("boot 1 from img-7"),
        "{lines:?}"
    );
    let one = NonZeroUsize::new(1);
    let last = machines.console_output(&principal, server_id(1), one).await;
    assert_eq!(last.as_ref().unwrap().text, *lines.last().unwrap());
    let many = NonZeroUsize::new(1000);
    let all = machines
        .console_output(&principal, server_id(1), many)
        .await;
    assert_eq!(all.unwrap().text, whole.text);

    let session = machines
        .console_session(&principal, server_id(1))
        .await
        .unwrap();
    assert!(session.url.starts_with("memory://console/"));
    let key = machines.ssh_key(&principal, server_id(1)).await.unwrap();
    let text = key.expose_text().unwrap();
    assert!(text.contains("PRIVATE KEY"));
    let shown = format!("{whole:?} {last:?} {session:?} {key:?} {machines:?}");
    for secret in [
        "boot 1",
        "memory://",
        "PRIVATE",
        text.lines().nth(1).unwrap(),
    ] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

/// Returns the result of each verb, in the order of [`VERBS`].
async fn results(facade: &TestFacade) -> [String; 4] {
    let mut results = VERBS.map(|_| String::new());
    for (verb, result) in VERBS.into_iter().zip(&mut results) {
        *result = match machine_call(&facade.machines, &operator(), server_id(1), verb).await {
            Ok(()) => "ok".to_owned(),
            Err(MachineError::NotReady {
                found,
                wanted,
                retry_after,
                ..
            }) => {
                assert!(!retry_after.is_zero());
                format!("{found}, not {wanted}")
            }
            Err(MachineError::NoMachine { found, .. }) => found.to_owned(),
            Err(MachineError::Deleting(_)) => "deleting".to_owned(),
            Err(other) => panic!("{verb:?} returned {other:?}"),
        };
    }
    results
}

#[tokio::test(start_paused = true)]
async fn unavailable_call_states_the_required_phase_in_every_phase() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let principal = operator();
    facade.ensure_server().await;
    let waits = |found: &str| {
        let [output, session, snapshot] = ["launched", "running", "running or stopped"]
            .map(|wanted| format!("{found}, not {wanted}"));
        [output, session, "ok".to_owned(), snapshot]
    };
    assert_eq!(results(&facade).await, waits("not launched yet"));
    let busy = Fault::Refused(RefusalReason::Throttled(Duration::from_secs(1)));
    cloud.faults().add(Rule::nth(WireCall::Launch, 1, busy));
    facade
        .region()
        .controller
        .reconcile(server_id(1))
        .await
        .unwrap();
    assert_eq!(results(&facade).await, waits("being launched"));
    while facade.read_server().await.server.machine.is_none() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        facade
            .region()
            .controller
            .reconcile(server_id(1))
            .await
            .unwrap();
    }
    let [output, session, _, snapshot] = results(&facade).await;
    assert_eq!(
        [output, session, snapshot],
        [
            "ok",
            "booting, not running",
            "booting, not running or stopped"
        ]
    );

    let servers = &facade.servers;
    facade
        .during_region(async {
            let stop = servers
                .set_power(&principal, server_id(1), Power::Stopped)
                .await;
            stop.unwrap();
            facade.until_server(Phase::Stopped).await;
        })
        .await;
    assert_eq!(
        results(&facade).await,
        ["ok", "stopped, not running", "ok", "ok"]
    );
    facade
        .during_region(async {
            let start = servers
                .set_power(&principal, server_id(1), Power::Running)
                .await;
            start.unwrap();
            facade.until_server(Phase::Running).await;
            assert_eq!(results(&facade).await, ["ok"; 4]);
            servers
                .request_replace(&principal, server_id(1))
                .await
                .unwrap();
            facade.until_server(Phase::Replacing).await;
        })
        .await;
    let [output, session, ..] = results(&facade).await;
    assert_eq!(
        [output, session],
        [
            "being replaced, not launched",
            "being replaced, not running"
        ]
    );

    let machine = facade
        .during_region(facade.until_server(Phase::Running))
        .await
        .server
        .machine;
    cloud
        .external_actor()
        .terminate(&machine.unwrap().id)
        .unwrap();
    // The record still says running, but the cloud decides.
    let [output, session, ..] = results(&facade).await;
    for result in [output, session] {
        assert_eq!(
            result,
            "in another state than last observed, not observed again"
        );
    }
    facade.during_region(facade.until_server(Phase::Lost)).await;
    let [output, session, key, _] = results(&facade).await;
    assert_eq!(
        [output, session, key],
        ["has lost its machine", "has lost its machine", "ok"]
    );
    servers.delete(&principal, server_id(1)).await.unwrap();
    let [output, session, ..] = results(&facade).await;
    assert_eq!([output, session], ["deleting", "deleting"]);
}

#[tokio::test(start_paused = true)]
async fn cloud_errors_are_reported_with_a_retry_delay() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let faults = [
        (
            Fault::Refused(RefusalReason::Throttled(Duration::from_secs(77))),
            77,
        ),
        (Fault::Refused(RefusalReason::AccessDenied), 15),
        (Fault::Refused(RefusalReason::BadCredentials), 15),
        (Fault::Lost(When::Before), 15),
        (Fault::ServerError(When::After), 15),
        (Fault::Malformed, 15),
    ];
    let calls = [
        (Verb::ConsoleOutput, WireCall::ConsoleOutput),
        (Verb::ConsoleSession, WireCall::ConsoleSession),
    ];
    for (fault, seconds) in faults {
        for (verb, call) in calls {
            cloud.faults().add(Rule::nth(call, 1, fault.clone()));
            let error = machine_call(&facade.machines, &operator(), server_id(1), verb).await;
            let error = error.unwrap_err();
            assert!(
                matches!(error, MachineError::Unavailable { .. }),
                "{fault:?}: {error:?}"
            );
            let expected = Some(Duration::from_secs(seconds));
            assert_eq!(error.retry_after(), expected, "{fault:?}");
            machine_call(&facade.machines, &operator(), server_id(1), verb)
                .await
                .unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unsupported_verb_is_reported_as_unsupported() {
    let optional = [
        OptionalVerb::ConsoleOutput,
        OptionalVerb::ConsoleSession,
        OptionalVerb::SnapshotImage,
    ];
    let builder = MemoryCloud::builder();
    let cloud = optional
        .into_iter()
        .fold(builder, |builder, verb| builder.without_verb(verb));
    let cloud = cloud.build();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let before = cloud.oracle().total_calls();
    for verb in [Verb::ConsoleOutput, Verb::ConsoleSession, Verb::Snapshot] {
        let error = machine_call(&facade.machines, &operator(), server_id(1), verb).await;
        let error = error.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "the cloud of region north does not support {}",
                verb.as_str()
            )
        );
    }
    assert_eq!(
        cloud.oracle().total_calls(),
        before,
        "no call reached the cloud"
    );

    let facade = &facade;
    let (store, clock) = (facade.store.clone(), facade.clock.clone());
    let keyless =
        MachineAccess::new(store, clock, facade.catalog.clone(), SshKeys::Disabled).unwrap();
    let error = keyless
        .ssh_key(&operator(), server_id(1))
        .await
        .unwrap_err();
    assert!(matches!(error, MachineError::NoKeyring(_)), "{error:?}");
    let error = keyless.console_session(&operator(), server_id(1)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, MachineError::NoRegion(region) if region == north()));
}
