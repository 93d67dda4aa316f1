//! The cost guard refuses launches over its limits, and a cleanup only touches what the kit left.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use fleetwright::{ErrorKind, InstanceConfig, InstanceProvisioner, Tags};
use fleetwright_contract_tests::{
    OWNER_TAG, OWNER_VALUE,
    cleanup::{CleanupMode, cleanup},
    cost_guard::{CostGuard, CostLimits, GuardedProvisioner},
};
use fleetwright_memory::{Clock as _, Fault, ManualClock, MemoryCloud, Phase, Rule, WireCall};

const HOUR: Duration = Duration::from_secs(3600);

fn config() -> InstanceConfig {
    InstanceConfig::builder("image", "small").build().unwrap()
}

fn owned() -> InstanceConfig {
    let mut config = config();
    config.tags = Tags::new().with(OWNER_TAG, OWNER_VALUE).unwrap();
    config
}

fn guarded(max_live: usize, max_time: Duration) -> (GuardedProvisioner, Arc<CostGuard>) {
    let guard = Arc::new(CostGuard::new(CostLimits { max_live, max_time }));
    let handle = Arc::new(MemoryCloud::new().provisioner());
    (GuardedProvisioner::new(handle, Arc::clone(&guard)), guard)
}

#[tokio::test(start_paused = true)]
async fn launches_over_the_limit_are_refused() {
    let (handle, guard) = guarded(2, HOUR);
    let first = handle.launch_instance(&config()).await.unwrap();
    let two = NonZeroU32::new(2).unwrap();
    let refused = handle.launch_instances(&config(), two).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Quota);
    assert!(
        refused
            .message()
            .contains("cost guard: 1 instances exist, 2 more are requested, and --max-live allows 2; a clause needs up to 32"),
        "{refused}"
    );
    assert!(guard.take_refusal().unwrap().contains("cost guard"));
    assert_eq!(guard.take_refusal(), None);
    let second = handle.launch_instance(&config()).await.unwrap();
    assert!(handle.launch_instance(&config()).await.is_err());
    handle.terminate_instance(&first.id).await.unwrap();
    handle.launch_instance(&config()).await.unwrap();
    assert!(handle.launch_instance(&config()).await.is_err());
    assert!(handle.terminate_instances(&[second.id]).await[0].is_ok());
    handle
        .launch_instances(&config(), NonZeroU32::MIN)
        .await
        .unwrap();
    assert!(handle.launch_instance(&config()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn unknown_launch_counts_until_its_token_is_settled() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_secs(2))
        .build();
    let guard = Arc::new(CostGuard::new(CostLimits {
        max_live: 1,
        max_time: HOUR,
    }));
    let handle = GuardedProvisioner::new(Arc::new(cloud.provisioner()), Arc::clone(&guard));
    let mut config = config();
    config.launch_token = Some("t-1".parse().unwrap());
    let dropped =
        tokio::time::timeout(Duration::from_secs(1), handle.launch_instance(&config)).await;
    assert!(dropped.is_err());
    let mut other = config.clone();
    other.launch_token = Some("t-2".parse().unwrap());
    assert!(
        handle.launch_instance(&other).await.is_err(),
        "the first may exist"
    );
    cloud
        .faults()
        .add(Rule::nth(WireCall::Launch, 1, Fault::Lost(Phase::After)));
    assert!(
        handle.launch_instance(&config).await.is_err(),
        "its response was lost"
    );
    assert!(
        handle.launch_instance(&other).await.is_err(),
        "and it exists"
    );
    let first = handle.launch_instance(&config).await.unwrap();
    handle.terminate_instance(&first.id).await.unwrap();
    handle.launch_instance(&other).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn launches_after_the_time_limit_are_refused() {
    let (handle, guard) = guarded(2, Duration::ZERO);
    let refused = handle.launch_instance(&config()).await.unwrap_err();
    assert!(
        refused
            .message()
            .contains("the run has taken longer than 0ns"),
        "{refused}"
    );
    assert!(guard.take_refusal().is_some());
}

#[tokio::test]
async fn cleanup_terminates_only_old_instances_of_the_kit() {
    let clock = Arc::new(ManualClock::new());
    let cloud = MemoryCloud::builder().clock(clock.clone()).build();
    let handle = cloud.provisioner();
    let foreign = handle.launch_instance(&config()).await.unwrap();
    let old = handle.launch_instance(&owned()).await.unwrap();
    clock.advance(2 * HOUR);
    let young = handle.launch_instance(&owned()).await.unwrap();
    let now = clock.date_at(clock.elapsed());

    let found = cleanup(&handle, CleanupMode::default(), HOUR, now)
        .await
        .unwrap();
    assert_eq!(
        found.leftovers.iter().map(|i| &i.id).collect::<Vec<_>>(),
        [&old.id]
    );
    assert_eq!(found.kept, std::slice::from_ref(&young.id));
    assert_eq!(
        cloud.oracle().leftovers().instances.len(),
        3,
        "a dry run changes nothing"
    );

    cleanup(&handle, CleanupMode::Apply, HOUR, now)
        .await
        .unwrap();
    clock.advance(HOUR);
    assert_eq!(cloud.oracle().leftovers().instances, [foreign.id, young.id]);
}
