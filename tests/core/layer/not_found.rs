//! Ids that no instance has, under the whole stack: one call, no wait, and no effect on other ids.

use fleetwright::{
    ErrorKind, InstanceId, InstanceProvisioner, ProvisionError, Result, RetryAdvice, layer::Stack,
};
use fleetwright_memory::{MemoryCloud, WireCall};
use tokio::time::Instant;

use super::{many, plain};
use crate::fake::{id, secs};

/// A cloud whose reads lag, as those of every real cloud do.
fn lagging() -> MemoryCloud {
    MemoryCloud::builder()
        .read_lag(secs(20))
        .terminated_visible(secs(60))
        .build()
}

/// Calls each operation for `id`, and requires "not found" after one call and no time.
async fn require_not_found(cloud: &MemoryCloud, stack: &dyn InstanceProvisioner, id: &InstanceId) {
    let both = [id.clone(), id.clone()];
    for number in 0..8 {
        let (before, began) = (cloud.oracle().total_calls(), Instant::now());
        let error = match number {
            0 => stack.describe_instance(id).await.map(drop),
            1 => stack.stop_instance(id).await,
            2 => stack.start_instance(id).await.map(drop),
            3 => stack.terminate_instance(id).await,
            4 => first(stack.describe_instances(&both).await),
            5 => first(stack.stop_instances(&both).await),
            6 => first(stack.start_instances(&both).await),
            _ => first(stack.terminate_instances(&both).await),
        }
        .unwrap_err();
        assert_eq!(
            (error.kind(), error.retry()),
            (ErrorKind::NotFound, RetryAdvice::Never),
            "{error}"
        );
        assert_eq!(cloud.oracle().total_calls() - before, 1, "{error}");
        assert!(began.elapsed() <= super::millis(1), "{error}");
    }
}

fn first<T>(results: Vec<Result<T>>) -> Result<()> {
    results.into_iter().try_for_each(|result| result.map(drop))
}

#[tokio::test(start_paused = true)]
async fn id_that_never_existed_costs_one_call_and_no_time() {
    let cloud = lagging();
    let stack = Stack::default().wrap(cloud.provisioner());
    require_not_found(&cloud, &*stack, &id("i-never")).await;
}

#[tokio::test(start_paused = true)]
async fn instance_that_is_long_gone_costs_one_call_and_no_time() {
    let cloud = lagging();
    let stack = Stack::default().wrap(cloud.provisioner());
    let info = stack.launch_instance(&plain()).await.unwrap();
    stack.terminate_instance(&info.id).await.unwrap();
    tokio::time::sleep(secs(3_600)).await;
    require_not_found(&cloud, &*stack, &info.id).await;
}

#[tokio::test(start_paused = true)]
async fn one_missing_among_500_delays_no_other() {
    let cloud = lagging();
    let launcher = cloud.provisioner();
    let launched = launcher.launch_instances(&plain(), many(499)).await;
    let mut ids: Vec<_> = launched.unwrap().into_iter().map(|i| i.id).collect();
    tokio::time::sleep(secs(60)).await;
    ids.insert(250, id("i-vanished"));
    let stack = Stack::default().wrap(cloud.provisioner());
    let (before, began) = (
        cloud.oracle().call_count(WireCall::Describe),
        Instant::now(),
    );
    let results = stack.describe_instances(&ids).await;
    assert!(began.elapsed() <= super::millis(1), "{:?}", began.elapsed());
    assert_eq!(cloud.oracle().call_count(WireCall::Describe) - before, 1);
    let missing: Vec<_> = results.iter().map(|result| result.is_err()).collect();
    assert_eq!(missing.iter().filter(|missing| **missing).count(), 1);
    let error: &ProvisionError = results[250].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let before = cloud.oracle().call_count(WireCall::Terminate);
    let ended = stack.terminate_instances(&ids).await;
    assert_eq!(ended.iter().filter(|result| result.is_ok()).count(), 499);
    assert_eq!(cloud.oracle().call_count(WireCall::Terminate) - before, 1);
    assert!(began.elapsed() <= super::millis(2), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn own_launch_that_is_not_visible_yet_is_waited_for() {
    let cloud = lagging();
    let stale =
        fleetwright_memory::Rule::always(WireCall::Describe, fleetwright_memory::Fault::StaleRead);
    cloud.faults().add(stale);
    let stack = Stack::default().wrap(cloud.provisioner());
    let info = stack.launch_instance(&plain()).await.unwrap();
    let began = Instant::now();
    let status = stack.describe_instance(&info.id).await.unwrap();
    assert_eq!(status.id, info.id);
    assert!(began.elapsed() >= secs(19), "{:?}", began.elapsed());
}
