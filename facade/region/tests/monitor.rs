//! The monitor: observations, limits of belief, drift and orphans.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use fleetwright::{InstanceConfig, InstanceId, TagChange, Zone};
use fleetwright_facade_testkit::{TestRegion, bare_server, north, server_admin, server_id};
use fleetwright_memory::{Fault, MemoryCloud, Phase as When, Rule, WireCall};
use fleetwright_region::{
    controller::tags,
    monitor::{Limit, OrphanOutcome, OrphanPolicy, RegionScan, ScanError},
    server::{Drift, Health, Phase, Presence, ServerId, ServerView},
};
use fleetwright_store::{RecordId, Store as _, Table, Transaction};
use serde_json::json;

const TICK: Duration = Duration::from_secs(2);

fn region(cloud: &MemoryCloud) -> TestRegion {
    TestRegion::new(Arc::new(cloud.provisioner()))
}

fn healthy(view: &ServerView) -> bool {
    view.phase == Phase::Running && view.health == Health::Healthy
}

async fn up(region: &TestRegion, numbers: impl IntoIterator<Item = u128>) -> Vec<InstanceId> {
    let mut machines = Vec::new();
    for number in numbers {
        let new = bare_server(number);
        region.servers.ensure(&server_admin(), &new).await.unwrap();
        let view = region.during(region.until(new.id, healthy)).await;
        machines.push(view.server.machine.unwrap().id);
    }
    machines
}

async fn read_scan(region: &TestRegion) -> RegionScan {
    let scans = Table::<RegionScan>::new(Arc::clone(&region.store)).unwrap();
    let key = RegionScan::key(&north()).unwrap();
    scans.get(&key).await.unwrap().unwrap().value
}

async fn presence(region: &TestRegion, id: ServerId) -> Presence {
    region
        .read(id)
        .await
        .server
        .current_observation()
        .unwrap()
        .presence
}

#[tokio::test(start_paused = true)]
async fn scan_is_one_list_and_writes_only_changes() {
    let cloud = MemoryCloud::builder()
        .page_size(NonZeroUsize::new(1000).unwrap())
        .build();
    let region = region(&cloud);
    up(&region, 1..=40).await;
    let (before, head) = (cloud.oracle().calls(), region.store.head().await.unwrap());
    let findings = region.monitor.scan().await.unwrap();
    let after = cloud.oracle().calls();
    assert_eq!(after[&WireCall::ListPage], before[&WireCall::ListPage] + 1);
    assert_eq!(
        after.values().sum::<u64>(),
        before.values().sum::<u64>() + 1
    );
    assert_eq!((findings.servers, findings.written), (40, 0));
    let written = region.store.head().await.unwrap().0 - head.0;
    assert_eq!(written, 1, "only the scan record");
}

#[tokio::test(start_paused = true)]
async fn health_is_unknown_after_two_intervals_without_a_scan() {
    let cloud = MemoryCloud::new();
    let region = region(&cloud);
    up(&region, [1]).await;
    region.monitor.scan().await.unwrap();
    tokio::time::sleep(TICK * 2).await;
    assert_eq!(region.read(server_id(1)).await.health, Health::Healthy);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(region.read(server_id(1)).await.health, Health::Unknown);
    let lost = Fault::Lost(When::Before);
    cloud.faults().add(Rule::nth(WireCall::ListPage, 1, lost));
    let failed = region.monitor.scan().await;
    assert!(matches!(failed, Err(ScanError::Cloud(_))));
    assert_eq!(region.read(server_id(1)).await.health, Health::Unknown);
    region.monitor.scan().await.unwrap();
    assert_eq!(region.read(server_id(1)).await.health, Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn unreachable_zone_freezes_the_monitor_and_health_is_unknown() {
    let cloud = MemoryCloud::new();
    let region = region(&cloud).policy(|policy| {
        policy.orphans = OrphanPolicy::Terminate;
        policy.orphan_age = Duration::ZERO;
    });
    let machines = up(&region, [1, 2]).await;
    let zone = cloud.oracle().instance(&machines[0]).unwrap();
    let zone = zone.info.placement.zone.unwrap();
    let superseded = tags::of(&region.read(server_id(1)).await.server, 1);
    let orphan = InstanceConfig::builder("debian", "small")
        .tags(&superseded)
        .placement(other_zone(&zone))
        .build()
        .unwrap();
    let orphan = cloud.external_actor().launch(&orphan).unwrap().id;
    cloud.external_actor().disconnect(zone.clone());
    let findings = region.monitor.scan().await.unwrap();
    assert!(findings.frozen.as_ref().unwrap().contains("has gaps"));
    assert_eq!(findings.absent, 2);
    assert_eq!(
        findings.orphans[0].outcome,
        OrphanOutcome::Reported,
        "it is not terminated"
    );
    assert!(matches!(
        presence(&region, server_id(1)).await,
        Presence::Absent(_)
    ));
    assert!(read_scan(&region).await.frozen.is_some());
    tokio::time::sleep(TICK * 2).await;
    region.monitor.scan().await.unwrap();
    let view = region.read(server_id(1)).await;
    assert_eq!(
        view.health,
        Health::Unknown,
        "the scan record does not cover it"
    );
    cloud.external_actor().reconnect(zone);
    let findings = region.monitor.scan().await.unwrap();
    assert_eq!((findings.frozen, findings.absent), (None, 0));
    assert_eq!(findings.orphans[0].outcome, OrphanOutcome::Terminated);
    assert!(
        cloud
            .oracle()
            .instance(&orphan)
            .unwrap()
            .info
            .state
            .is_ending()
    );
    assert_eq!(region.read(server_id(1)).await.health, Health::Healthy);
}

fn other_zone(zone: &Zone) -> fleetwright::Placement {
    let other = if zone.as_str() == "mem-a" {
        "mem-b"
    } else {
        "mem-a"
    };
    let mut placement = fleetwright::Placement::default();
    placement.zone = Some(Zone::new(other).unwrap());
    placement
}

#[tokio::test(start_paused = true)]
async fn too_many_absent_machines_freeze_the_monitor() {
    let cloud = MemoryCloud::builder()
        .terminated_visible(Duration::ZERO)
        .build();
    let region = region(&cloud).policy(|policy| policy.limit = Limit::new(2, 10));
    let machines = up(&region, 1..=4).await;
    for machine in &machines[..3] {
        cloud.external_actor().terminate(machine).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let calls = cloud.oracle().call_count(WireCall::Describe);
    let findings = region.monitor.scan().await.unwrap();
    let reason = findings.frozen.unwrap();
    assert_eq!(
        reason,
        "3 machines are absent at once, more than the limit of 2"
    );
    assert_eq!(cloud.oracle().call_count(WireCall::Describe), calls);
    assert!(findings.drift.is_empty());
    let region = region.policy(|policy| {
        policy.limit = Limit::new(3, 10);
        policy.confirm_after = Duration::ZERO;
    });
    let findings = region.monitor.scan().await.unwrap();
    assert_eq!(findings.frozen, None);
    assert_eq!(findings.drift[&Drift::Missing], 3);
    assert!(matches!(
        presence(&region, server_id(1)).await,
        Presence::Missing(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn machine_is_not_missing_within_the_consistency_window() {
    let window = Duration::from_secs(30);
    let cloud = MemoryCloud::builder().read_lag(window).build();
    let region = region(&cloud);
    let (principal, new) = (server_admin(), bare_server(1));
    region.servers.ensure(&principal, &new).await.unwrap();
    region.controller.reconcile(new.id).await.unwrap();
    for _ in 0..15 {
        let stale = Fault::StaleRead;
        cloud.faults().add(Rule::nth(WireCall::ListPage, 1, stale));
        let findings = region.monitor.scan().await.unwrap();
        assert!(findings.drift.is_empty(), "{findings:?}");
        let view = region.read(new.id).await;
        assert!(
            view.server.current_observation().is_none(),
            "it was not observed yet"
        );
        tokio::time::sleep(TICK).await;
    }
}

#[tokio::test(start_paused = true)]
async fn drift_is_reported_once_and_tags_are_restored() {
    let cloud = MemoryCloud::new();
    let region = region(&cloud);
    let machines = up(&region, [1]).await;
    let change = TagChange::new().remove(tags::REGION).unwrap();
    cloud
        .external_actor()
        .update_tags(&machines[0], &change)
        .unwrap();
    let findings = region.monitor.scan().await.unwrap();
    assert_eq!(findings.drift[&Drift::Tags], 1);
    assert_eq!(findings.absent, 0, "machines are matched by id");
    assert_eq!(findings.written, 1);
    assert_eq!(region.monitor.scan().await.unwrap().written, 0);
    let fixed = |view: &ServerView| view.server.drift.is_empty();
    region.during(region.until(server_id(1), fixed)).await;
    let truth = cloud.oracle().instance(&machines[0]).unwrap();
    assert_eq!(truth.info.tags.get(tags::REGION), Some("north"));
}

#[tokio::test(start_paused = true)]
async fn monitor_reports_or_deletes_orphans_and_keeps_foreign_machines() {
    for orphans in [OrphanPolicy::Report, OrphanPolicy::Terminate] {
        let cloud = MemoryCloud::new();
        let region = region(&cloud).policy(|policy| {
            policy.orphans = orphans;
            policy.orphan_age = Duration::from_secs(60);
        });
        up(&region, [1]).await;
        let launch = |tags: &[(&str, &str)]| {
            let config = InstanceConfig::builder("debian", "small");
            let config = tags
                .iter()
                .fold(config, |config, (k, v)| config.tag(*k, *v));
            cloud
                .external_actor()
                .launch(&config.build().unwrap())
                .unwrap()
                .id
        };
        let server = region.read(server_id(1)).await.server;
        let id = server.id.to_string();
        let (first, second) = (server.machine_name(1), server.machine_name(2));
        let named = |region, machine| {
            launch(&[
                (tags::REGION, region),
                (tags::SERVER, &id),
                (tags::MACHINE, machine),
            ])
        };
        let orphan = named("north", &first);
        let unproven = [
            named("north", &second),
            named("north", "1-1"),
            launch(&[(tags::REGION, "north")]),
        ];
        let others = [launch(&[("somebody", "else")]), named("there", &first)];
        let findings = region.monitor.scan().await.unwrap();
        assert!(findings.orphans.is_empty(), "it is young");
        tokio::time::sleep(Duration::from_secs(61)).await;
        let findings = region.monitor.scan().await.unwrap();
        assert_eq!(findings.orphans.len(), 4);
        for orphan in &findings.orphans {
            let kept = orphan.outcome == OrphanOutcome::Kept;
            assert_eq!(kept, unproven.contains(&orphan.machine), "{orphan:?}");
        }
        assert_eq!(read_scan(&region).await.orphans, findings.orphans);
        let ends = |id| cloud.oracle().instance(id).unwrap().info.state.is_ending();
        assert_eq!(ends(&orphan), orphans == OrphanPolicy::Terminate);
        assert!(!others.iter().chain(&unproven).any(ends));
    }
}

/// A server that a newer version changed, or whose record is damaged, may own the machine that names it.
#[tokio::test(start_paused = true)]
async fn machine_of_an_unreadable_server_is_no_orphan() {
    for unreadable in [json!({"power": "hibernated"}), json!(7)] {
        let cloud = MemoryCloud::new();
        let region = region(&cloud).policy(|policy| {
            policy.orphans = OrphanPolicy::Terminate;
            policy.orphan_age = Duration::from_secs(60);
        });
        let machines = up(&region, [1, 2]).await;
        let id = RecordId::new("server", server_id(1).to_string()).unwrap();
        let mut record = region.store.get(&id).await.unwrap().unwrap().value;
        record["intent"] = unreadable;
        let put = Transaction::new().put(id.clone(), record.clone());
        region.store.commit(&put).await.unwrap();
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(61)).await;
            let findings = region.monitor.scan().await.unwrap();
            assert_eq!((findings.orphans, findings.servers), (vec![], 1));
        }
        let after = region.store.get(&id).await.unwrap().unwrap().value;
        assert_eq!(after, record);
        let ends = |id| cloud.oracle().instance(id).unwrap().info.state.is_ending();
        assert!(!machines.iter().any(ends));
    }
}

#[tokio::test(start_paused = true)]
async fn machine_without_progress_is_stuck() {
    let mut timing = fleetwright_memory::Timing::default();
    timing.boot = Duration::from_secs(3600);
    let cloud = MemoryCloud::builder().timing(timing).build();
    let region = region(&cloud).policy(|policy| policy.stuck_after = Duration::from_secs(100));
    let new = bare_server(1);
    region.servers.ensure(&server_admin(), &new).await.unwrap();
    let stuck = |view: &ServerView| view.server.drift.contains(&Drift::Stuck);
    let view = region.during(region.until(new.id, stuck)).await;
    assert_eq!(view.phase, Phase::Building);
    // After 15 minutes without a boot it counts as a failed attempt.
    let another = |view: &ServerView| {
        let launch = view.server.launch.as_ref();
        launch.is_some_and(|launch| launch.attempt == 2)
    };
    region.during(region.until(new.id, another)).await;
}

/// The record of a server is damaged, or sealed with a key that is missing: its machine may still be the server's.
#[tokio::test(start_paused = true)]
async fn machine_of_an_unreadable_record_is_no_orphan() {
    for without_tag in [false, true] {
        let cloud = MemoryCloud::new();
        let region = region(&cloud).policy(|policy| {
            policy.orphans = OrphanPolicy::Terminate;
            policy.orphan_age = Duration::ZERO;
        });
        let machines = up(&region, 1..=3).await;
        if without_tag {
            let change = TagChange::new().remove(tags::SERVER).unwrap();
            let actor = cloud.external_actor();
            actor.update_tags(&machines[0], &change).unwrap();
        }
        let id = RecordId::new("server", server_id(1).to_string()).unwrap();
        let record = region.store.get(&id).await.unwrap().unwrap();
        let mut broken = record.value.clone();
        broken["spec"] = "nonsense".into();
        let put = Transaction::new().put(id.clone(), broken);
        region.store.commit(&put).await.unwrap();
        for _ in 0..3 {
            let report = region.monitor.scan().await.unwrap();
            assert_eq!(report.unreadable, 1);
            tokio::time::sleep(TICK).await;
        }
        assert_eq!(cloud.oracle().call_count(WireCall::Terminate), 0);
        let put = Transaction::new().put(id, record.value);
        region.store.commit(&put).await.unwrap();
        region.monitor.scan().await.unwrap();
        assert_eq!(
            presence(&region, server_id(1)).await,
            Presence::Shown,
            "it is used again"
        );
    }
}
