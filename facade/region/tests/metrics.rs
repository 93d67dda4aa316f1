//! Metric names, labels and values.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright::InstanceConfig;
use fleetwright_facade_testkit::{
    RecordedMetrics, TestFacade, TestRegion, bare_server, new_snapshot, operator, server_admin,
    server_id, server_user, tenant,
};
use fleetwright_memory::{Fault, MemoryCloud, RefusalReason, Rule, WireCall};
use fleetwright_region::{
    controller::tags,
    monitor::OrphanPolicy,
    server::{Phase, ServerView},
};

#[tokio::test(start_paused = true)]
async fn controllers_count_steps_waits_and_failures() {
    let recorded = RecordedMetrics::default();
    let _guard = metrics::set_default_local_recorder(&recorded);
    let metric = |name: &str| recorded.get(&format!("fleetwright_region_{name}"));
    let cloud = MemoryCloud::new();
    let busy = Fault::Refused(RefusalReason::Throttled(Duration::from_secs(1)));
    cloud
        .faults()
        .add(Rule::nth(WireCall::Launch, 1, busy.clone()));
    cloud.faults().add(Rule::nth(WireCall::ListPage, 2, busy));
    let region = TestRegion::new(Arc::new(cloud.provisioner())).policy(|policy| {
        policy.orphans = OrphanPolicy::Terminate;
        policy.orphan_age = Duration::from_secs(5);
    });
    let work = async {
        let principal = server_admin();
        region
            .servers
            .ensure(&principal, &bare_server(1))
            .await
            .unwrap();
        let is_running = |view: &ServerView| view.phase == Phase::Running;
        let view = region.until(server_id(1), is_running).await;
        let superseded = tags::of(&view.server, 1);
        let orphan = InstanceConfig::builder("debian", "small").tags(&superseded);
        let launched = cloud.external_actor().launch(&orphan.build().unwrap());
        launched.unwrap();
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!((metric("machines"), metric("servers")), (1.0, 1.0));
        let machine = view.server.machine.unwrap().id;
        cloud.external_actor().terminate(&machine).unwrap();
        region
            .until(server_id(1), |view| view.phase == Phase::Lost)
            .await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(metric("drift destroyed"), 1.0);
        region
            .servers
            .delete(&principal, server_id(1))
            .await
            .unwrap();
        region.until_gone(server_id(1)).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    };
    region.during(work).await;
    assert_eq!(metric("orphans_terminated_total"), 1.0);
    assert_eq!(metric("call_failures_total launch_instance throttled"), 1.0);
    assert_eq!(metric("servers_deleted_total"), 1.0);
    assert_eq!(metric("scans_total failed"), 1.0);
    assert!(metric("scans_total ok") > 5.0 && metric("scan_seconds") > 5.0);
    assert!(metric("steps_total launch") >= 1.0 && metric("steps_total done") >= 1.0);
    for quiet in [
        "orphans",
        "frozen",
        "machines_absent",
        "servers",
        "servers_queued",
        "drift missing",
    ] {
        assert_eq!(metric(quiet), 0.0, "{quiet}");
    }
}

#[tokio::test(start_paused = true)]
async fn machine_calls_are_counted_by_verb_and_outcome() {
    let recorded = RecordedMetrics::default();
    let _guard = metrics::set_default_local_recorder(&recorded);
    let metric = |name: &str| recorded.get(&format!("fleetwright_region_{name}"));
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let (principal, id) = (operator(), server_id(1));
    let machines = &facade.machines;
    let stranger = server_user(tenant(9, 9));
    facade.ensure_server().await;
    assert!(machines.console_session(&principal, id).await.is_err());
    assert!(machines.console_session(&stranger, id).await.is_err());
    facade
        .during_region(facade.until_server(Phase::Running))
        .await;
    machines.console_session(&principal, id).await.unwrap();
    machines.console_output(&principal, id, None).await.unwrap();
    machines.ssh_key(&principal, id).await.unwrap();
    machines
        .snapshot(&principal, id, &new_snapshot())
        .await
        .unwrap();
    let lost = Fault::Refused(RefusalReason::Throttled(Duration::from_secs(1)));
    cloud
        .faults()
        .add(Rule::nth(WireCall::Snapshot, 1, lost.clone()));
    cloud
        .faults()
        .add(Rule::nth(WireCall::ConsoleOutput, 1, lost));
    assert!(machines.console_output(&principal, id, None).await.is_err());
    facade.region().snapshots.pass().await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    facade.region().snapshots.pass().await.unwrap();
    for counted in [
        "machine_calls_total console-session not-ready",
        "machine_calls_total console-session not-found",
        "machine_calls_total console-session ok",
        "machine_calls_total console-output ok",
        "machine_calls_total console-output unavailable",
        "machine_calls_total ssh-key ok",
        "machine_calls_total snapshot ok",
        "snapshots_total retried",
        "snapshots_total begun",
        "snapshots_total ready",
    ] {
        assert_eq!(metric(counted), 1.0, "{counted}");
    }
}
