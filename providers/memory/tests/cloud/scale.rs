//! 100,000 instances: the cost of a call does not grow with the size of the fleet.

use std::num::NonZeroUsize;

use fleetwright::{CloudInstanceState::Terminated, InstanceFilter, InstanceProvisioner as _};
use fleetwright_memory::WireCall;

use crate::support::{all_blue, blue, brisk, found, ids, many, open, pass, plain, seconds, token};

#[tokio::test(start_paused = true)]
async fn calls_touch_only_matching_records_among_100_000() {
    let (cloud, provisioner) = open(brisk());
    let oracle = cloud.oracle();
    let fleet = provisioner.launch_instances(&plain(), many(100_000)).await;
    let fleet = fleet.unwrap();
    assert_eq!(
        (fleet.len(), oracle.call_count(WireCall::Launch)),
        (100_000, 1)
    );
    let rare = blue().tag("rare", "yes").launch_token("t").build().unwrap();
    let rare = provisioner
        .launch_instances(&rare, many(250))
        .await
        .unwrap();
    pass(seconds(1)).await;

    let mut touched = oracle.records_touched();
    let mut since_then = || {
        let before = std::mem::replace(&mut touched, oracle.records_touched());
        touched - before
    };
    // By a rare tag, alone or with a tag that all instances have: only the matches are touched.
    let by_rare = InstanceFilter::tagged("rare", "yes").unwrap();
    for filter in [by_rare.clone(), by_rare.with_tag("fleet", "blue").unwrap()] {
        let found = provisioner.list_instances(&filter).await.unwrap();
        assert_eq!(ids(&found), ids(&rare));
        assert_eq!(since_then(), 250);
    }
    assert_eq!(oracle.call_count(WireCall::ListPage), 2 * 3);
    let no_match = all_blue().with_tag("rare", "no").unwrap();
    assert_eq!(provisioner.list_instances(&no_match).await.unwrap(), []);
    assert_eq!(since_then(), 0);
    // A stream that is dropped after its first page has touched only that page.
    let everybody = all_blue();
    let mut stream = provisioner.stream_instances(&everybody);
    futures_util::StreamExt::next(&mut stream)
        .await
        .unwrap()
        .unwrap();
    drop(stream);
    assert_eq!(since_then(), 100);
    let id = &fleet[77_777].id;
    provisioner.describe_instance(id).await.unwrap();
    assert_eq!(since_then(), 1);
    provisioner.stop_instance(id).await.unwrap();
    assert_eq!(since_then(), 1);
    provisioner.terminate_instance(id).await.unwrap();
    assert_eq!(since_then(), 1);
    let record = provisioner.find_launch(&token("t")).await.unwrap();
    assert_eq!(found(record).len(), 250);
    assert_eq!(since_then(), 250);
}

#[tokio::test(start_paused = true)]
async fn list_does_not_touch_terminated_instances_that_it_excludes() {
    let page = NonZeroUsize::new(10).unwrap();
    let (cloud, provisioner) = open(brisk().page_size(page).terminated_visible(seconds(100)));
    let oracle = cloud.oracle();
    let mut kept = Vec::new();
    for _ in 0..20 {
        let batch = provisioner
            .launch_instances(&plain(), many(50))
            .await
            .unwrap();
        provisioner.terminate_instances(&ids(&batch[1..])).await;
        kept.push(batch[0].id.clone());
    }
    pass(seconds(1)).await;
    for filter in [InstanceFilter::new(), all_blue()] {
        let touched = oracle.records_touched();
        let found = provisioner.list_instances(&filter).await.unwrap();
        assert_eq!(ids(&found), kept);
        assert_eq!(oracle.records_touched() - touched, 20);
    }
    let touched = oracle.records_touched();
    let terminated = all_blue().in_state(Terminated);
    assert_eq!(
        provisioner.list_instances(&terminated).await.unwrap().len(),
        980
    );
    assert_eq!(oracle.records_touched() - touched, 980);
    pass(seconds(100)).await;
    let touched = oracle.records_touched();
    assert_eq!(provisioner.list_instances(&terminated).await.unwrap(), []);
    assert_eq!(oracle.records_touched() - touched, 0);
}

#[tokio::test(start_paused = true)]
async fn stale_list_touches_only_versions_within_the_window() {
    let (cloud, provisioner) = open(brisk().read_lag(seconds(5)));
    let batch = provisioner
        .launch_instances(&plain(), many(50))
        .await
        .unwrap();
    provisioner.terminate_instances(&ids(&batch[1..])).await;
    pass(seconds(1) + seconds(5)).await;
    let touched = cloud.oracle().records_touched();
    let found = provisioner.list_instances(&all_blue()).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(cloud.oracle().records_touched() - touched, 1);
}
