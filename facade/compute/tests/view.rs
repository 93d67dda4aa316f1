//! The view of an instance: its health, how old the observation is, and what it waits for.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use chrono::{DateTime, Utc};
use fleetwright_compute::{
    instance::{Instance, Provisioning},
    service::{InstanceView, UpdateInstance},
};
use fleetwright_facade_testkit::{TestFacade, flavor, operator, project_user, tenant};
use fleetwright_region::server::Health;
use fleetwright_store::{RecordId, Transaction};
use serde_json::{Value, json};

async fn new_instance() -> (TestFacade, Instance) {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let instance = facade.create(blue, "web").await.instance;
    (facade, instance)
}

/// Writes a status as the controller does.
async fn status(facade: &TestFacade, instance: &Instance, change: impl FnOnce(&mut Value)) {
    let key = instance.id.to_string();
    facade
        .patch("instance", &key, |value| change(&mut value["status"]))
        .await;
}

/// Writes a scan of now as the monitor does.
async fn write_scan(facade: &TestFacade) -> DateTime<Utc> {
    let now = facade.clock.now();
    let scan = json!({
        "region": "north", "at": now, "tick": { "secs": 10, "nanos": 0 }, "machines": 1, "servers": 1,
        "gaps": [], "frozen": null, "orphans": [],
    });
    let id = RecordId::new("region-scan", "north").unwrap();
    let transaction = Transaction::new().put(id, scan);
    facade.store.commit(&transaction).await.unwrap();
    now
}

async fn health(facade: &TestFacade, instance: &Instance) -> (Health, Option<DateTime<Utc>>) {
    let view = facade.read(instance.id).await;
    (view.health, view.observed_at)
}

#[tokio::test(start_paused = true)]
async fn scan_from_before_a_clock_was_set_back_proves_no_health() {
    let (facade, instance) = new_instance().await;
    let seen = facade.clock.now();
    write_scan(&facade).await;
    for (ahead, expected) in [(0, Health::Healthy), (3600, Health::Unknown)] {
        let at = seen + Duration::from_secs(ahead);
        status(&facade, &instance, |status| {
            (status["phase"], status["health"]) = ("running".into(), "healthy".into());
            status["observed_at"] = json!(at);
        })
        .await;
        assert_eq!(
            health(&facade, &instance).await.0,
            expected,
            "{ahead}s ahead"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn health_is_unknown_after_two_missed_scans() {
    let (facade, instance) = new_instance().await;
    assert_eq!(health(&facade, &instance).await, (Health::Unknown, None));
    let seen = facade.clock.now();
    status(&facade, &instance, |status| {
        (status["phase"], status["health"]) = ("running".into(), "healthy".into());
        status["observed_at"] = json!(seen);
    })
    .await;
    // The region is not scanned.
    assert_eq!(health(&facade, &instance).await.0, Health::Unknown);
    let at = write_scan(&facade).await;
    assert_eq!(
        health(&facade, &instance).await,
        (Health::Healthy, Some(at))
    );
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(
        health(&facade, &instance).await,
        (Health::Healthy, Some(at))
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(
        health(&facade, &instance).await,
        (Health::Unknown, Some(at))
    );
    // A scan without a change makes the health known again, in lists too.
    let at = write_scan(&facade).await;
    assert_eq!(
        health(&facade, &instance).await,
        (Health::Healthy, Some(at))
    );
    let principal = project_user(tenant(1, 1));
    let page = facade
        .instances
        .list(&principal, &Default::default())
        .await
        .unwrap();
    let (listed, read) = (&page.instances[0], facade.read(instance.id).await);
    assert_eq!(
        (listed.instance.id, listed.health, listed.observed_at),
        (instance.id, read.health, read.observed_at)
    );
    // A lost machine is reported without a scan.
    status(&facade, &instance, |status| {
        (status["phase"], status["health"]) = ("lost".into(), "error".into());
    })
    .await;
    tokio::time::advance(Duration::from_secs(100)).await;
    assert_eq!(health(&facade, &instance).await.0, Health::Error);
}

fn waits(view: &InstanceView) -> Option<(&str, DateTime<Utc>)> {
    let waiting = view.waiting.as_ref()?;
    Some((&waiting.what, waiting.since))
}

#[tokio::test(start_paused = true)]
async fn waiting_shows_reason_date_and_last_attempt() {
    let (facade, instance) = new_instance().await;
    let (id, alice, began) = (instance.id, project_user(tenant(1, 1)), instance.created_at);
    let view = facade.read(id).await;
    assert_eq!(view.provisioning, Provisioning::Pending);
    assert_eq!(waits(&view), Some(("its launch is being prepared", began)));
    assert_eq!(view.waiting.unwrap().last_attempt, None);
    // Its server has received everything, and the cloud has no capacity.
    facade.make_server(&instance).await;
    let failed =
        json!({ "not_before": began + Duration::from_secs(90), "failures": 3, "generation": 1 });
    let key = instance.server.to_string();
    facade
        .patch("server", &key, |server| server["retry"] = failed)
        .await;
    let key = id.to_string();
    facade.patch("instance", &key, |value| {
        value["status"]["applied_generation"] = 1.into();
        value["status"]["server"] = json!({ "replaces": 0, "generation": 1 });
        value["status"]["conditions"] = json!([
            { "kind": "next-launch", "message": "new user data wait for the next launch", "since": began },
        ]);
        let tried = json!({
            "at": began, "by": { "type": "service", "name": "compute" }, "kind": "problem", "message": "there is no m1 in north",
        });
        value["events"].as_array_mut().unwrap().push(tried);
    })
    .await;
    let view = facade.read(id).await;
    assert_eq!(view.provisioning, Provisioning::Provisioning);
    assert_eq!(
        waits(&view),
        Some(("new user data wait for the next launch", began))
    );
    let waiting = view.waiting.unwrap();
    let tried = waiting.last_attempt.unwrap();
    assert_eq!(
        (tried.what.as_str(), tried.failures),
        ("there is no m1 in north", Some(3))
    );
    assert_eq!(waiting.next_attempt, Some(began + Duration::from_secs(90)));
    // A condition that needs a decision comes first.
    status(&facade, &instance, |status| {
        let stuck =
            json!({ "kind": "attempts-exhausted", "message": "request a replacement", "since": began });
        status["conditions"].as_array_mut().unwrap().push(stuck);
    })
    .await;
    let view = facade.read(id).await;
    assert_eq!(view.provisioning, Provisioning::Error);
    assert_eq!(waits(&view), Some(("request a replacement", began)));
    // An instance whose desired state is applied waits for nothing.
    status(&facade, &instance, |status| {
        status["conditions"] = json!([]);
        (status["phase"], status["observed_generation"]) = ("running".into(), 1.into());
    })
    .await;
    let view = facade.read(id).await;
    assert_eq!(
        (view.provisioning, waits(&view)),
        (Provisioning::Provisioned, None)
    );
    // A change is waited for since it was requested.
    tokio::time::advance(Duration::from_secs(60)).await;
    let mut wanted = UpdateInstance::of(&view.instance);
    wanted.spec.flavor = flavor("large");
    let (view, _) = facade.instances.update(&alice, id, &wanted).await.unwrap();
    let now = facade.clock.now();
    assert_eq!(
        waits(&view),
        Some(("the requested change is not applied yet", now))
    );
    status(&facade, &instance, |status| {
        status["applied_generation"] = 2.into();
    })
    .await;
    assert_eq!(
        waits(&facade.read(id).await),
        Some(("its machine has not reached the requested state yet", now))
    );
    // So is a replacement.
    tokio::time::advance(Duration::from_secs(60)).await;
    facade.instances.replace(&alice, id).await.unwrap();
    assert_eq!(
        waits(&facade.read(id).await),
        Some((
            "the requested change is not applied yet",
            facade.clock.now()
        ))
    );
    // Also if so much has happened since that its event was dropped.
    let requested = facade.clock.now();
    tokio::time::advance(Duration::from_secs(60)).await;
    facade
        .patch("instance", &id.to_string(), |value| {
            value["events"] = json!([]);
        })
        .await;
    assert_eq!(
        waits(&facade.read(id).await),
        Some(("the requested change is not applied yet", requested))
    );
    facade.instances.delete(&alice, id).await.unwrap();
    let view = facade.read(id).await;
    assert_eq!(view.provisioning, Provisioning::Deprovisioning);
    assert_eq!(
        waits(&view),
        Some(("its deletion is not complete yet", facade.clock.now()))
    );
}

#[tokio::test(start_paused = true)]
async fn user_data_is_in_the_record_and_never_in_text() {
    let (facade, instance) = new_instance().await;
    let mut wanted = UpdateInstance::of(&instance);
    let data = fleetwright::UserData::new("#!/bin/sh\n# hunter2\n").unwrap();
    wanted.spec.user_data = Some(data.clone());
    let alice = project_user(tenant(1, 1));
    let (view, _) = facade
        .instances
        .update(&alice, instance.id, &wanted)
        .await
        .unwrap();
    assert_eq!(view.instance.spec.user_data, Some(data));
    let events = facade.instances.events(&alice, instance.id).await.unwrap();
    let inspected = facade.instances.inspect(&operator(), instance.id).await;
    let text = format!(
        "{view:?} {wanted:?} {events:?} {:?} {:?}",
        inspected.unwrap(),
        facade.instances
    );
    assert!(!text.contains("hunter2"), "{text}");
}
