//! Snapshots of servers that fail, are retried or wait.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright_facade_testkit::{TestFacade, new_snapshot, operator, server_id};
use fleetwright_memory::{Fault, MemoryCloud, Phase as When, RefusalReason, Rule, WireCall};
use fleetwright_region::{
    catalog::{Image, ImageState, Origin},
    name::Name,
    server::Phase,
    snapshot::SnapshotPolicy,
};

fn last_error(image: &Image) -> &str {
    let snapshot = image.snapshot.as_ref().unwrap();
    snapshot.last_error.as_deref().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn machine_gone_before_its_snapshot_fails_with_a_message() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let principal = operator();
    let requested = facade
        .machines
        .snapshot(&principal, server_id(1), &new_snapshot())
        .await;
    requested.unwrap();
    facade
        .during_region(async {
            let servers = &facade.servers;
            servers
                .request_replace(&principal, server_id(1))
                .await
                .unwrap();
            facade.until_server(Phase::Replacing).await;
            facade.until_server(Phase::Running).await;
        })
        .await;
    facade.region().snapshots.pass().await.unwrap();
    let failed = facade.snapshot_image().await;
    assert_eq!(failed.state, ImageState::Failed);
    let message = last_error(&failed);
    assert!(
        message.starts_with("its machine no longer exists") && message.contains("fleetwright-"),
        "{message}"
    );
    assert_eq!(
        cloud.oracle().images().len(),
        0,
        "no image of the machine that replaced it"
    );
    let again = facade
        .machines
        .snapshot(&principal, server_id(1), &new_snapshot())
        .await;
    assert_eq!(again.unwrap().state, ImageState::Failed);
}

#[tokio::test(start_paused = true)]
async fn failing_snapshot_is_retried_until_success_or_timeout() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let principal = operator();
    let busy = Fault::Refused(RefusalReason::Throttled(Duration::from_secs(700)));
    cloud.faults().add(Rule::nth(WireCall::Snapshot, 1, busy));
    cloud
        .faults()
        .add(Rule::nth(WireCall::Snapshot, 2, Fault::Lost(When::After)));
    let requested = facade
        .machines
        .snapshot(&principal, server_id(1), &new_snapshot())
        .await;
    requested.unwrap();
    let begun = tokio::time::Instant::now();
    let work = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let waiting = facade.snapshot_image().await;
        assert_eq!(waiting.state, ImageState::Pending);
        assert!(
            last_error(&waiting).contains("too many calls"),
            "{waiting:#?}"
        );
        assert_eq!(
            cloud.oracle().call_count(WireCall::Snapshot),
            1,
            "the delay that the cloud requested"
        );
        let ready = facade.until_snapshot(ImageState::Ready).await;
        assert_eq!(last_error(&ready), "");
    };
    tokio::select! {
        biased;
        () = work => {}
        () = facade.region().snapshots.run() => panic!("it runs until it is dropped"),
    }
    assert!(begun.elapsed() > Duration::from_secs(700));
    assert_eq!(
        cloud.oracle().images().len(),
        1,
        "the lost response named the same image"
    );

    let mut unsupported = new_snapshot();
    unsupported.name = Name::new("unsupported").unwrap();
    let down = Fault::Refused(RefusalReason::AccessDenied);
    cloud.faults().add(Rule::always(WireCall::Snapshot, down));
    let requested = facade
        .machines
        .snapshot(&principal, server_id(1), &unsupported)
        .await;
    let unsupported = requested.unwrap().id;
    let work = async {
        tokio::time::sleep(Duration::from_secs(7 * 3600)).await;
        facade.catalog.refresh().await.unwrap();
        facade.catalog.image(&principal, &unsupported).unwrap()
    };
    let failed = tokio::select! {
        biased;
        failed = work => failed,
        () = facade.region().snapshots.run() => panic!("it runs until it is dropped"),
    };
    assert_eq!(failed.state, ImageState::Failed);
    assert!(last_error(&failed).starts_with("gave up: "), "{failed:#?}");
    let calls = cloud.oracle().call_count(WireCall::Snapshot);
    assert!((50..200).contains(&calls), "{calls} calls in six hours");
}

#[tokio::test(start_paused = true)]
async fn image_waits_for_its_settle_time_and_is_not_created_once_retired() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let principal = operator();
    let mut rules = SnapshotPolicy::default();
    rules.ready_after = Duration::from_secs(600);
    let slow = facade.region().snapshots.clone().with_policy(rules);
    let requested = facade
        .machines
        .snapshot(&principal, server_id(1), &new_snapshot())
        .await;
    requested.unwrap();
    slow.pass().await.unwrap();
    let creating = facade.snapshot_image().await;
    assert_eq!(creating.state, ImageState::Creating);
    assert!(
        creating.check_offered().is_err()
            && matches!(
                creating.origin,
                Origin::Snapshot {
                    native: Some(_),
                    ..
                }
            )
    );
    tokio::time::sleep(Duration::from_secs(599)).await;
    slow.pass().await.unwrap();
    assert_eq!(facade.snapshot_image().await.state, ImageState::Creating);
    tokio::time::sleep(Duration::from_secs(1)).await;
    slow.pass().await.unwrap();
    assert_eq!(facade.snapshot_image().await.state, ImageState::Ready);

    let mut second = new_snapshot();
    second.name = Name::new("second").unwrap();
    let requested = facade
        .machines
        .snapshot(&principal, server_id(1), &second)
        .await;
    let second = requested.unwrap().id;
    let catalog = &facade.catalog;
    catalog.retire_image(&principal, &second).await.unwrap();
    slow.pass().await.unwrap();
    let failed = catalog.image(&principal, &second).unwrap();
    assert_eq!(
        (failed.state, cloud.oracle().images().len()),
        (ImageState::Failed, 1)
    );
    assert_eq!(last_error(&failed), "it was retired before it was created");
}
