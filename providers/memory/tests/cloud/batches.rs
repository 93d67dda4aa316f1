//! Batch calls: one result for each id, and one native call for each batch.

use std::num::NonZeroUsize;

use fleetwright::{
    CloudInstanceState::{Pending, Running},
    ErrorKind, InstanceId, InstanceProvisioner as _, Operation,
};
use fleetwright_memory::WireCall;

use crate::support::{brisk, builder, existing_ids, ids, many, open, pass, plain, seconds, state};

fn unknown() -> InstanceId {
    InstanceId::new("i-unknown").unwrap()
}

#[tokio::test(start_paused = true)]
async fn batch_launch_is_one_call_and_creates_equal_instances() {
    let (cloud, provisioner) = open(builder());
    let batch = provisioner
        .launch_instances(&plain(), many(2_500))
        .await
        .unwrap();
    assert_eq!(existing_ids(&cloud), ids(&batch));
    assert!(
        batch
            .iter()
            .all(|info| info.tags == plain().tags && info.state == Pending)
    );
    assert_eq!(cloud.oracle().total_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn batch_results_are_in_request_order() {
    let (cloud, provisioner) = open(brisk());
    let two = ids(&provisioner
        .launch_instances(&plain(), many(2))
        .await
        .unwrap());
    pass(seconds(1)).await;
    let requested = [two[1].clone(), unknown(), two[0].clone(), two[1].clone()];
    let described = provisioner.describe_instances(&requested).await;
    let found: Vec<_> = described
        .iter()
        .map(|a| a.as_ref().ok().map(|s| &s.id))
        .collect();
    assert_eq!(found, [Some(&two[1]), None, Some(&two[0]), Some(&two[1])]);
    let kinds = |errors: Vec<Option<fleetwright::ProvisionError>>, operation| {
        let kinds: Vec<_> = errors
            .iter()
            .map(|e| e.as_ref().map(|e| e.kind()))
            .collect();
        assert_eq!(kinds, [None, Some(ErrorKind::NotFound), None, None]);
        let error = errors[1].as_ref().unwrap();
        assert_eq!(error.operation(), operation);
        assert!(error.request_id().is_some(), "{error}");
    };
    let errors =
        |results: Vec<fleetwright::Result<()>>| results.into_iter().map(Result::err).collect();
    kinds(
        described.into_iter().map(Result::err).collect(),
        Operation::DescribeInstances,
    );
    kinds(
        errors(provisioner.stop_instances(&requested).await),
        Operation::StopInstances,
    );
    pass(seconds(1)).await;
    let started = provisioner.start_instances(&requested).await;
    assert_eq!(started[0].as_ref().unwrap().id, two[1]);
    assert_eq!(started[2].as_ref().unwrap().state, Pending);
    kinds(
        started.into_iter().map(Result::err).collect(),
        Operation::StartInstances,
    );
    pass(seconds(1)).await;
    assert_eq!(state(&provisioner, &two[0]).await, Running);
    kinds(
        errors(provisioner.terminate_instances(&requested).await),
        Operation::TerminateInstances,
    );
    pass(seconds(1)).await;
    assert!(cloud.oracle().leftovers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn batch_is_split_into_calls_of_the_declared_size() {
    let size = NonZeroUsize::new(3).unwrap();
    let (cloud, provisioner) = open(brisk().batch_size(size));
    let oracle = cloud.oracle();
    let all = ids(&provisioner
        .launch_instances(&plain(), many(7))
        .await
        .unwrap());
    pass(seconds(1)).await;
    assert_eq!(provisioner.describe_instances(&all).await.len(), 7);
    assert_eq!(oracle.call_count(WireCall::Describe), 3);
    assert_eq!(provisioner.stop_instances(&all[..6]).await.len(), 6);
    assert_eq!(oracle.call_count(WireCall::Stop), 2);
    pass(seconds(1)).await;
    assert_eq!(provisioner.start_instances(&all[..1]).await.len(), 1);
    assert_eq!(oracle.call_count(WireCall::Start), 1);
    assert_eq!(provisioner.terminate_instances(&[]).await.len(), 0);
    assert_eq!(oracle.call_count(WireCall::Terminate), 0);
    assert_eq!(oracle.total_calls(), 7);
    assert_eq!(oracle.calls().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn failed_call_fails_only_its_part_of_the_batch() {
    use fleetwright_memory::{Fault, Phase, Rule};
    let size = NonZeroUsize::new(2).unwrap();
    let (cloud, provisioner) = open(brisk().batch_size(size));
    let all = ids(&provisioner
        .launch_instances(&plain(), many(5))
        .await
        .unwrap());
    let lost = Rule::nth(WireCall::Terminate, 2, Fault::Lost(Phase::Before));
    cloud.faults().add(lost);
    let results = provisioner.terminate_instances(&all).await;
    let failed: Vec<_> = results.iter().map(Result::is_err).collect();
    assert_eq!(failed, [false, false, true, true, false]);
    pass(seconds(1)).await;
    assert_eq!(existing_ids(&cloud), all[2..4]);
}

#[tokio::test(start_paused = true)]
async fn batches_need_as_many_calls_as_declared() {
    for count in [1_u32, 1_000, 2_500] {
        let (cloud, provisioner) = open(brisk());
        let declared = |operation| {
            let capabilities = provisioner.capabilities();
            u64::from(capabilities.native_calls(operation, count as usize).get())
        };
        let launched = provisioner.launch_instances(&plain(), many(count)).await;
        let launched = ids(&launched.unwrap());
        let mut expected = declared(Operation::LaunchInstances);
        assert_eq!(cloud.oracle().total_calls(), expected);
        pass(seconds(60)).await;
        drop(provisioner.describe_instances(&launched).await);
        expected += declared(Operation::DescribeInstances);
        assert_eq!(cloud.oracle().total_calls(), expected);
        drop(provisioner.stop_instances(&launched).await);
        expected += declared(Operation::StopInstances);
        assert_eq!(cloud.oracle().total_calls(), expected);
        pass(seconds(60)).await;
        drop(provisioner.start_instances(&launched).await);
        expected += declared(Operation::StartInstances);
        assert_eq!(cloud.oracle().total_calls(), expected);
        drop(provisioner.terminate_instances(&launched).await);
        expected += declared(Operation::TerminateInstances);
        assert_eq!(cloud.oracle().total_calls(), expected);
    }
}
