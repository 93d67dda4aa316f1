//! The layers, against a scripted backend and the memory cloud, in virtual time.

mod coalesce;
mod coalesce_batches;
mod coalesce_cancel;
mod coalesce_failures;
mod coalesce_load;
mod coalesce_property;
mod fallback;
mod fallback_late;
mod fallback_scope;
mod fallback_stale;
mod fallback_token;
#[cfg(feature = "limit")]
mod limit;
#[cfg(feature = "limit")]
mod limit_throttle;
#[cfg(all(feature = "limit", feature = "metrics"))]
mod metrics;
mod not_found;
#[cfg(all(feature = "limit", feature = "metrics"))]
mod recorder;
mod retry;
mod retry_launch;
mod retry_property;
mod scripted;
#[cfg(feature = "trace")]
mod spans;
#[cfg(all(feature = "limit", feature = "metrics", feature = "trace"))]
mod stack;
mod stack_property;
mod stream_only;
mod timeout;
#[cfg(feature = "trace")]
mod trace;

use std::{
    future::{Future, poll_fn},
    num::{NonZeroU32, NonZeroUsize},
    pin::pin,
    task::Poll,
    time::Duration,
};

use fleetwright::{
    ImageId, InstanceConfig, InstanceFilter, InstanceId, InstanceProvisioner, InstanceType,
    LaunchToken, Operation, ProvisionError, Reboot, Result, SnapshotRequest, TagChange,
};
use fleetwright_memory::MemoryCloud;
use futures_util::StreamExt as _;

use crate::fake::id;

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

pub(crate) fn size(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

pub(crate) fn token(text: &str) -> LaunchToken {
    LaunchToken::new(text).unwrap()
}

pub(crate) fn plain() -> InstanceConfig {
    InstanceConfig::builder("image-1", "small")
        .tag("fleet", "blue")
        .build()
        .unwrap()
}

pub(crate) fn with_token(text: &str) -> InstanceConfig {
    let mut config = plain();
    config.launch_token = Some(token(text));
    config
}

pub(crate) fn numbered(count: usize) -> Vec<InstanceId> {
    (0..count).map(|n| id(&format!("i-{n}"))).collect()
}

/// Returns the number of instances that are not terminated.
pub(crate) fn live(cloud: &MemoryCloud) -> usize {
    cloud.oracle().leftovers().instances.len()
}

/// Runs a property-test case on a separate runtime with virtual time.
pub(crate) fn block_on_paused<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

/// Polls a call at most `polls` times and drops it. Returns the result if it completed.
pub(crate) async fn drop_after<T>(polls: usize, call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    for _ in 0..polls {
        let polled = poll_fn(|context| Poll::Ready(call.as_mut().poll(context)));
        if let Poll::Ready(result) = polled.await {
            return Some(result);
        }
        // Advances time to the next timer and lets other tasks run.
        tokio::time::sleep(millis(1)).await;
    }
    None
}

/// Sends a call of `operation` for `i-1`, or for `i-1` and `i-2`. Returns the first error.
pub(crate) async fn send(
    provisioner: &dyn InstanceProvisioner,
    operation: Operation,
    config: &InstanceConfig,
) -> Result<(), ProvisionError> {
    let (one, both) = (&id("i-1"), [id("i-1"), id("i-2")]);
    let filter = InstanceFilter::new();
    let p = provisioner;
    match operation {
        Operation::LaunchInstance => p.launch_instance(config).await.map(drop),
        Operation::LaunchInstances => p.launch_instances(config, many(2)).await.map(drop),
        Operation::TerminateInstance => p.terminate_instance(one).await,
        Operation::TerminateInstances => first(p.terminate_instances(&both).await),
        Operation::StopInstance => p.stop_instance(one).await,
        Operation::StopInstances => first(p.stop_instances(&both).await),
        Operation::StartInstance => p.start_instance(one).await.map(drop),
        Operation::StartInstances => first(p.start_instances(&both).await),
        Operation::DescribeInstance => p.describe_instance(one).await.map(drop),
        Operation::DescribeInstances => first(p.describe_instances(&both).await),
        Operation::ListInstances => p.list_instances(&filter).await.map(drop),
        Operation::StreamInstances => first(p.stream_instances(&filter).collect().await),
        Operation::FindLaunch => p.find_launch(&token("t-1")).await.map(drop),
        Operation::AccountId => p.account_id().await.map(drop),
        Operation::UpdateTags => p.update_tags(one, &TagChange::new()).await,
        Operation::RebootInstance => p.reboot_instance(one, Reboot::Soft).await,
        Operation::ResizeInstance => {
            let to = InstanceType::new("big").unwrap();
            p.resize_instance(one, &to).await
        }
        Operation::ReimageInstance => {
            let image = ImageId::new("image-2").unwrap();
            p.reimage_instance(one, &image).await
        }
        Operation::ConsoleOutput => p.console_output(one).await.map(drop),
        Operation::ConsoleSession => p.console_session(one).await.map(drop),
        Operation::SnapshotImage => {
            let request = SnapshotRequest::new("image-9").unwrap();
            p.snapshot_image(one, &request).await.map(drop)
        }
        Operation::DeleteImage => {
            let image = ImageId::new("image-9").unwrap();
            p.delete_image(&image).await
        }
        _ => panic!("{operation} has no case here"),
    }
}

fn first<T>(results: Vec<Result<T>>) -> Result<()> {
    results.into_iter().try_for_each(|result| result.map(drop))
}
