//! The lifecycle of an instance as its tenant sees it, with every loop running on the memory cloud.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright_compute::instance::{ConditionKind, EventKind, Instance, InstanceId, Provisioning};
use fleetwright_facade_testkit::{
    TestFacade, flavor, has_condition, image, instance_record, is_applied, is_running,
};
use fleetwright_memory::{Capacity, Fault, MemoryCloud, RefusalReason, Rule, WireCall};
use fleetwright_region::server::{ChangeMethod, Consent, Field, Health, Phase, Power};

fn kinds(instance: &Instance) -> Vec<EventKind> {
    instance.events.iter().map(|event| event.kind).collect()
}

async fn machine(facade: &TestFacade, id: InstanceId) -> String {
    let view = facade.server(id).await.unwrap();
    view.server.machine.unwrap().id.to_string()
}

/// The revision of an instance's record.
async fn revision(facade: &TestFacade, id: InstanceId) -> fleetwright_store::Revision {
    facade.record(id).await.unwrap().revision
}

#[tokio::test(start_paused = true)]
async fn new_instance_reaches_running_with_status_and_events() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .read_lag(Duration::from_secs(3))
        .build();
    TestFacade::run(&cloud, async |facade| {
        let network = facade.network("net").await;
        let id = facade.create(network, "web").await.instance.id;
        assert_eq!(
            facade.record(id).await.unwrap().value.provisioning(),
            Provisioning::Pending
        );
        let running = facade.until(id, is_running).await;
        let status = &running.status;
        assert_eq!(running.provisioning(), Provisioning::Provisioned);
        assert_eq!(
            (status.health, status.applied_generation),
            (Health::Healthy, 1)
        );
        assert!(status.private_ip.is_some() && status.mac_address.is_some());
        assert!(status.observed_at.is_some() && status.pending.is_none());
        assert!(status.conditions.is_empty(), "{status:#?}");
        assert_eq!(status.server.unwrap().replaces, 0);
        let events = kinds(&running);
        assert_eq!(events[..2], [EventKind::Created, EventKind::Accepted]);
        assert_eq!(events.last(), Some(&EventKind::Completed), "{events:?}");
        assert!(events.contains(&EventKind::Phase), "{events:?}");
        assert_eq!(facade.count("server").await, 1);
        // Scans that observe no change write nothing.
        let before = revision(facade, id).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(revision(facade, id).await, before);

        facade.delete(id).await;
        assert_eq!(
            facade.record(id).await.unwrap().value.provisioning(),
            Provisioning::Deprovisioning
        );
        facade.until_gone(id).await;
        facade.assert_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn stopped_instance_is_healthy_and_stays_stopped_after_replacement() {
    let cloud = MemoryCloud::new();
    TestFacade::run_with_instance(&cloud, async |facade, id| {
        let first = machine(facade, id).await;

        facade
            .edit(id, |instance| instance.intent.power = Power::Stopped)
            .await;
        let is_stopped =
            |instance: &Instance| instance.status.phase == Phase::Stopped && is_applied(instance);
        let stopped = facade.until(id, is_stopped).await;
        assert_eq!(stopped.status.health, Health::Healthy, "stopped on purpose");
        assert_eq!(stopped.provisioning(), Provisioning::Provisioned);
        assert!(kinds(&stopped).contains(&EventKind::Applied));

        facade
            .edit(id, |instance| instance.intent.replaces += 1)
            .await;
        let replaced = facade.until(id, is_stopped).await;
        assert_ne!(machine(facade, id).await, first);
        assert_eq!(replaced.status.server.unwrap().replaces, 1);
        let view = facade.server(id).await.unwrap();
        assert_eq!(view.server.intent.power, Power::Stopped);
        assert_eq!(facade.count("server").await, 1);
    })
    .await;
}

/// A change that was requested when there was nothing to lose is not applied to a running machine without consent.
#[tokio::test(start_paused = true)]
async fn change_that_becomes_destructive_waits_for_consent() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let id = facade.create(network, "web").await.instance.id;
    facade.instance_controller.reconcile(id).await.unwrap();
    let region = async {
        tokio::select! {
            () = facade.region().controller.run() => {}
            () = facade.region().monitor.run() => {}
            () = tokio::time::sleep(Duration::from_secs(120)) => {}
        }
    };
    region.await;
    assert_eq!(facade.server(id).await.unwrap().phase, Phase::Running);
    // As far as the instance's record says, no machine runs yet.
    facade
        .edit(id, |instance| instance.spec.image = image("rocky"))
        .await;
    facade
        .during(async {
            let first = machine(&facade, id).await;
            let needs_consent =
                |instance: &Instance| has_condition(instance, ConditionKind::ConsentNeeded);
            let found = facade.until(id, needs_consent).await;
            let condition = found
                .status
                .condition(ConditionKind::ConsentNeeded)
                .unwrap();
            assert!(
                condition
                    .message
                    .contains("image: the machine is reinstalled with another image"),
                "{condition:?}"
            );
            assert!(
                condition.message.contains("root disk is lost"),
                "{condition:?}"
            );
            assert_eq!(found.provisioning(), Provisioning::Error);
            assert_eq!(found.status.pending, None, "nothing is being done");
            tokio::time::sleep(Duration::from_secs(3600)).await;
            let still = facade.record(id).await.unwrap().value;
            assert_eq!(still.status.conditions, found.status.conditions);
            assert_eq!(still.status.applied_generation, 1);
            assert_eq!(machine(&facade, id).await, first);
            assert_eq!(cloud.oracle().call_count(WireCall::Reimage), 0);

            facade
                .edit(id, |instance| instance.consent = Consent::Destroy)
                .await;
            let done = facade.until(id, is_running).await;
            assert!(!needs_consent(&done), "{done:#?}");
            let applied = facade.server(id).await.unwrap().server.machine.unwrap();
            assert_eq!(applied.applied.image, image("rocky"));
        })
        .await;
}

/// The status shows the change, its reason, its loss and its date until it is applied.
#[tokio::test(start_paused = true)]
async fn pending_change_is_shown_until_it_is_applied() {
    let cloud = MemoryCloud::builder()
        .without_verb(fleetwright::OptionalVerb::ReimageInstance)
        .build();
    TestFacade::run_with_instance(&cloud, async |facade, id| {
        let first = machine(facade, id).await;
        facade
            .edit(id, |instance| {
                instance.spec.image = image("rocky");
                instance.consent = Consent::Destroy;
            })
            .await;
        let pending = |instance: &Instance| instance.status.pending.is_some();
        let found = facade.until(id, pending).await;
        let action = found.status.pending.clone().unwrap();
        assert_eq!(action.plan.methods[&Field::Image], ChangeMethod::Replace);
        assert_eq!(action.reason, "image: the machine is replaced");
        assert_eq!(
            action.lost.as_deref(),
            Some("the data on its root disk and its addresses are lost by changing image")
        );
        assert_eq!(found.provisioning(), Provisioning::Provisioning);
        let done = facade.until(id, is_running).await;
        assert_eq!(done.status.pending, None);
        assert_ne!(machine(facade, id).await, first);
        // Addresses of the terminated machine are not shown.
        let replacing = |instance: &Instance| instance.status.phase == Phase::Replacing;
        facade
            .edit(id, |instance| instance.intent.replaces += 1)
            .await;
        let between = facade
            .until(id, |instance| {
                replacing(instance) && instance.status.private_ip.is_none()
            })
            .await;
        let action = between.status.pending.clone().unwrap();
        assert_eq!(action.reason, "a replacement was requested");
        assert_eq!(between.status.mac_address, None);
        facade.until(id, is_running).await;

        facade
            .edit(id, |instance| instance.spec.flavor = flavor("large"))
            .await;
        let resizing = facade.until(id, pending).await.status.pending.unwrap();
        assert_eq!(resizing.lost, None, "a resize loses nothing");
        facade.until(id, is_running).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn lost_machine_is_reported_until_a_replacement_is_requested() {
    let cloud = MemoryCloud::new();
    TestFacade::run_with_instance(&cloud, async |facade, id| {
        let machine = cloud.oracle().instances().remove(0).info.id;
        cloud.external_actor().terminate(&machine).unwrap();
        let lost = |instance: &Instance| has_condition(instance, ConditionKind::Lost);
        let found = facade.until(id, lost).await;
        assert_eq!(found.status.phase, Phase::Lost);
        assert_eq!(found.status.health, Health::Error);
        assert_eq!(found.provisioning(), Provisioning::Error);
        assert_eq!(
            (found.status.private_ip, found.status.mac_address),
            (None, None)
        );
        assert!(kinds(&found).contains(&EventKind::Problem));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert!(lost(&facade.record(id).await.unwrap().value));

        facade
            .edit(id, |instance| instance.intent.replaces += 1)
            .await;
        let running = facade.until(id, is_running).await;
        assert!(running.status.conditions.is_empty(), "{running:#?}");
        assert_eq!(running.provisioning(), Provisioning::Provisioned);
    })
    .await;
}

/// A failure of the cloud during a deletion is reported to the tenant, and the deletion completes once the cloud responds.
#[tokio::test(start_paused = true)]
async fn refused_termination_is_reported_and_retried() {
    let cloud = MemoryCloud::new();
    TestFacade::run_with_instance(&cloud, async |facade, id| {
        let refused = Fault::Refused(RefusalReason::BadCredentials);
        let always = Rule::always(WireCall::Terminate, refused);
        cloud.faults().add(always);
        facade.delete(id).await;
        let found = facade.until_condition(id, ConditionKind::CloudError).await;
        assert!(kinds(&found).contains(&EventKind::Problem), "{found:#?}");
        assert_eq!(found.status.phase, Phase::Deleting);
        facade.assert_balanced(1).await;
        cloud.faults().clear();
        facade.until_gone(id).await;
        facade.assert_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn refused_spec_is_reported_and_retried() {
    let cloud = MemoryCloud::new();
    TestFacade::run(&cloud, async |facade| {
        let network = facade.network("net").await;
        let mut wrong = instance_record(network, "web", facade.clock.now());
        wrong.spec.flavor = flavor("huge");
        let id = facade.insert(wrong).await;
        let found = facade.until_condition(id, ConditionKind::Refused).await;
        let condition = found.status.condition(ConditionKind::Refused).unwrap();
        assert_eq!(
            condition.message,
            "there is no flavor huge: choose one that is offered"
        );
        assert_eq!(found.provisioning(), Provisioning::Error);
        assert_eq!(
            (found.status.phase, facade.count("server").await),
            (Phase::Failed, 0)
        );
        // A repeated refusal writes nothing.
        let before = revision(facade, id).await;
        tokio::time::sleep(Duration::from_secs(7200)).await;
        assert_eq!(revision(facade, id).await, before);
        facade
            .edit(id, |instance| instance.spec.flavor = flavor("small"))
            .await;
        let running = facade.until(id, is_running).await;
        assert!(running.status.conditions.is_empty());
    })
    .await;
}

/// Whatever keeps a change of the spec from being applied, a running instance can be stopped and started.
#[tokio::test(start_paused = true)]
async fn refused_change_delays_no_power_request() {
    let other_image = ConditionKind::ConsentNeeded;
    let unknown_flavor = ConditionKind::Refused;
    for kind in [other_image, unknown_flavor] {
        let cloud = MemoryCloud::new();
        TestFacade::run_with_instance(&cloud, async |facade, id| {
            let change = |instance: &mut Instance| {
                if kind == other_image {
                    instance.spec.image = image("rocky");
                } else {
                    instance.spec.flavor = flavor("huge");
                }
            };
            facade.edit(id, change).await;
            facade.until_condition(id, kind).await;
            for (power, phase) in [
                (Power::Stopped, Phase::Stopped),
                (Power::Running, Phase::Running),
            ] {
                facade
                    .edit(id, |instance| instance.intent.power = power)
                    .await;
                let reached = |instance: &Instance| instance.status.phase == phase;
                let found = facade.until(id, reached).await;
                assert!(has_condition(&found, kind), "{found:#?}");
            }
        })
        .await;
        assert_eq!(cloud.oracle().call_count(WireCall::Launch), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn missing_capacity_is_reported_and_does_not_delay_deletion() {
    let cloud = MemoryCloud::builder().capacity(Capacity::of(0)).build();
    TestFacade::run(&cloud, async |facade| {
        let network = facade.network("net").await;
        let id = facade.create(network, "web").await.instance.id;
        let found = facade.until_condition(id, ConditionKind::NoCapacity).await;
        assert_eq!(found.provisioning(), Provisioning::Provisioning);
        let since = found
            .status
            .condition(ConditionKind::NoCapacity)
            .unwrap()
            .since;
        tokio::time::sleep(Duration::from_secs(1200)).await;
        let later = facade.record(id).await.unwrap().value;
        let still = later.status.condition(ConditionKind::NoCapacity).unwrap();
        assert_eq!(still.since, since, "the condition has held all the time");
        facade.delete_completely(id).await;
    })
    .await;
}

/// Deletes an instance at each half second of its launch.
#[tokio::test(start_paused = true)]
async fn deletion_at_any_time_leaves_nothing() {
    for half_seconds in 0..60 {
        let cloud = MemoryCloud::builder()
            .latency(Duration::from_millis(50))
            .read_lag(Duration::from_secs(2))
            .build();
        TestFacade::run(&cloud, async |facade| {
            let network = facade.network("net").await;
            let id = facade.create(network, "web").await.instance.id;
            tokio::time::sleep(Duration::from_millis(500) * half_seconds).await;
            facade.delete_completely(id).await;
        })
        .await;
    }
}

/// Deletes an instance in each lasting phase.
#[tokio::test(start_paused = true)]
async fn deletion_in_every_phase_leaves_nothing() {
    type DesiredState = fn(&mut Instance);
    let cases: [(Phase, DesiredState); 4] = [
        (Phase::Running, |_| {}),
        (Phase::Stopping, |instance| {
            instance.intent.power = Power::Stopped;
        }),
        (Phase::Stopped, |instance| {
            instance.intent.power = Power::Stopped;
        }),
        (Phase::Replacing, |instance| instance.intent.replaces += 1),
    ];
    for (phase, change) in cases {
        let cloud = MemoryCloud::new();
        TestFacade::run_with_instance(&cloud, async |facade, id| {
            facade.edit(id, change).await;
            facade
                .until(id, |instance| instance.status.phase == phase)
                .await;
            facade.delete_completely(id).await;
        })
        .await;
    }
}

/// The futures of all loops are `Send`.
#[tokio::test(start_paused = true)]
async fn every_loop_can_be_spawned() {
    fn is_send<T: Send>(_: T) {}
    let facade = TestFacade::on(&MemoryCloud::new()).await;
    is_send(facade.instance_controller.run());
    is_send(facade.network_controller.run());
    is_send(facade.region().controller.run());
    is_send(facade.region().monitor.run());
}
