//! The layers, against a script and the simulated cloud, by a paused clock.

#[cfg(all(feature = "limit", feature = "metrics"))]
mod book;
mod coalesce;
mod coalesce_apart;
mod coalesce_leave;
mod coalesce_load;
mod coalesce_property;
mod fallback;
mod fallback_token;
#[cfg(feature = "limit")]
mod limit;
#[cfg(feature = "limit")]
mod limit_throttle;
#[cfg(all(feature = "limit", feature = "metrics"))]
mod metrics;
mod retry;
mod retry_launch;
mod retry_property;
mod script;
mod slow;
#[cfg(feature = "trace")]
mod spans;
#[cfg(all(feature = "limit", feature = "metrics", feature = "trace"))]
mod stack;
mod stack_property;
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

/// How many instances are not terminated.
pub(crate) fn live(cloud: &MemoryCloud) -> usize {
    cloud.oracle().leftovers().instances.len()
}

/// Runs a case of a property on a runtime of its own whose clock is virtual.
pub(crate) fn virtually<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

/// Polls a call so often at most and drops it then; the answer, if it came.
pub(crate) async fn dropped_after<T>(polls: usize, call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    for _ in 0..polls {
        let polled = poll_fn(|context| Poll::Ready(call.as_mut().poll(context)));
        if let Poll::Ready(answer) = polled.await {
            return Some(answer);
        }
        // Lets time pass to the next timer, and others take their turn.
        tokio::time::sleep(millis(1)).await;
    }
    None
}

/// Makes a call of `operation`, about `i-1` or `i-1` and `i-2`; the first error is its answer.
pub(crate) async fn make(
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
        _ => panic!("{operation} is new"),
    }
}

fn first<T>(answers: Vec<Result<T>>) -> Result<()> {
    answers.into_iter().try_for_each(|answer| answer.map(drop))
}
