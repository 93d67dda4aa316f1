//! The metrics of the service's calls.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use fleetwright_compute::instance::InstanceId;
use fleetwright_facade_testkit::{
    RecordedMetrics, TestFacade, principals::project_reader, project_user, tenant,
};

#[test]
fn every_call_is_counted_by_outcome() {
    let recorded = RecordedMetrics::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorded, || {
        runtime.block_on(async {
            let facade = TestFacade::new().await;
            let blue = facade.network("blue").await;
            let (alice, rita) = (project_user(tenant(1, 1)), project_reader(tenant(1, 1)));
            let id = facade.create(blue, "web").await.instance.id;
            facade.try_create(blue, "web").await.unwrap_err();
            facade.instances.stop(&rita, id).await.unwrap_err();
            facade.instances.stop(&alice, id).await.unwrap();
            let absent = InstanceId::from_uuid(uuid::Uuid::nil());
            facade.instances.read(&alice, absent).await.unwrap_err();
            facade
                .instances
                .list(&alice, &Default::default())
                .await
                .unwrap();
            facade.instances.ssh_key(&alice, id).await.unwrap_err();
        });
    });
    let counted = recorded.starting_with("fleetwright_compute_");
    let lines = [
        "create conflict",
        "create ok",
        "list ok",
        "read not_found",
        "ssh-key conflict",
        "stop forbidden",
        "stop ok",
    ];
    let expected = lines.map(|line| (format!("fleetwright_compute_calls_total {line}"), 1.0));
    assert_eq!(counted, expected.into());
}
