//! Lists: complete, exact, paginated, and correct while instances change.

use std::{collections::BTreeSet, num::NonZeroUsize};

use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Terminated},
    InstanceFilter, InstanceProvisioner as _, TagChange,
};
use fleetwright_memory::{Fault, MemoryCloud, MemoryCloudBuilder, Rule, WireCall};

use crate::support::{all_blue, blue, brisk, existing_ids, ids, open, pass, running, seconds};

fn pages_of(size: usize) -> MemoryCloudBuilder {
    brisk().page_size(NonZeroUsize::new(size).unwrap())
}

/// A mixed fleet: three tags with a few values each, in all stable states.
async fn mixed(cloud: &MemoryCloud) {
    let provisioner = cloud.provisioner();
    for number in 0..24_u32 {
        let config = blue()
            .tag("role", if number % 2 == 0 { "web" } else { "db" })
            .tag("shard", (number % 3).to_string())
            .tag("Shard", "upper")
            .build()
            .unwrap();
        let id = provisioner.launch_instance(&config).await.unwrap().id;
        match number % 4 {
            1 => provisioner.stop_instance(&id).await.unwrap(),
            2 => provisioner.terminate_instance(&id).await.unwrap(),
            _ => {}
        }
    }
    pass(seconds(1)).await;
}

/// Every filter of up to three tags and up to two states.
fn filters() -> Vec<InstanceFilter> {
    let tags = [
        ("role", "web"),
        ("role", "w"),
        ("Role", "web"),
        ("role", "WEB"),
        ("shard", "1"),
        ("shard", ""),
        ("Shard", "upper"),
        ("fleet", "blue"),
        ("absent", ""),
    ];
    let mut all = vec![InstanceFilter::new()];
    for (key, value) in tags {
        for at in 0..all.len() {
            if all[at].tags.len() < 3 {
                all.push(all[at].clone().with_tag(key, value).unwrap());
            }
        }
    }
    let plain = all.clone();
    for filter in &plain {
        all.push(filter.clone().in_any_state());
        for one in CloudInstanceState::ALL {
            all.push(filter.clone().in_state(one));
        }
        all.push(filter.clone().in_state(Terminated).in_state(Stopped));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn list_returns_exactly_the_instances_that_the_filter_matches() {
    let (cloud, provisioner) = open(pages_of(4));
    mixed(&cloud).await;
    let truth: Vec<_> = cloud
        .oracle()
        .instances()
        .into_iter()
        .map(|t| t.info)
        .collect();
    let mut sizes = BTreeSet::new();
    for filter in filters() {
        let expected: Vec<_> = truth
            .iter()
            .filter(|info| filter.matches(info))
            .cloned()
            .collect();
        let listed = provisioner.list_instances(&filter).await.unwrap();
        assert_eq!(listed, expected, "{filter:?}");
        sizes.insert(expected.len());
    }
    assert!(
        sizes.len() >= 8,
        "the filters must give different results: {sizes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn page_size_changes_only_the_number_of_calls() {
    let mut lists = Vec::new();
    for size in 1..=20 {
        let (cloud, provisioner) = open(pages_of(size));
        mixed(&cloud).await;
        let (oracle, touched) = (cloud.oracle(), cloud.oracle().records_touched());
        let list = provisioner.list_instances(&all_blue()).await.unwrap();
        assert_eq!(list.len(), 18);
        assert_eq!(
            oracle.call_count(WireCall::ListPage),
            18_u64.div_ceil(size as u64)
        );
        assert_eq!(
            oracle.records_touched() - touched,
            18,
            "terminated instances are not touched"
        );
        lists.push(list);
    }
    assert!(lists.iter().all(|list| *list == lists[0]));
}

#[tokio::test(start_paused = true)]
async fn unknown_state_is_selected_as_pending() {
    let (cloud, provisioner) = open(brisk());
    let info = running(&provisioner).await;
    let unknown = Fault::UnknownState("DEFROSTING".into());
    cloud
        .faults()
        .add(Rule::always(WireCall::ListPage, unknown));
    let listed = provisioner.list_instances(&all_blue()).await.unwrap();
    assert_eq!(ids(&listed), [info.id]);
    assert_eq!(listed[0].state, Pending);
    assert_eq!(listed[0].native_state.as_deref(), Some("DEFROSTING"));
    let runs = all_blue().in_state(Running);
    assert_eq!(provisioner.list_instances(&runs).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn tag_change_moves_an_instance_between_lists() {
    let (cloud, provisioner) = open(brisk());
    let id = running(&provisioner).await.id;
    let red = InstanceFilter::tagged("fleet", "red").unwrap();
    let change = TagChange::new().set("fleet", "red").unwrap();
    cloud.external_actor().update_tags(&id, &change).unwrap();
    assert_eq!(provisioner.list_instances(&all_blue()).await.unwrap(), []);
    assert_eq!(
        ids(&provisioner.list_instances(&red).await.unwrap()),
        existing_ids(&cloud)
    );
    provisioner.terminate_instance(&id).await.unwrap();
    pass(seconds(1)).await;
    assert_eq!(provisioner.list_instances(&red).await.unwrap(), []);
    let terminated = provisioner
        .list_instances(&red.in_any_state())
        .await
        .unwrap();
    assert_eq!((&terminated[0].id, terminated[0].state), (&id, Terminated));
}
