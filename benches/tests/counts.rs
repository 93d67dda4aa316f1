//! What the layers cost, in counts that are the same on every machine: allocations of a call, and calls to the cloud.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]

use std::{num::NonZeroU32, sync::Arc};

use fleetwright::{ErrorKind, InstanceConfig, InstanceId, InstanceProvisioner, layer::Stack};
use fleetwright_bench::{
    crowd::{DESCRIBES, LAUNCHES, Layers, describes, throttled_launches},
    layers::{Call, runtime, variants},
};
use fleetwright_memory::{MemoryCloud, WireCall};
use futures_util::future::join_all;

/// A layer costs the box of its future, as `async_trait` makes it, and nothing else. The default stack has seven of them.
#[test]
fn layer_allocates_one_future() {
    let runtime = runtime();
    for call in Call::ALL {
        for (name, provisioner) in variants() {
            let expected = match name {
                "bare" => 1,
                "Stack::default()" => 8,
                _ => 2,
            };
            let counted = call.allocations(&runtime, &*provisioner);
            assert_eq!(counted, expected, "{name} {}", call.name());
        }
    }
}

async fn launch(cloud: &MemoryCloud, count: u32) -> Vec<InstanceId> {
    let config = InstanceConfig::builder("image-1", "small").build().unwrap();
    let count = NonZeroU32::new(count).unwrap();
    let launched = cloud.provisioner().launch_instances(&config, count).await;
    launched.unwrap().into_iter().map(|info| info.id).collect()
}

/// The clock is paused, so a machine that is busy cannot divide the describes into two batches.
#[tokio::test(start_paused = true)]
async fn concurrent_describes_are_one_call() {
    let cloud = MemoryCloud::new();
    let ids = launch(&cloud, 500).await;
    let stack = Stack::default().wrap(cloud.provisioner());
    let describes = ids.into_iter().map(|id| {
        let stack = Arc::clone(&stack);
        tokio::spawn(async move { stack.describe_instance(&id).await })
    });
    for described in join_all(describes.collect::<Vec<_>>()).await {
        assert!(described.unwrap().is_ok());
    }
    assert_eq!(cloud.oracle().call_count(WireCall::Describe), 1);
}

#[tokio::test]
async fn describe_of_a_missing_instance_is_one_call() {
    let cloud = MemoryCloud::new();
    let stack = Stack::default().wrap(cloud.provisioner());
    let missing = InstanceId::new("i-0123456789abcdef0").unwrap();
    let error = stack.describe_instance(&missing).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(cloud.oracle().call_count(WireCall::Describe), 1);
}

/// One call for each thousand, which is the largest batch of the memory cloud.
#[tokio::test(start_paused = true)]
async fn ten_thousand_describes_are_ten_calls() {
    let (bare, layered) = (
        describes(Layers::None).await,
        describes(Layers::Stack).await,
    );
    assert_eq!(bare.calls, u64::from(DESCRIBES));
    assert_eq!(layered.calls, u64::from(DESCRIBES) / 1_000);
    assert_eq!((bare.failed, layered.failed), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn stack_launches_everything_on_a_throttled_cloud() {
    let bare = throttled_launches(Layers::None).await;
    assert_eq!((bare.calls, bare.failed), (u64::from(LAUNCHES), 190));
    // Retries alone give up when their budget of a hundred is used up.
    let retry = throttled_launches(Layers::Retry).await;
    assert_eq!((retry.calls, retry.failed), (300, 188));
    let stack = throttled_launches(Layers::Stack).await;
    assert_eq!((stack.calls, stack.wasted, stack.failed), (241, 41, 0));
}
