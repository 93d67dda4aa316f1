//! Unreachable zones: calls to them fail without effect, and lists have gaps.

use std::num::NonZeroUsize;

use fleetwright::{
    CloudInstanceState::{Running, Terminated},
    Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _, ListItem, ProvisionError,
    RetryAdvice, Scope,
};
use fleetwright_memory::{MemoryCloud, MemoryProvisioner};
use futures_util::TryStreamExt as _;

use crate::{
    calls::{self, Prepared},
    support::{
        all_blue, block_on_paused, brisk, existing_ids, ids, in_zone, many, open, pass, seconds,
        token, with_token, zone,
    },
};

/// Launches three instances in each of two zones, alternately.
async fn two_zones() -> (
    MemoryCloud,
    MemoryProvisioner,
    Vec<fleetwright::InstanceInfo>,
) {
    let (cloud, provisioner) = open(brisk().page_size(NonZeroUsize::new(2).unwrap()));
    let mut launched = Vec::new();
    for number in 0..6 {
        let config = in_zone(if number % 2 == 0 { "mem-a" } else { "mem-b" });
        launched.push(provisioner.launch_instance(&config).await.unwrap());
    }
    (cloud, provisioner, launched)
}

async fn stream_all(
    provisioner: &MemoryProvisioner,
    filter: &InstanceFilter,
) -> (Vec<fleetwright::InstanceId>, Vec<(Scope, ProvisionError)>) {
    let all: Vec<_> = provisioner
        .stream_instances(filter)
        .try_collect()
        .await
        .unwrap();
    let (mut instances, mut gaps) = (Vec::new(), Vec::new());
    for item in all {
        match item {
            ListItem::Instance(info) => instances.push(info.id),
            ListItem::Gap { scope, error } => gaps.push((scope, error)),
        }
    }
    (instances, gaps)
}

#[tokio::test(start_paused = true)]
async fn list_with_an_unreachable_zone_is_incomplete_and_names_it() {
    let (cloud, provisioner, launched) = two_zones().await;
    let actor = cloud.external_actor();
    actor.disconnect(zone("mem-b"));
    let error = provisioner.list_instances(&all_blue()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Incomplete, Effect::None)
    );
    assert_eq!(error.scopes(), [Scope::zone(zone("mem-b"))]);
    let (instances, gaps) = stream_all(&provisioner, &all_blue()).await;
    let in_zone: Vec<_> = launched
        .iter()
        .step_by(2)
        .map(|info| info.id.clone())
        .collect();
    assert_eq!(instances, in_zone);
    assert_eq!(gaps.len(), 1);
    let (scope, error) = &gaps[0];
    assert_eq!(*scope, Scope::zone(zone("mem-b")));
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Unavailable, Effect::None)
    );
    assert_eq!(error.scopes(), std::slice::from_ref(scope));
    actor.disconnect(zone("mem-a"));
    let error = provisioner.list_instances(&all_blue()).await.unwrap_err();
    let both = [Scope::zone(zone("mem-a")), Scope::zone(zone("mem-b"))];
    assert_eq!(error.scopes(), both);
    assert_eq!(stream_all(&provisioner, &all_blue()).await.0, []);
    actor.reconnect(zone("mem-a"));
    actor.reconnect(zone("mem-b"));
    let list = provisioner.list_instances(&all_blue()).await.unwrap();
    assert_eq!(ids(&list), ids(&launched));
    assert_eq!(stream_all(&provisioner, &all_blue()).await.1.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn zone_unreachable_during_one_page_is_a_gap() {
    let (cloud, provisioner, launched) = two_zones().await;
    let filter = all_blue();
    let mut stream = provisioner.stream_instances(&filter);
    let (mut instances, mut gaps) = (0, 0);
    cloud.external_actor().disconnect(zone("mem-b"));
    while let Some(item) = stream.try_next().await.unwrap() {
        cloud.external_actor().reconnect(zone("mem-b"));
        match item {
            ListItem::Instance(_) => instances += 1,
            ListItem::Gap { .. } => gaps += 1,
        }
    }
    assert_eq!(gaps, 1);
    assert!(instances < launched.len());
}

#[test]
fn calls_to_an_unreachable_zone_fail_without_effect() {
    for call in calls::ALL {
        block_on_paused(async {
            let Prepared {
                cloud,
                provisioner,
                id,
                ..
            } = calls::prepare(call, brisk()).await;
            if call == fleetwright_memory::WireCall::ListPage {
                return;
            }
            if call == fleetwright_memory::WireCall::FindLaunch {
                let config = calls::launch_config();
                provisioner.launch_instance(&config).await.unwrap();
                pass(seconds(1)).await;
            }
            cloud.external_actor().disconnect(zone("mem-a"));
            let before = calls::snapshot_state(&cloud);
            let error = calls::send(call, &provisioner, &id).await.unwrap_err();
            assert_eq!(
                (error.kind(), error.effect(), error.retry()),
                (ErrorKind::Unavailable, Effect::None, RetryAdvice::SameToken),
                "{call}"
            );
            assert_eq!(error.scopes(), [Scope::zone(zone("mem-a"))]);
            assert_eq!(error.native_code(), Some("ZoneUnavailable"));
            assert_eq!(calls::snapshot_state(&cloud), before, "{call}");
            cloud.external_actor().reconnect(zone("mem-a"));
            calls::send(call, &provisioner, &id).await.unwrap();
        });
    }
}

#[tokio::test(start_paused = true)]
async fn unreachable_zone_affects_neither_other_zones_nor_time() {
    let (cloud, provisioner, launched) = two_zones().await;
    provisioner
        .terminate_instance(&launched[1].id)
        .await
        .unwrap();
    cloud.external_actor().disconnect(zone("mem-b"));
    pass(seconds(1)).await;
    let states = provisioner.describe_instances(&ids(&launched)).await;
    let (found, failed): (Vec<_>, Vec<_>) = states.into_iter().partition(Result::is_ok);
    assert_eq!((found.len(), failed.len()), (3, 3));
    assert!(
        found
            .into_iter()
            .all(|status| status.unwrap().state == Running)
    );
    provisioner
        .launch_instance(&in_zone("mem-a"))
        .await
        .unwrap();
    cloud.external_actor().reconnect(zone("mem-b"));
    let status = provisioner
        .describe_instance(&launched[1].id)
        .await
        .unwrap();
    assert_eq!(status.state, Terminated);
    assert_eq!(existing_ids(&cloud).len(), 6);
}

#[tokio::test(start_paused = true)]
async fn find_launch_is_not_not_found_while_the_zone_is_unreachable() {
    let (cloud, provisioner) = open(brisk());
    let config = with_token("t");
    let two = provisioner
        .launch_instances(&config, many(2))
        .await
        .unwrap();
    cloud.external_actor().disconnect(zone("mem-a"));
    let error = provisioner.find_launch(&token("t")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let error = provisioner
        .launch_instances(&config, many(2))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Unavailable, Effect::None)
    );
    assert_eq!(existing_ids(&cloud), ids(&two));
    // An unknown token has no zone, so the result is "not found".
    let record = provisioner.find_launch(&token("other")).await.unwrap();
    assert_eq!(record, fleetwright::LaunchRecord::NotFound);
}
