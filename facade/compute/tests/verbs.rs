//! What is done with an instance, and what is shown of its machine: wishes that stay, and events of what was shown.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{num::NonZeroUsize, time::Duration};

use fleetwright::Reboot;
use fleetwright_compute::{
    ComputeError, Meaning,
    instance::{EventKind, InstanceId},
    service::Instances,
};
use fleetwright_facade_testkit::{
    TestFacade, error_chain, memory_store, name, operator,
    principals::user_with,
    project_user,
    stores::{FaultKind, InterceptedStore, OneFault},
    tenant,
};
use fleetwright_identity::{Permission, Principal, Resource, Verb};
use fleetwright_memory::{Fault, RefusalReason, Rule, WireCall};
use fleetwright_region::{
    ids::ImageId,
    server::{Phase, Power},
    snapshot::NewSnapshot,
};

fn copy() -> NewSnapshot {
    let image = ImageId::new("0b9c4a52-7d0f-4c1e-9f5e-3a2f6d1c8e77").unwrap();
    let mut new = NewSnapshot::new(image, name("copy"));
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
async fn wishes_are_in_the_record_each_once_and_only_if_they_change_something() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    let id = facade.create(blue, "web").await.instance.id;
    let made = facade.read(id).await.revision;
    let same = instances.start(&alice, id).await.unwrap();
    assert_eq!((same.revision, same.generation), (made, 1));
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
    assert!(error.retry_after().is_some());
    instances.replace(&alice, id).await.unwrap();
    // A replacement keeps what is asked of it.
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
    let told: Vec<_> = instance
        .events
        .iter()
        .map(|event| (event.kind, event.message.as_str()))
        .collect();
    assert_eq!(
        told[1..],
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

async fn each(instances: &Instances, who: &Principal, id: InstanceId) -> Vec<ComputeError> {
    let answers = [
        instances.start(who, id).await.map(drop),
        instances.stop(who, id).await.map(drop),
        instances.reboot(who, id, Reboot::Hard).await.map(drop),
        instances.replace(who, id).await.map(drop),
        instances.console_output(who, id, None).await.map(drop),
        instances.console_session(who, id).await.map(drop),
        instances.ssh_key(who, id).await.map(drop),
        instances.snapshot(who, id, &copy()).await.map(drop),
    ];
    answers.into_iter().filter_map(Result::err).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_being_deleted_takes_no_other_wish_and_no_second_deletion() {
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
    let refused = each(instances, &alice, id).await;
    assert_eq!(refused.len(), 8);
    for error in refused {
        assert!(
            matches!(error, ComputeError::Deleting(found) if found == id),
            "{error}"
        );
    }
    // Until its server is gone it stands where it did, and is paid for.
    assert_eq!(facade.count("allocation").await, 1);
}

/// Before there is a server, and before there is a machine: told to come again, in words that name no server.
#[tokio::test(start_paused = true)]
async fn what_is_not_built_yet_is_asked_for_again_and_wishes_are_taken() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    let instance = facade.create(blue, "web").await.instance;
    for step in 0..2 {
        let refused = each(instances, &alice, instance.id).await;
        // The key is there from the first moment of the server; a stopped one is not rebooted.
        assert_eq!(refused.len(), [5, 4][step], "{refused:?}");
        for error in refused {
            assert_eq!(error.meaning(), Meaning::Conflict, "{error:?}");
            assert!(error.retry_after().is_some());
            assert!(!error.to_string().contains("server"), "{error}");
        }
        facade
            .make_server(&facade.read(instance.id).await.instance)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_of_a_machine_is_its_own_and_is_an_event() {
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
            let image = instances.snapshot(&alice, id, &copy()).await.unwrap();
            assert_eq!(
                instances.snapshot(&alice, id, &copy()).await.unwrap().id,
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
            let copied = "a snapshot of its disk was requested";
            assert_eq!(
                shown,
                [
                    "a console session was opened",
                    "the private SSH key was read",
                    copied,
                    copied
                ]
            );
            assert!(read.events.iter().all(|event| &event.by == alice.actor()));
            // Nothing else is asked of it by that.
            assert_eq!(read.generation, 1);
            let secret = key.expose_text().unwrap();
            let line = secret.lines().nth(1).unwrap();
            let told = format!("{read:?} {session:?} {key:?}");
            assert!(!told.contains(line));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_written_keeps_the_secret() {
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
        let fated = InterceptedStore::new(store.clone(), OneFault::new(number, FaultKind::Fails));
        let cut = facade.reopen(fated.clone()).await;
        let shown = cut.instances.ssh_key(&alice, instance.id).await;
        if !fated.interceptor.was_reached() {
            shown.unwrap();
            break;
        }
        assert_eq!(shown.unwrap_err().meaning(), Meaning::Unavailable);
        assert_eq!(facade.read(instance.id).await.instance.events.len(), 1);
    }
    assert_eq!(facade.read(instance.id).await.instance.events.len(), 2);
}

/// Whatever a server of that id is, it is not this tenant's unless it says so itself.
#[tokio::test(start_paused = true)]
async fn a_server_of_another_owner_is_shown_to_nobody_by_its_id() {
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
async fn what_a_cloud_does_not_offer_or_cannot_do_now_is_told_so() {
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
    // Where nobody said how machines are asked.
    let bare = facade.without_machines();
    let error = bare.console_session(&alice, id).await.unwrap_err();
    assert_eq!((error.meaning().status(), error.retry_after()), (501, None));
    let words = format!("instance {id}: console-session is not offered in its region");
    assert_eq!(error_chain(&error), words);
}

#[tokio::test(start_paused = true)]
async fn an_operator_sees_the_server_and_the_payment_and_a_tenant_does_not() {
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
