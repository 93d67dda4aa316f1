//! The controller with a cloud that refuses, fails, loses responses or changes machines.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright::{
    CloudInstanceState, InstanceProvisioner as _, LaunchRecord, OptionalVerb, Reboot,
};
use fleetwright_facade_testkit::{
    NamePlanner, TestRegion, bare_server, is_server_running, server_admin, server_id,
};
use fleetwright_memory::{
    Capacity, Fault, MemoryCloud, Phase as When, RefusalReason, Rule, WireCall,
};
use fleetwright_region::{
    ids::{FlavorId, ImageId},
    server::{
        ChangeMethod, ConditionKind, Consent, EventKind, Health, NewServer, Phase, Plan, Power,
        ServerError, ServerId, ServerSpec, ServerView,
    },
};

/// A region on this cloud, with the record of a server. No controller has seen the record yet.
async fn region_with(cloud: &MemoryCloud, new: &NewServer) -> (TestRegion, ServerId) {
    let region = TestRegion::new(Arc::new(cloud.provisioner()));
    region.servers.ensure(&server_admin(), new).await.unwrap();
    (region, new.id)
}

async fn region_with_server(cloud: &MemoryCloud) -> (TestRegion, ServerId) {
    region_with(cloud, &bare_server(1)).await
}

async fn set_spec(
    region: &TestRegion,
    spec: &ServerSpec,
    consent: Consent,
) -> Result<Plan, ServerError> {
    let (admin, id) = (server_admin(), server_id(1));
    let changed = region.servers.set_spec(&admin, id, spec, consent).await;
    changed.map(|(_, plan)| plan)
}

fn has(kind: ConditionKind) -> impl Fn(&ServerView) -> bool {
    move |view| view.server.condition(kind).is_some()
}

fn live(cloud: &MemoryCloud) -> usize {
    let all = cloud.oracle().instances();
    all.iter()
        .filter(|machine| !machine.info.state.is_ending())
        .count()
}

#[tokio::test(start_paused = true)]
async fn missing_capacity_is_reported_and_retried() {
    let cloud = MemoryCloud::builder().capacity(Capacity::of(0)).build();
    let (region, id) = region_with_server(&cloud).await;
    region
        .during(async {
            let view = region.until(id, has(ConditionKind::NoCapacity)).await;
            let condition = view.server.condition(ConditionKind::NoCapacity).unwrap();
            assert!(
                condition
                    .message
                    .contains("no capacity for this instance type")
            );
            let reported = |event: &fleetwright_region::server::Event| {
                event.kind == EventKind::Failed && event.message == condition.message
            };
            assert!(view.server.events.iter().any(reported), "{view:#?}");
            assert_eq!(view.phase, Phase::Building);
            tokio::time::sleep(Duration::from_secs(3600)).await;
            let calls = cloud.oracle().call_count(WireCall::Launch);
            assert!((10..30).contains(&calls), "{calls} launches in an hour");
            cloud.external_actor().set_capacity(Vec::new());
            let view = region.until(id, is_server_running).await;
            assert_eq!(view.server.launch.as_ref().unwrap().incarnation, 1);
            assert!(view.server.conditions.is_empty(), "{view:#?}");
        })
        .await;
    assert_eq!(live(&cloud), 1);
}

#[tokio::test(start_paused = true)]
async fn quota_differs_from_capacity_and_retry_after_is_respected() {
    let cloud = MemoryCloud::builder().quota(0).build();
    let (region, id) = region_with_server(&cloud).await;
    region
        .during(async {
            region.until(id, has(ConditionKind::QuotaReached)).await;
            cloud.external_actor().set_quota(None);
            let throttled = RefusalReason::Throttled(Duration::from_secs(700));
            cloud
                .faults()
                .add(Rule::nth(WireCall::Launch, 1, Fault::Refused(throttled)));
            let view = region.until(id, has(ConditionKind::CloudError)).await;
            let not_before = view.server.retry.as_ref().unwrap().not_before;
            let wait = not_before - region.clock.now();
            assert!(wait > chrono::TimeDelta::seconds(690), "{wait}");
            let calls = cloud.oracle().call_count(WireCall::Launch);
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert_eq!(cloud.oracle().call_count(WireCall::Launch), calls);
            region.until(id, is_server_running).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn launches_stop_after_three_failed_boots_until_a_replacement_is_requested() {
    let cloud = MemoryCloud::new();
    let boot_failure = Fault::FailsLate {
        code: "Bad".into(),
        message: "disk broken".into(),
    };
    for nth in 1..=3 {
        cloud
            .faults()
            .add(Rule::nth(WireCall::Launch, nth, boot_failure.clone()));
    }
    let (region, id) = region_with_server(&cloud).await;
    region
        .during(async {
            let view = region.until(id, |view| view.phase == Phase::Failed).await;
            let condition = view
                .server
                .condition(ConditionKind::AttemptsExhausted)
                .unwrap();
            assert!(condition.message.contains("3 attempts"), "{condition:?}");
            assert!(condition.message.contains("disk broken"), "{condition:?}");
            assert_eq!(view.health, Health::Error);
            assert_eq!(view.server.launch.as_ref().unwrap().incarnation, 3);
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(cloud.oracle().call_count(WireCall::Launch), 3);
            region
                .servers
                .request_replace(&server_admin(), id)
                .await
                .unwrap();
            let view = region.until(id, is_server_running).await;
            assert_eq!(view.server.launch.as_ref().unwrap().incarnation, 4);
        })
        .await;
    assert_eq!(live(&cloud), 1);
}

#[tokio::test(start_paused = true)]
async fn lost_machine_that_booted_is_not_launched_again() {
    let cloud = MemoryCloud::new();
    let (region, id) = region_with_server(&cloud).await;
    region
        .during(async {
            let view = region.until(id, is_server_running).await;
            let machine = view.server.machine.unwrap().id;
            cloud.external_actor().terminate(&machine).unwrap();
            let view = region.until(id, |view| view.phase == Phase::Lost).await;
            assert_eq!(view.health, Health::Error);
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(cloud.oracle().call_count(WireCall::Launch), 1);
            region
                .servers
                .request_replace(&server_admin(), id)
                .await
                .unwrap();
            region.until(id, is_server_running).await;
            assert_eq!(cloud.oracle().call_count(WireCall::Launch), 2);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn launch_with_lost_response_is_found_by_its_token() {
    let cloud = MemoryCloud::builder()
        .read_lag(Duration::from_secs(4))
        .build();
    let lost = Fault::Lost(When::After);
    cloud.faults().add(Rule::nth(WireCall::Launch, 1, lost));
    let (region, id) = region_with_server(&cloud).await;
    region
        .during(async {
            let view = region.until(id, is_server_running).await;
            let adopted =
                |event: &fleetwright_region::server::Event| event.kind == EventKind::Adopted;
            assert!(view.server.events.iter().any(adopted), "{view:#?}");
            let token = &view.server.launch.as_ref().unwrap().token;
            let found = region.cloud.find_launch(token).await.unwrap();
            assert!(matches!(found, LaunchRecord::Found(machines) if machines.len() == 1));
        })
        .await;
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 1);
    assert_eq!(live(&cloud), 1);
}

/// The window proves that nothing was launched. It does not delay a machine that shows before.
#[tokio::test(start_paused = true)]
async fn launch_with_lost_response_is_found_before_the_window_ends() {
    let window = Duration::from_secs(600);
    let cloud = MemoryCloud::builder()
        .read_lag(window)
        .usual_lag(Duration::from_secs(4))
        .build();
    let lost = Fault::Lost(When::After);
    cloud.faults().add(Rule::nth(WireCall::Launch, 1, lost));
    let began = tokio::time::Instant::now();
    let (region, id) = region_with_server(&cloud).await;
    region
        .during(async {
            region.until(id, is_server_running).await;
            let admin = server_admin();
            for (power, phase) in [
                (Power::Stopped, Phase::Stopped),
                (Power::Running, Phase::Running),
            ] {
                region.servers.set_power(&admin, id, power).await.unwrap();
                region.until(id, |view| view.phase == phase).await;
            }
        })
        .await;
    assert!(began.elapsed() < window, "{:?}", began.elapsed());
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 1);
}

#[tokio::test(start_paused = true)]
async fn unlaunchable_spec_is_refused_with_a_message_until_it_changes() {
    let cloud = MemoryCloud::new();
    let mut new = bare_server(1);
    new.spec.flavor = FlavorId::new("huge").unwrap();
    let (region, id) = region_with(&cloud, &new).await;
    region
        .during(async {
            let view = region.until(id, |view| view.phase == Phase::Failed).await;
            let condition = view.server.condition(ConditionKind::Refused).unwrap();
            let expected = "flavor huge is not in the catalog of region north";
            assert!(condition.message.contains(expected), "{condition:?}");
            assert_eq!(cloud.oracle().call_count(WireCall::Launch), 0);
            let changed = set_spec(&region, &bare_server(1).spec, Consent::KeepEverything).await;
            changed.unwrap();
            region.until(id, is_server_running).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn external_stop_or_start_is_reverted() {
    let cloud = MemoryCloud::new();
    let (region, id) = region_with_server(&cloud).await;
    region
        .during(async {
            let machine = region
                .until(id, is_server_running)
                .await
                .server
                .machine
                .unwrap()
                .id;
            cloud.external_actor().stop(&machine).unwrap();
            let stopped = |view: &ServerView| view.phase == Phase::Stopped;
            let view = region.until(id, stopped).await;
            assert_eq!(
                view.health,
                Health::Degraded,
                "it was stopped outside this system"
            );
            region.until(id, is_server_running).await;
            region
                .servers
                .set_power(&server_admin(), id, Power::Stopped)
                .await
                .unwrap();
            let view = region.until(id, stopped).await;
            assert_eq!(view.health, Health::Healthy, "it is stopped on purpose");
            cloud.external_actor().start(&machine).unwrap();
            region.until(id, |view| view.phase == Phase::Running).await;
            region.until(id, stopped).await;
        })
        .await;
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 1);
}

#[tokio::test(start_paused = true)]
async fn least_destructive_supported_method_is_used() {
    for without in [None, Some(OptionalVerb::ResizeInstance)] {
        let mut builder = MemoryCloud::builder();
        if let Some(verb) = without {
            builder = builder.without_verb(verb);
        }
        let cloud = builder.build();
        let (region, id) = region_with_server(&cloud).await;
        region
            .during(async {
                let before = region.until(id, is_server_running).await;
                let mut spec = before.server.spec.clone();
                spec.flavor = FlavorId::new("large").unwrap();
                let result = set_spec(&region, &spec, Consent::KeepEverything).await;
                if without.is_some() {
                    let error = result.unwrap_err();
                    let ServerError::NeedsConsent { plan, .. } = &error else {
                        panic!("{error}");
                    };
                    assert!(plan.has(ChangeMethod::Replace));
                    assert!(error.to_string().contains("flavor: its disk and addresses"));
                    set_spec(&region, &spec, Consent::Destroy).await.unwrap();
                }
                let large = |view: &ServerView| {
                    let applied = view
                        .server
                        .machine
                        .as_ref()
                        .map(|machine| &machine.applied.flavor);
                    is_server_running(view)
                        && applied.is_some_and(|flavor| flavor.as_str() == "large")
                };
                let after = region.until(id, large).await;
                let same = after.server.machine.unwrap().id == before.server.machine.unwrap().id;
                assert_eq!(same, without.is_none());
            })
            .await;
        assert_eq!(live(&cloud), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn change_during_a_launch_destroys_no_machine_without_consent() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_secs(5))
        .build();
    let (region, id) = region_with_server(&cloud).await;
    region
        .during(async {
            let under_way = |view: &ServerView| {
                let sent = view
                    .server
                    .launch
                    .as_ref()
                    .and_then(|launch| launch.sent_at);
                view.server.machine.is_none() && sent.is_some()
            };
            let before = region.until(id, under_way).await;
            let mut other = before.server.spec.clone();
            other.image = ImageId::new("rocky").unwrap();
            let refused = set_spec(&region, &other, Consent::KeepEverything).await;
            let error = refused.unwrap_err();
            let ServerError::NeedsConsent { plan, .. } = &error else {
                panic!("{error}");
            };
            assert!(plan.has(ChangeMethod::Reimage), "{error}");
            let view = region.until(id, is_server_running).await;
            assert_eq!(view.server.spec, before.server.spec);
            set_spec(&region, &other, Consent::Destroy).await.unwrap();
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn reimage_keeps_the_machine_and_reboot_boots_it() {
    let cloud = MemoryCloud::new();
    let (region, id) = region_with_server(&cloud).await;
    region
        .during(async {
            let before = region.until(id, is_server_running).await;
            let machine = before.server.machine.as_ref().unwrap().id.clone();
            let mut spec = before.server.spec.clone();
            spec.image = ImageId::new("rocky").unwrap();
            let refused = set_spec(&region, &spec, Consent::KeepEverything).await;
            assert!(refused.unwrap_err().to_string().contains("root disk"));
            set_spec(&region, &spec, Consent::Destroy).await.unwrap();
            let after = region.until(id, is_server_running).await;
            assert_eq!(after.server.machine.as_ref().unwrap().id, machine);
            let truth = cloud.oracle().instance(&machine).unwrap();
            assert_eq!(truth.info.image.unwrap().as_str(), "rocky");
            let boots = truth.boots;
            region
                .servers
                .request_reboot(&server_admin(), id, Reboot::Soft)
                .await
                .unwrap();
            region.until(id, is_server_running).await;
            assert_eq!(cloud.oracle().instance(&machine).unwrap().boots, boots + 1);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn server_created_again_after_deletion_is_a_new_one() {
    let cloud = MemoryCloud::new();
    let (region, id) = region_with_server(&cloud).await;
    region
        .during(async {
            let first = region.until(id, is_server_running).await.server;
            region.servers.delete(&server_admin(), id).await.unwrap();
            let (admin, new) = (server_admin(), bare_server(1));
            let early = region.servers.ensure(&admin, &new).await;
            assert!(matches!(early, Err(ServerError::Deleting(_))));
            region.until_gone(id).await;
            region.servers.ensure(&admin, &new).await.unwrap();
            let second = region.until(id, is_server_running).await.server;
            assert_ne!(first.machine.unwrap().id, second.machine.unwrap().id);
            assert_ne!(first.launch.unwrap().token, second.launch.unwrap().token);
        })
        .await;
    assert_eq!(live(&cloud), 1);
}

#[tokio::test(start_paused = true)]
async fn new_process_continues_where_the_old_one_stopped() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_secs(1))
        .build();
    let (region, id) = region_with_server(&cloud).await;
    let (store, clock) = (Arc::clone(&region.store), Arc::clone(&region.clock));
    // The launch had its effect, and its response is on the way.
    region
        .during(tokio::time::sleep(Duration::from_millis(700)))
        .await;
    drop(region);
    assert_eq!(live(&cloud), 1);
    let handle = Arc::new(cloud.provisioner());
    let next = TestRegion::reopened(handle, store, NamePlanner::identity(), clock);
    assert!(next.read(id).await.server.machine.is_none());
    next.during(next.until(id, is_server_running)).await;
    assert_eq!(live(&cloud), 1);
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 1);
    let machine = cloud.oracle().instances().remove(0).info;
    assert_eq!(machine.state, CloudInstanceState::Running);
}
