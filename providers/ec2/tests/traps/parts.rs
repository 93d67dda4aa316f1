//! Batches in which single instances cannot be changed: the others are, with few calls.

use std::{num::NonZeroU32, time::Duration};

use aws_sdk_ec2::types::AttributeBooleanValue;
use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceId, InstanceProvisioner, Market,
    ProvisionError, Result, RetryAdvice, Scope, Zone,
    layer::Stack,
    wait::{self, WaitPolicy},
};
use fleetwright_emulators::ec2::{Capacity, Knobs, RequiredTag};
use futures_util::future::join_all;

use crate::{
    alive,
    emulated::{Ec2Harness, sdk_config},
};

/// A handle whose harness allows IAM-conditioned changes of instances tagged `fleet=blue` only.
fn conditioned() -> Ec2Harness {
    Ec2Harness::with_knobs(|knobs| knobs.required_tag = Some(RequiredTag::new("fleet", "blue")))
}

fn tagged(harness: &Ec2Harness, fleet: &str) -> InstanceConfig {
    let mut config = harness.config();
    config.tags.insert("fleet", fleet).unwrap();
    config
}

async fn launch(
    ec2: &dyn InstanceProvisioner,
    config: &InstanceConfig,
    count: u32,
) -> Vec<InstanceId> {
    let count = NonZeroU32::new(count).unwrap();
    let launched = ec2.launch_instances(config, count).await.unwrap();
    launched.into_iter().map(|info| info.id).collect()
}

async fn wait_for(ec2: &dyn InstanceProvisioner, ids: &[InstanceId], state: CloudInstanceState) {
    let delay = Duration::from_millis(20);
    let policy = WaitPolicy::within(Duration::from_secs(60)).delays(delay, delay);
    wait::for_state(ec2, ids, state, &policy).await.unwrap();
}

fn kinds<T>(results: &[Result<T>]) -> Vec<Option<ErrorKind>> {
    let kind = |result: &Result<T>| result.as_ref().err().map(ProvisionError::kind);
    results.iter().map(kind).collect()
}

fn adjust(harness: &Ec2Harness, change: impl FnOnce(&mut Knobs)) {
    let mut knobs = harness.emulator().knobs();
    change(&mut knobs);
    harness.emulator().set_knobs(knobs);
}

/// Returns how many calls of two actions `call` sends.
async fn count_calls<T>(
    harness: &Ec2Harness,
    actions: [&str; 2],
    call: impl Future<Output = T>,
) -> (T, [u64; 2]) {
    let before = actions.map(|action| harness.call_count(action));
    let result = call.await;
    let after = actions.map(|action| harness.call_count(action));
    (result, [after[0] - before[0], after[1] - before[1]])
}

#[tokio::test]
async fn trap_47_vanished_id_does_not_stop_other_terminations_under_a_tag_condition() {
    let harness = conditioned();
    let ec2 = harness.open().await;
    let mut ids = launch(&*ec2, &tagged(&harness, "blue"), 100).await;
    let ended = launch(&*ec2, &tagged(&harness, "blue"), 1).await;
    assert!(ec2.terminate_instance(&ended[0]).await.is_ok());
    wait_for(&*ec2, &ended, CloudInstanceState::Terminated).await;
    ids.insert(40, harness.unknown_id());
    ids.push(ended[0].clone());
    let calls = ["TerminateInstances", "DescribeInstances"];
    let (results, sent) = count_calls(&harness, calls, ec2.terminate_instances(&ids)).await;
    for (id, kind) in ids.iter().zip(kinds(&results)) {
        let expected = (*id == harness.unknown_id()).then_some(ErrorKind::NotFound);
        assert_eq!(kind, expected, "{id}");
    }
    // All, those that the read shows, and the one that it does not show.
    assert_eq!(sent, [3, 1]);
    // Alone they have the same results.
    ec2.terminate_instance(&ended[0]).await.unwrap();
    let error = ec2.terminate_instance(&harness.unknown_id()).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    wait_for(&*ec2, &ids[..40], CloudInstanceState::Terminated).await;
    assert_eq!(alive(&harness), 0);
}

#[tokio::test]
async fn trap_47_instance_without_permission_does_not_stop_the_others() {
    let harness = conditioned();
    let ec2 = harness.open().await;
    let mut ids = launch(&*ec2, &tagged(&harness, "blue"), 30).await;
    let others = launch(&*ec2, &tagged(&harness, "green"), 2).await;
    ids.insert(3, others[0].clone());
    ids.insert(20, others[1].clone());
    wait_for(&*ec2, &ids, CloudInstanceState::Running).await;
    let results = ec2.stop_instances(&ids).await;
    let (started, terminated) = {
        let stopped: Vec<_> = ids
            .iter()
            .filter(|id| !others.contains(id))
            .cloned()
            .collect();
        wait_for(&*ec2, &stopped, CloudInstanceState::Stopped).await;
        let started = ec2.start_instances(&ids).await;
        (started, ec2.terminate_instances(&ids).await)
    };
    for results in [kinds(&results), kinds(&started), kinds(&terminated)] {
        for (id, kind) in ids.iter().zip(results) {
            let expected = others.contains(id).then_some(ErrorKind::Forbidden);
            assert_eq!(kind, expected, "{id}");
        }
    }
}

#[tokio::test]
async fn trap_47_missing_permission_for_all_costs_few_calls() {
    let harness = conditioned();
    let ec2 = harness.open().await;
    let ids = launch(&*ec2, &tagged(&harness, "green"), 200).await;
    let calls = ["TerminateInstances", "DescribeInstances"];
    let (results, sent) = count_calls(&harness, calls, ec2.terminate_instances(&ids)).await;
    for error in results.into_iter().map(Result::unwrap_err) {
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Forbidden, Effect::None)
        );
    }
    assert!(sent[0] <= 40 && sent[1] == 1, "{sent:?}");
}

#[tokio::test]
async fn trap_14_refused_batch_costs_few_calls() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let running = launch(&*ec2, &harness.config(), 100).await;
    let mut spot = harness.config();
    spot.placement.market = Some(Market::Spot);
    let spot = launch(&*ec2, &spot, 20).await;
    for ids in [&running, &spot] {
        wait_for(&*ec2, ids, CloudInstanceState::Running).await;
    }
    adjust(&harness, |knobs| {
        knobs.timing.boot = Duration::from_secs(3600);
    });
    let pending = launch(&*ec2, &harness.config(), 100).await;
    let calls = ["StopInstances", "DescribeInstances"];
    let (results, sent) = count_calls(&harness, calls, ec2.stop_instances(&pending)).await;
    for error in results.into_iter().map(Result::unwrap_err) {
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Conflict, Effect::None)
        );
        assert!(matches!(error.retry(), RetryAdvice::After(_)), "{error}");
    }
    assert_eq!(sent, [1, 1], "all pending");
    let ended = launch(&*ec2, &harness.config(), 20).await;
    ec2.terminate_instances(&ended).await;
    let groups = [
        (&running, None),
        (&pending, Some(ErrorKind::Conflict)),
        (&ended, Some(ErrorKind::WrongState)),
        (&spot, Some(ErrorKind::Unsupported)),
    ];
    let mut items: Vec<_> = groups
        .into_iter()
        .flat_map(|(ids, kind)| ids.iter().map(move |id| (id.clone(), kind)))
        .collect();
    items.push((harness.unknown_id(), Some(ErrorKind::NotFound)));
    items.sort();
    let ids: Vec<_> = items.iter().map(|(id, _)| id.clone()).collect();
    let (results, sent) = count_calls(&harness, calls, ec2.stop_instances(&ids)).await;
    let expected: Vec<_> = items.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(kinds(&results), expected);
    assert!(sent[0] <= 8 && sent[1] <= 3, "{sent:?}");
    wait_for(&*ec2, &running, CloudInstanceState::Stopped).await;
}

#[tokio::test]
async fn trap_14_protected_instances_do_not_stop_other_terminations() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let ids = launch(&*ec2, &harness.config(), 30).await;
    let protected = [&ids[2], &ids[9], &ids[28]];
    let sdk = aws_sdk_ec2::Client::new(&sdk_config(&harness.emulator().endpoint()));
    for id in protected {
        let yes = AttributeBooleanValue::builder().value(true).build();
        let call = sdk.modify_instance_attribute().instance_id(id.as_str());
        call.disable_api_termination(yes).send().await.unwrap();
    }
    let calls = ["TerminateInstances", "DescribeInstances"];
    let (results, sent) = count_calls(&harness, calls, ec2.terminate_instances(&ids)).await;
    for (id, kind) in ids.iter().zip(kinds(&results)) {
        let expected = protected.contains(&id).then_some(ErrorKind::Forbidden);
        assert_eq!(kind, expected, "{id}");
    }
    // One more than there are protected instances, because EC2 names one of them at a time.
    assert_eq!(sent, [4, 1]);
}

/// A fleet with instances of every kind that a change can meet, in an order that depends on the seed.
async fn mixed_fleet(seed: u64) -> (Ec2Harness, Vec<InstanceId>) {
    let harness = Ec2Harness::with_knobs(|knobs| {
        knobs.seed = seed;
        let tag = RequiredTag::new("fleet", "blue");
        knobs.required_tag = (seed % 2 == 1).then_some(tag);
    });
    let ec2 = harness.open().await;
    let (blue, green) = (tagged(&harness, "blue"), tagged(&harness, "green"));
    let mut spot = blue.clone();
    spot.placement.market = Some(Market::Spot);
    let mut ids = vec![harness.unknown_id()];
    for config in [&blue, &green, &spot] {
        ids.extend(launch(&*ec2, config, 3).await);
    }
    let ended = launch(&*ec2, &blue, 2).await;
    let stopped = launch(&*ec2, &blue, 3).await;
    wait_for(&*ec2, &ids[1..], CloudInstanceState::Running).await;
    wait_for(&*ec2, &stopped, CloudInstanceState::Running).await;
    ec2.terminate_instances(&ended).await;
    ec2.stop_instances(&stopped).await;
    wait_for(&*ec2, &ended, CloudInstanceState::Terminated).await;
    wait_for(&*ec2, &stopped, CloudInstanceState::Stopped).await;
    ids.extend(ended.into_iter().chain(stopped));
    adjust(&harness, |knobs| {
        knobs.timing.boot = Duration::from_secs(3600);
    });
    ids.extend(launch(&*ec2, &blue, 3).await);
    // A permutation, because no step has a common divisor with the number of ids.
    let (count, step) = (ids.len(), [5, 7, 11][usize::try_from(seed).unwrap() % 3]);
    assert_eq!(count, 18);
    let order = (0..count).map(|index| ids[(index * step + 3) % count].clone());
    let order: Vec<_> = order.collect();
    (harness, order)
}

/// Each item of a batch has the result that it has alone.
#[tokio::test]
async fn trap_14_batch_has_the_results_of_single_calls() {
    for seed in 0..6 {
        for change in ["terminate", "stop", "start"] {
            let ((batch, ids), (single, same)) = (mixed_fleet(seed).await, mixed_fleet(seed).await);
            assert_eq!(ids, same, "the emulator is deterministic");
            let (batch, single) = (batch.open().await, single.open().await);
            let (mut alone, together) = (
                Vec::new(),
                match change {
                    "terminate" => kinds(&batch.terminate_instances(&ids).await),
                    "stop" => kinds(&batch.stop_instances(&ids).await),
                    _ => kinds(&batch.start_instances(&ids).await),
                },
            );
            for id in &ids {
                let result = match change {
                    "terminate" => single.terminate_instance(id).await,
                    "stop" => single.stop_instance(id).await,
                    _ => single.start_instance(id).await.map(drop),
                };
                alone.push(result.err().map(|error| error.kind()));
            }
            assert_eq!(together, alone, "{change}, seed {seed}: {ids:?}");
        }
    }
}

/// Launches 4 `t3.micro` and 4 `t3.small` in each of two zones, and stops them.
async fn stopped_fleet(harness: &Ec2Harness, ec2: &dyn InstanceProvisioner) -> Vec<InstanceId> {
    let mut ids = Vec::new();
    for zone in ["us-east-1a", "us-east-1b"] {
        for name in ["t3.micro", "t3.small"] {
            let mut config = harness.config();
            config.instance_type = name.parse().unwrap();
            config.placement.zone = Some(Zone::new(zone).unwrap());
            ids.extend(launch(ec2, &config, 4).await);
        }
    }
    wait_for(ec2, &ids, CloudInstanceState::Running).await;
    for result in ec2.stop_instances(&ids).await {
        result.unwrap();
    }
    wait_for(ec2, &ids, CloudInstanceState::Stopped).await;
    ids
}

/// Requires that a start of `ids` fails for those of `refused`, with a capacity error of their offering.
fn check_capacity<T: std::fmt::Debug>(
    ids: &[InstanceId],
    results: &[Result<T>],
    refused: &[InstanceId],
) {
    for (id, result) in ids.iter().zip(results) {
        match result {
            Ok(_) => assert!(!refused.contains(id), "{id} has no capacity"),
            Err(error) => {
                assert!(refused.contains(id), "{id}: {error}");
                assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
                let offering = Scope::Offering {
                    instance_type: Some("t3.small".parse().unwrap()),
                    zone: Some("us-east-1b".parse().unwrap()),
                    market: Some(Market::OnDemand),
                };
                assert_eq!(error.scopes(), [offering], "{error}");
            }
        }
    }
}

#[tokio::test]
async fn trap_48_start_without_capacity_does_not_stop_other_starts() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let ids = stopped_fleet(&harness, &*ec2).await;
    adjust(&harness, |knobs| {
        let mut rule = Capacity::of(0);
        rule.instance_type = Some("t3.small".to_owned());
        rule.zone = Some("us-east-1b".to_owned());
        knobs.capacity = vec![rule];
    });
    let refused = &ids[12..];
    let calls = ["StartInstances", "DescribeInstances"];
    let (results, sent) = count_calls(&harness, calls, ec2.start_instances(&ids)).await;
    check_capacity(&ids, &results, refused);
    // The whole batch, each of four offerings, then two and one of the one without capacity; two reads.
    assert_eq!(sent, [7, 2]);
    let error = ec2.start_instance(&refused[0]).await;
    check_capacity(&refused[..1], &[error], refused);
    wait_for(&*ec2, &ids[..12], CloudInstanceState::Running).await;
}

#[tokio::test]
async fn trap_48_as_many_starts_as_fit_succeed() {
    for free in 0..=8 {
        let harness = Ec2Harness::with_knobs(|_| {});
        let ec2 = harness.open().await;
        let ids = launch(&*ec2, &harness.config(), 8).await;
        wait_for(&*ec2, &ids, CloudInstanceState::Running).await;
        ec2.stop_instances(&ids).await;
        wait_for(&*ec2, &ids, CloudInstanceState::Stopped).await;
        // A t3.micro has two vCPUs.
        for (quota, kind) in [
            (Some(2 * free), ErrorKind::Quota),
            (None, ErrorKind::Capacity),
        ] {
            adjust(&harness, |knobs| {
                knobs.vcpu_quota = quota;
                knobs.capacity = vec![Capacity::of(free)];
            });
            let calls = ["StartInstances", "DescribeInstances"];
            let (results, sent) = count_calls(&harness, calls, ec2.start_instances(&ids)).await;
            let failed: Vec<_> = kinds(&results).into_iter().flatten().collect();
            assert_eq!(
                failed,
                vec![kind; usize::try_from(8 - free).unwrap()],
                "{free}"
            );
            assert!(sent[0] <= 8, "{free}: {sent:?}");
            wait_for_all_started(&*ec2, &ids, &results).await;
        }
    }
}

/// Waits until the started ones run, and stops them again.
async fn wait_for_all_started<T>(
    ec2: &dyn InstanceProvisioner,
    ids: &[InstanceId],
    results: &[Result<T>],
) {
    let started = ids.iter().zip(results).filter(|(_, result)| result.is_ok());
    let started: Vec<_> = started.map(|(id, _)| id.clone()).collect();
    wait_for(ec2, &started, CloudInstanceState::Running).await;
    ec2.stop_instances(&started).await;
    wait_for(ec2, &started, CloudInstanceState::Stopped).await;
}

#[tokio::test]
async fn trap_48_unrelated_callers_under_the_layers_have_results_of_their_own() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = Stack::default().wrap(harness.open().await);
    let ids = stopped_fleet(&harness, &*ec2).await;
    adjust(&harness, |knobs| {
        let mut rule = Capacity::of(0);
        rule.instance_type = Some("t3.small".to_owned());
        rule.zone = Some("us-east-1b".to_owned());
        knobs.capacity = vec![rule];
    });
    let results = join_all(ids.iter().map(|id| ec2.start_instance(id))).await;
    check_capacity(&ids, &results, &ids[12..]);
}
