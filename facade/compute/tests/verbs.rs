//! Power requests, reboots, replacements, and the calls that use the machine, with their events.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{num::NonZeroUsize, time::Duration};

use fleetwright::Reboot;
use fleetwright_compute::{
    ComputeError, Meaning,
    instance::{ConditionKind, EventKind, Instance, InstanceId},
    service::Instances,
};
use fleetwright_facade_testkit::{
    TestFacade, error_chain, has_condition, memory_store, name, operator,
    principals::user_with,
    project_user,
    stores::{FaultKind, InterceptedStore, OneFault},
    tenant,
};
use fleetwright_identity::{AuditEntry, AuditOutcome, Permission, Principal, Resource, Verb};
use fleetwright_memory::{Fault, MemoryCloud, RefusalReason, Rule, WireCall};
use fleetwright_region::{
    server::{Phase, Power},
    snapshot::NewSnapshot,
};

fn new_snapshot() -> NewSnapshot {
    let mut new = NewSnapshot::new(name("copy"));
    let tags = [
        ("team", "blue"),
        ("fleetwright:token", "forged"),
        ("fleetwright/server", "forged"),
        ("Fleetwright-Image", "forged"),
    ];
    new.tags = tags.map(|(key, value)| (key.into(), value.into())).into();
    new
}

#[tokio::test(start_paused = true)]
async fn requests_are_recorded_once_and_only_if_they_change_something() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    let id = facade.create(blue, "web").await.instance.id;
    let created = facade.read(id).await.revision;
    let same = instances.start(&alice, id).await.unwrap();
    assert_eq!((same.revision, same.generation), (created, 1));
    let stopped = instances.stop(&alice, id).await.unwrap();
    assert_eq!(stopped.generation, 2);
    assert_eq!(instances.stop(&alice, id).await.unwrap(), stopped);
    let error = instances
        .reboot(&alice, id, Reboot::Soft)
        .await
        .unwrap_err();
    assert_eq!(
        (error.meaning(), error.to_string()),
        (
            Meaning::Conflict,
            format!(
                "instance {id} is not ready: it is stopped or being stopped; it must be running: start it first"
            )
        )
    );
    assert_eq!(
        error.retry_after(),
        None,
        "a retry cannot succeed before a start"
    );
    instances.replace(&alice, id).await.unwrap();
    // A replacement keeps the desired power state.
    assert_eq!(facade.read(id).await.instance.intent.power, Power::Stopped);
    instances.start(&alice, id).await.unwrap();
    instances.reboot(&alice, id, Reboot::Hard).await.unwrap();
    let last = instances.reboot(&alice, id, Reboot::Soft).await.unwrap();
    let instance = facade.read(id).await.instance;
    assert_eq!((instance.generation, last.generation), (6, 6));
    let intent = &instance.intent;
    assert_eq!(
        (intent.reboots, intent.reboot_how, intent.replaces),
        (2, Reboot::Soft, 1)
    );
    let events: Vec<_> = instance
        .events
        .iter()
        .map(|event| (event.kind, event.message.as_str()))
        .collect();
    assert_eq!(
        events[1..],
        [
            (EventKind::Requested, "a stop was requested"),
            (
                EventKind::LossAccepted,
                "a replacement was requested: the data on its root disk and its addresses are lost"
            ),
            (EventKind::Requested, "a start was requested"),
            (EventKind::Requested, "a hard reboot was requested"),
            (EventKind::Requested, "a soft reboot was requested"),
        ]
    );
    assert_eq!(instances.events(&alice, id).await.unwrap(), instance.events);
}

async fn errors_of_all_calls(
    instances: &Instances,
    principal: &Principal,
    id: InstanceId,
) -> Vec<ComputeError> {
    let results = [
        instances.start(principal, id).await.map(drop),
        instances.stop(principal, id).await.map(drop),
        instances
            .reboot(principal, id, Reboot::Hard)
            .await
            .map(drop),
        instances.replace(principal, id).await.map(drop),
        instances
            .console_output(principal, id, None)
            .await
            .map(drop),
        instances.console_session(principal, id).await.map(drop),
        instances.ssh_key(principal, id).await.map(drop),
        instances
            .snapshot(principal, id, &new_snapshot())
            .await
            .map(drop),
    ];
    results.into_iter().filter_map(Result::err).collect()
}

#[tokio::test(start_paused = true)]
async fn instance_being_deleted_refuses_other_requests() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    let instance = facade.create(blue, "web").await.instance;
    let id = instance.id;
    facade.make_machine(&instance).await;
    instances.delete(&alice, id).await.unwrap();
    let marked = facade.read(id).await;
    instances.delete(&alice, id).await.unwrap();
    assert_eq!(facade.read(id).await, marked);
    let refused = errors_of_all_calls(instances, &alice, id).await;
    assert_eq!(refused.len(), 8);
    for error in refused {
        assert!(
            matches!(error, ComputeError::Deleting(found) if found == id),
            "{error}"
        );
    }
    // Until its server is deleted it keeps its allocation.
    assert_eq!(facade.count("allocation").await, 1);
}

/// Before its server and before its machine exist, machine calls are refused with a delay, and no message names a server.
#[tokio::test(start_paused = true)]
async fn instance_without_machine_accepts_requests_and_refuses_machine_calls() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    let instance = facade.create(blue, "web").await.instance;
    for step in 0..2 {
        let refused = errors_of_all_calls(instances, &alice, instance.id).await;
        // The key exists as soon as the server does; a stopped instance cannot be rebooted.
        assert_eq!(refused.len(), [5, 4][step], "{refused:?}");
        for error in refused {
            assert_eq!(error.meaning(), Meaning::Conflict, "{error:?}");
            let needs_start = error.to_string().contains("start it first");
            assert_eq!(error.retry_after().is_none(), needs_start, "{error}");
            assert!(!error.to_string().contains("server"), "{error}");
        }
        facade
            .make_server(&facade.read(instance.id).await.instance)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn machine_calls_return_its_own_data_and_add_events() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    let instance = facade.create(blue, "web").await.instance;
    let other = facade.create(blue, "other").await.instance;
    let id = instance.id;
    facade.make_server(&instance).await;
    facade.make_server(&other).await;
    facade
        .during_region(async {
            facade.until_server_phase(id, Phase::Running).await;
            let two = NonZeroUsize::new(2);
            instances.console_output(&alice, id, two).await.unwrap();
            let session = instances.console_session(&alice, id).await.unwrap();
            let key = instances.ssh_key(&alice, id).await.unwrap();
            let another = instances.ssh_key(&alice, other.id).await.unwrap();
            assert_ne!(key.expose(), another.expose());
            let image = instances
                .snapshot(&alice, id, &new_snapshot())
                .await
                .unwrap();
            assert_eq!(
                instances
                    .snapshot(&alice, id, &new_snapshot())
                    .await
                    .unwrap()
                    .id,
                image.id
            );
            let tags: Vec<_> = image.tags.iter().collect();
            assert!(tags.contains(&("team", "blue")), "{tags:?}");
            assert!(
                !tags.iter().any(|(_, value)| *value == "forged"),
                "{tags:?}"
            );
            assert!(
                tags.iter()
                    .any(|(_, value)| *value == id.server().to_string()),
                "{tags:?}"
            );
            let read = facade.read(id).await.instance;
            let shown = read
                .events
                .iter()
                .filter(|event| event.kind == EventKind::Accessed);
            let shown: Vec<_> = shown.map(|event| event.message.as_str()).collect();
            // The repeated request is the same one. Keys and consoles are in the audit log.
            assert_eq!(shown, ["a snapshot of its disk was requested"]);
            assert!(read.events.iter().all(|event| &event.by == alice.actor()));
            // The desired state has not changed.
            assert_eq!(read.generation, 1);
            let secret = key.expose_text().unwrap();
            let line = secret.lines().nth(1).unwrap();
            let text = format!("{read:?} {session:?} {key:?}");
            assert!(!text.contains(line));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn secret_is_not_returned_if_its_audit_entry_cannot_be_written() {
    let store = memory_store();
    let facade = TestFacade::builder()
        .store(store.clone())
        .server_quota(5)
        .build()
        .await;
    let blue = facade.network("blue").await;
    let alice = project_user(tenant(1, 1));
    let instance = facade.create(blue, "web").await.instance;
    facade.make_server(&instance).await;
    for number in 0.. {
        let faulty = InterceptedStore::new(store.clone(), OneFault::new(number, FaultKind::Fails));
        let process = facade.reopen(faulty.clone()).await;
        let shown = process.instances.ssh_key(&alice, instance.id).await;
        if !faulty.interceptor.was_reached() {
            shown.unwrap();
            break;
        }
        assert_eq!(shown.unwrap_err().meaning(), Meaning::Unavailable);
        assert_eq!(facade.audit_entries_of(instance.id).await.len(), 1);
    }
    let entries = facade.audit_entries_of(instance.id).await;
    assert_eq!(entries.len(), 2);
    let disclosed = |entry: &&AuditEntry| entry.outcome == AuditOutcome::Disclosed;
    assert_eq!(entries.iter().filter(disclosed).count(), 1);
}

/// A server with the id of the instance's server is used only if it names the instance as its owner.
#[tokio::test(start_paused = true)]
async fn server_of_another_owner_is_not_accessible_by_its_id() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let alice = project_user(tenant(1, 1));
    let instance = facade.create(blue, "web").await.instance;
    facade.make_server(&instance).await;
    for (field, value) in [
        ("project", tenant(1, 2).1.to_string()),
        ("region", "south".to_owned()),
    ] {
        let key = instance.server.to_string();
        facade
            .patch("server", &key, |server| server[field] = value.into())
            .await;
        let error = facade
            .instances
            .ssh_key(&alice, instance.id)
            .await
            .unwrap_err();
        assert!(matches!(error, ComputeError::NotReady { .. }), "{error}");
        facade.remove("server", &key).await;
        facade.remove("server-key", &key).await;
        facade.make_server(&instance).await;
    }
}

#[tokio::test(start_paused = true)]
async fn unsupported_and_unavailable_machine_calls_are_reported() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    let instance = facade.create(blue, "web").await.instance;
    facade.make_server(&instance).await;
    let id = instance.id;
    facade
        .during_region(facade.until_server_phase(id, Phase::Running))
        .await;
    let busy = Fault::Refused(RefusalReason::Throttled(Duration::from_secs(77)));
    facade
        .cloud
        .faults()
        .add(Rule::nth(WireCall::ConsoleOutput, 1, busy));
    let error = instances.console_output(&alice, id, None).await;
    let error = error.unwrap_err();
    assert_eq!(error.meaning(), Meaning::Unavailable, "{error:?}");
    assert!(error.retry_after().is_some());
    instances.console_output(&alice, id, None).await.unwrap();
    // A service without access to machines.
    let bare = facade.without_machines();
    let error = bare.console_session(&alice, id).await.unwrap_err();
    assert_eq!((error.meaning().status(), error.retry_after()), (501, None));
    let expected = format!("instance {id}: console-session is not offered in its region");
    assert_eq!(error_chain(&error), expected);
}

#[tokio::test(start_paused = true)]
async fn inspect_shows_server_and_allocation_to_operators_only() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let instance = facade.create(blue, "web").await.instance;
    let (id, operator) = (instance.id, operator());
    let before = facade.instances.inspect(&operator, id).await.unwrap();
    assert!(before.server.is_none());
    assert_eq!(
        before.allocation.unwrap().pays_for.key.as_str(),
        id.to_string()
    );
    facade.make_server(&instance).await;
    let after = facade.instances.inspect(&operator, id).await.unwrap();
    assert_eq!(after.server.unwrap().server.owner, id.owner());
    let error = facade
        .instances
        .inspect(&project_user(tenant(1, 1)), id)
        .await
        .unwrap_err();
    assert_eq!(error.meaning(), Meaning::Forbidden);
    let servers = Permission::new(Verb::Read, Resource::Servers).unwrap();
    let blind = user_with(instance.scope(), [servers]);
    let error = facade.instances.inspect(&blind, id).await.unwrap_err();
    assert_eq!(error.meaning(), Meaning::NotFound);
}

/// A reboot that the region's cloud does not have is refused at once, and nothing is recorded.
#[tokio::test(start_paused = true)]
async fn reboot_is_refused_where_the_cloud_has_none() {
    let cloud = fleetwright_memory::MemoryCloud::builder()
        .without_verb(fleetwright::OptionalVerb::RebootInstance)
        .build();
    let (facade, _, id) = TestFacade::running_instance(&cloud).await;
    let alice = project_user(tenant(1, 1));
    let before = facade.read(id).await;
    for how in [Reboot::Soft, Reboot::Hard] {
        let error = facade.instances.reboot(&alice, id, how).await.unwrap_err();
        assert_eq!(error.meaning().status(), 501, "{error}");
        assert!(error.to_string().contains("reboot"), "{error}");
    }
    assert_eq!(facade.read(id).await.revision, before.revision);
    facade.instances.stop(&alice, id).await.unwrap();
    let error = facade.instances.reboot(&alice, id, Reboot::Soft).await;
    assert_eq!(error.unwrap_err().meaning().status(), 501);
}

/// A retry is advised only where the same call can succeed by itself.
#[tokio::test(start_paused = true)]
async fn no_retry_is_advised_where_waiting_does_not_help() {
    let (facade, _, id) = TestFacade::running_instance(&MemoryCloud::new()).await;
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    instances.stop(&alice, id).await.unwrap();
    let stopped = |instance: &Instance| instance.status.phase == Phase::Stopped;
    facade.during(facade.until(id, stopped)).await;
    let error = instances.console_session(&alice, id).await.unwrap_err();
    assert_eq!(error.retry_after(), None, "{error}");
    assert!(error.to_string().contains("start it first"), "{error}");
    // An operator removes the machine.
    facade.delete_server(id).await;
    facade
        .during(facade.until(id, |instance| {
            has_condition(instance, ConditionKind::MachineRemoved)
        }))
        .await;
    for error in [
        instances
            .console_output(&alice, id, None)
            .await
            .map(drop)
            .unwrap_err(),
        instances.ssh_key(&alice, id).await.map(drop).unwrap_err(),
        instances
            .console_session(&alice, id)
            .await
            .map(drop)
            .unwrap_err(),
    ] {
        assert_eq!(error.retry_after(), None, "{error}");
        assert!(error.to_string().contains("replaced or deleted"), "{error}");
    }
    instances.replace(&alice, id).await.unwrap();
    let error = instances.ssh_key(&alice, id).await.unwrap_err();
    assert!(error.retry_after().is_some(), "{error}");
    // An instance that is being deleted accepts the same request at no later time.
    instances.delete(&alice, id).await.unwrap();
    let error = instances.stop(&alice, id).await.unwrap_err();
    assert_eq!(error.retry_after(), None, "{error}");
}
