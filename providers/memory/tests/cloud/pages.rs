//! Pages of a list: fetched on demand, correct while instances change, and failing as a whole.

use std::{collections::BTreeSet, num::NonZeroUsize};

use fleetwright::{
    Effect, ErrorKind, InstanceFilter, InstanceInfo, InstanceProvisioner as _, ListItem, Operation,
    TagChange,
};
use fleetwright_memory::{Fault, MemoryCloud, MemoryCloudBuilder, Phase, Rule, WireCall};
use futures_util::{StreamExt as _, TryStreamExt as _};

use crate::support::{all_blue, brisk, ids, many, open, pass, plain, seconds};

fn pages_of(size: usize) -> MemoryCloudBuilder {
    brisk().page_size(NonZeroUsize::new(size).unwrap())
}

#[tokio::test(start_paused = true)]
async fn empty_account_is_one_empty_page() {
    let (cloud, provisioner) = open(pages_of(1));
    assert_eq!(
        provisioner
            .list_instances(&InstanceFilter::new())
            .await
            .unwrap(),
        []
    );
    assert_eq!(cloud.oracle().total_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn pages_are_fetched_on_demand() {
    let (cloud, provisioner) = open(pages_of(2));
    let launched = provisioner
        .launch_instances(&plain(), many(5))
        .await
        .unwrap();
    let filter = InstanceFilter::new();
    let mut stream = provisioner.stream_instances(&filter);
    for (number, info) in launched.iter().enumerate() {
        match stream.next().await.unwrap().unwrap() {
            ListItem::Instance(item) => assert_eq!(*item, *info),
            gap @ ListItem::Gap { .. } => panic!("{gap:?}"),
        }
        let calls = cloud.oracle().call_count(WireCall::ListPage);
        assert_eq!(calls, number as u64 / 2 + 1);
    }
    for _ in 0..3 {
        assert!(stream.next().await.is_none());
    }
}

/// Lists page by page and calls `between` after each page.
async fn listed_while(
    cloud: &MemoryCloud,
    filter: &InstanceFilter,
    mut between: impl FnMut(u32),
) -> Vec<InstanceInfo> {
    let provisioner = cloud.provisioner();
    let mut stream = provisioner.stream_instances(filter);
    let (mut list, mut step) = (Vec::new(), 0);
    while let Some(item) = stream.try_next().await.unwrap() {
        if let ListItem::Instance(info) = item {
            list.push(*info);
        }
        step += 1;
        between(step);
        pass(seconds(1)).await;
    }
    list
}

#[tokio::test(start_paused = true)]
async fn changes_between_pages_neither_drop_nor_duplicate_unchanged_instances() {
    for size in 1..6 {
        let (cloud, provisioner) = open(pages_of(size).terminated_visible(seconds(1)));
        let all = ids(&provisioner
            .launch_instances(&plain(), many(20))
            .await
            .unwrap());
        pass(seconds(1)).await;
        let actor = cloud.external_actor();
        let untag = TagChange::new().remove("fleet").unwrap();
        // Each step terminates, untags, launches and stops one instance each.
        let list = listed_while(&cloud, &all_blue(), |step| {
            let at = step as usize;
            if at < 10 {
                actor.terminate(&all[20 - at]).unwrap();
                actor.update_tags(&all[at], &untag).unwrap();
                actor.launch(&plain()).unwrap();
            }
            actor.stop(&all[0]).unwrap();
        })
        .await;
        let unique: BTreeSet<_> = list.iter().map(|info| &info.id).collect();
        assert_eq!(unique.len(), list.len(), "pages of {size}: none twice");
        for stayed in [&all[0], &all[10]] {
            assert!(
                unique.contains(stayed),
                "pages of {size}: {stayed} is missing"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failed_page_fails_the_list_and_ends_the_stream() {
    for (page, before) in [(1, 0), (2, 3), (3, 6)] {
        let (cloud, provisioner) = open(pages_of(3));
        provisioner
            .launch_instances(&plain(), many(8))
            .await
            .unwrap();
        let lost = || Rule::nth(WireCall::ListPage, page, Fault::Lost(Phase::After));
        cloud.faults().add(lost());
        let error = provisioner.list_instances(&all_blue()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Timeout, Effect::None)
        );
        assert_eq!(error.operation(), Operation::ListInstances);
        cloud.faults().add(lost());
        let filter = all_blue();
        let item: Vec<_> = provisioner.stream_instances(&filter).collect().await;
        assert_eq!(item.len(), before + 1);
        let error = item[before].as_ref().unwrap_err();
        assert_eq!(error.operation(), Operation::StreamInstances);
        assert!(item[..before].iter().all(Result::is_ok));
        assert_eq!(cloud.faults().unused_rules(), []);
        assert_eq!(
            provisioner.list_instances(&all_blue()).await.unwrap().len(),
            8
        );
    }
}
