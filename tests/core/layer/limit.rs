//! The order and the rate of limited calls.

use std::{sync::atomic::Ordering, time::Duration};

use fleetwright::{
    InstanceFilter, InstanceId, InstanceProvisioner, NativeCost, Operation,
    layer::{Layered, Limit, LimitPolicy, Rate},
};
use futures_util::{StreamExt as _, future::join_all};
use proptest::{collection::vec, prelude::*};
use tokio::time::{Instant, sleep, timeout};

use super::{
    block_on_paused, drop_after, many, millis, numbered, plain,
    scripted::{Response, Scripted},
    send, size,
};
use crate::fake::secs;

fn wrap(backend: Scripted, operations: &[Operation], rate: Rate) -> Layered<Scripted, Limit> {
    let policy = LimitPolicy::unlimited().with(operations, rate);
    Layered::new(backend, Limit::new(&policy))
}

fn stops(rate: Rate) -> Layered<Scripted, Limit> {
    wrap(Scripted::new([]), &[Operation::StopInstance], rate)
}

/// Sends several stops at once, and returns when each was sent.
pub(crate) async fn at_once(limit: &Layered<Scripted, Limit>, count: usize) -> Vec<Duration> {
    let before = limit.inner().times().len();
    join_all(numbered(count).iter().map(|id| limit.stop_instance(id))).await;
    limit.inner().times().split_off(before)
}

#[tokio::test(start_paused = true)]
async fn burst_is_sent_at_once_and_later_calls_are_spaced() {
    let limit = stops(Rate::every(secs(1)).burst(many(2)));
    assert_eq!(at_once(&limit, 5).await, [0, 0, 1, 2, 3].map(secs));
    sleep(secs(99)).await;
    assert_eq!(at_once(&limit, 3).await, [102, 102, 103].map(secs));
    let limit = stops(Rate::per_second(many(4)));
    assert_eq!(at_once(&limit, 6).await, [0, 0, 0, 0, 250, 500].map(millis));
}

#[tokio::test(start_paused = true)]
async fn single_call_batch_and_stream_share_a_rate() {
    let pairs = [
        (Operation::LaunchInstance, Operation::LaunchInstances),
        (Operation::TerminateInstance, Operation::TerminateInstances),
        (Operation::StopInstance, Operation::StopInstances),
        (Operation::StartInstance, Operation::StartInstances),
        (Operation::DescribeInstance, Operation::DescribeInstances),
        (Operation::ListInstances, Operation::StreamInstances),
    ];
    for (one, other) in pairs {
        for named in [one, other] {
            let limit = wrap(Scripted::new([]), &[named], Rate::every(secs(1)));
            for operation in [one, other, one, Operation::RebootInstance] {
                send(&limit, operation, &plain()).await.unwrap();
            }
            assert_eq!(limit.inner().times(), [0, 1, 2, 2].map(secs), "{named}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn later_rules_replace_shared_rates() {
    use Operation::{RebootInstance, ResizeInstance, StopInstance, UpdateTags};
    let (slow, slower) = (Rate::every(secs(1)), Rate::every(secs(10)));
    let policy = LimitPolicy::unlimited()
        .with(&[RebootInstance, ResizeInstance, StopInstance], slow)
        .with(&[StopInstance], slower);
    let limit = Layered::new(Scripted::new([]), Limit::new(&policy));
    for operation in [
        RebootInstance,
        ResizeInstance,
        StopInstance,
        RebootInstance,
        StopInstance,
    ] {
        send(&limit, operation, &plain()).await.unwrap();
    }
    for _ in 0..9 {
        send(&limit, UpdateTags, &plain()).await.unwrap();
    }
    assert_eq!(limit.inner().times()[..5], [0, 1, 1, 2, 11].map(secs));
    assert_eq!(limit.inner().elapsed(), secs(11));
}

#[tokio::test(start_paused = true)]
async fn every_operation_has_a_limit_of_its_own_by_default() {
    for operation in Operation::ALL {
        let limit = Layered::new(Scripted::new([]), Limit::new(&LimitPolicy::default()));
        let (burst, rate) = if operation.is_read() {
            (100, 20)
        } else {
            (50, 10)
        };
        for _ in 0..burst + rate {
            send(&limit, operation, &plain()).await.unwrap();
        }
        assert_eq!(limit.inner().elapsed(), secs(1), "{operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn declared_native_calls_are_charged() {
    let rate = Rate::every(secs(1)).burst(many(10));
    let backend = Scripted::new([])
        .with_native_cost(Operation::TerminateInstance, NativeCost::each(2))
        .with_native_cost(Operation::TerminateInstances, NativeCost::each(1).plus(2))
        .with_native_cost(Operation::LaunchInstances, NativeCost::each(1));
    let operations = [Operation::TerminateInstance, Operation::LaunchInstance];
    let limit = wrap(backend, &operations, rate);
    let ids = numbered(6);
    // Two, eight, two and four of ten permits, and then one a second.
    limit.terminate_instance(&ids[0]).await.unwrap();
    drop(limit.terminate_instances(&ids).await);
    limit.terminate_instance(&ids[0]).await.unwrap();
    limit.launch_instances(&plain(), many(4)).await.unwrap();
    assert_eq!(limit.inner().times(), [0, 0, 2, 6].map(secs));
}

#[tokio::test(start_paused = true)]
async fn batch_needs_one_permit_per_native_call() {
    let rate = Rate::every(secs(1)).burst(many(4));
    let limit = wrap(
        Scripted::new([]).with_batch_size(10),
        &[Operation::StopInstance],
        rate,
    );
    let stop = async |count| drop(limit.stop_instances(&numbered(count)).await);
    stop(30).await;
    stop(11).await;
    stop(10).await;
    assert_eq!(limit.inner().times(), [0, 1, 2].map(secs));
}

#[tokio::test(start_paused = true)]
async fn batch_larger_than_the_burst_delays_later_calls() {
    let rate = Rate::every(secs(1)).burst(many(2));
    let limit = wrap(
        Scripted::new([]).with_batch_size(1),
        &[Operation::StopInstance],
        rate,
    );
    let stop = async |count| drop(limit.stop_instances(&numbered(count)).await);
    stop(1).await;
    // It waits for a full bucket, as a call of two would.
    stop(5).await;
    // Three tokens are owed, and one is earned.
    stop(1).await;
    stop(1).await;
    assert_eq!(limit.inner().times(), [0, 1, 5, 6].map(secs));
    sleep(secs(60)).await;
    assert_eq!(at_once(&limit, 3).await, [66, 66, 67].map(secs));
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_limited_in_order_of_arrival() {
    let rate = Rate::every(Duration::ZERO)
        .burst(many(999))
        .max_concurrent(size(3));
    let backend = Scripted::new([]).with_latency(secs(1));
    let limit = wrap(backend, &[Operation::StopInstance], rate);
    let times = at_once(&limit, 7).await;
    assert_eq!(times, [0, 0, 0, 1, 1, 1, 2].map(secs));
    assert_eq!(limit.inner().max_in_flight.load(Ordering::SeqCst), 3);
    assert_eq!(
        limit.inner().targets().concat(),
        numbered(7)
            .iter()
            .map(InstanceId::as_str)
            .collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn stream_holds_its_slot_until_its_end() {
    let rate = Rate::every(Duration::ZERO).max_concurrent(size(1));
    let limit = wrap(Scripted::new([]), &[Operation::ListInstances], rate);
    let filter = InstanceFilter::new();
    let blocked = async || {
        timeout(secs(1), limit.list_instances(&filter))
            .await
            .is_err()
    };
    let mut read = limit.stream_instances(&filter);
    // The stream has not started.
    assert!(!blocked().await);
    assert!(read.next().await.is_none());
    assert!(!blocked().await);
    let limit = wrap(
        Scripted::always(Response::Hang),
        &[Operation::ListInstances],
        rate,
    );
    let mut read = limit.stream_instances(&filter);
    assert!(timeout(secs(1), read.next()).await.is_err());
    let waits = timeout(secs(1), limit.list_instances(&filter)).await;
    assert!(waits.is_err() && limit.inner().calls().len() == 1);
    drop(read);
    let _ = timeout(secs(1), limit.list_instances(&filter)).await;
    assert_eq!(limit.inner().calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn dropped_waiter_uses_no_permit_and_no_slot() {
    for polls in 0..50 {
        for concurrent in [1, 9] {
            let rate = Rate::every(millis(10)).max_concurrent(size(concurrent));
            let backend = Scripted::new([]).with_latency(millis(5));
            let limit = wrap(backend, &[Operation::StopInstance], rate);
            let names = numbered(3);
            let (_, left, _) = tokio::join!(
                limit.stop_instance(&names[0]),
                drop_after(polls, limit.stop_instance(&names[1])),
                limit.stop_instance(&names[2]),
            );
            let sent = limit.inner().calls();
            let second_was_sent = sent.iter().any(|call| call.targets == ["i-1"]);
            assert!(left.is_none() || second_was_sent);
            let last = sent.iter().find(|call| call.targets == ["i-2"]).unwrap();
            // At most one poll later than it was due.
            let due = if second_was_sent { 20..=22 } else { 10..=12 };
            assert!(due.contains(&last.at.as_millis()), "{polls}: {sent:?}");
            let began = Instant::now();
            limit.stop_instance(&names[0]).await.unwrap();
            assert!(began.elapsed() <= millis(15));
        }
    }
}

proptest! {
    #[test]
    fn no_interval_exceeds_burst_plus_earned_permits(
        every in 1_u64..50, burst in 1_u32..6,
        callers in vec((0_u64..500, 1_usize..6), 1..40),
    ) {
        block_on_paused(async {
            let rate = Rate::every(millis(every)).burst(many(burst));
            let backend = Scripted::new([]).with_batch_size(1);
            let limit = wrap(backend, &[Operation::StopInstance], rate);
            let call = async |at, turns: usize| {
                sleep(millis(at)).await;
                limit.stop_instances(&numbered(turns.min(burst as usize))).await;
            };
            join_all(callers.iter().map(|(at, turns)| call(*at, *turns))).await;
            let calls = limit.inner().calls();
            prop_assert_eq!(calls.len(), callers.len());
            for (first, from) in calls.iter().enumerate() {
                let mut turns = 0;
                for to in &calls[first..] {
                    turns += to.targets.len() as u128;
                    let earned = (to.at - from.at).as_millis() / u128::from(every);
                    prop_assert!(turns <= u128::from(burst) + earned, "{:?}", calls);
                }
            }
            // No call waits while tokens are available: all are sent once all tokens are earned.
            let turns: usize = calls.iter().map(|call| call.targets.len()).sum();
            let last_arrival = callers.iter().map(|(at, _)| *at).max().unwrap_or(0);
            let most = millis(last_arrival) + millis(every) * (turns as u32 + burst);
            prop_assert!(limit.inner().elapsed() <= most);
            Ok(())
        })?;
    }
}

/// Polls a call once, so that it waits for its permit, and keeps it.
async fn poll_once(call: &mut (impl Future + Unpin)) {
    std::future::poll_fn(|context| {
        assert!(std::pin::Pin::new(&mut *call).poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn call_that_is_kept_and_not_polled_blocks_no_other() {
    let limit = stops(Rate::every(secs(1)));
    let ids = numbered(30);
    limit.stop_instance(&ids[0]).await.unwrap();
    let mut kept: Vec<_> = ids[1..11]
        .iter()
        .map(|id| limit.stop_instance(id))
        .collect();
    for call in &mut kept {
        poll_once(call).await;
    }
    // Ten calls are kept, and nothing polls them. The others are sent after them, in order.
    let began = Instant::now();
    let others = join_all(ids[11..].iter().map(|id| limit.stop_instance(id)));
    timeout(secs(45), others).await.unwrap();
    assert!(began.elapsed() >= secs(29), "{:?}", began.elapsed());
    let sent: Vec<_> = limit.inner().targets().concat();
    let expected: Vec<_> = ids[..1]
        .iter()
        .chain(&ids[11..])
        .map(ToString::to_string)
        .collect();
    assert_eq!(sent, expected);
    // Their own turn has come meanwhile.
    let began = Instant::now();
    join_all(kept).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn unpolled_arm_of_a_select_does_not_stall_the_gate() {
    let limit = stops(Rate::every(secs(10)));
    let ids = numbered(3);
    limit.stop_instance(&ids[0]).await.unwrap();
    let mut kept = limit.stop_instance(&ids[1]);
    tokio::select! {
        _ = &mut kept => panic!("it must wait for ten seconds"),
        () = sleep(secs(1)) => {}
    }
    // The arm still exists, and is polled again only after the next call.
    timeout(secs(60), limit.stop_instance(&ids[2]))
        .await
        .unwrap()
        .unwrap();
    kept.await.unwrap();
    assert!(limit.inner().elapsed() <= secs(40));
}

#[tokio::test(start_paused = true)]
async fn dropped_calls_give_their_permits_back_to_those_behind() {
    let limit = stops(Rate::every(secs(1)));
    let ids = numbered(12);
    limit.stop_instance(&ids[0]).await.unwrap();
    let mut dropped: Vec<_> = ids[1..11]
        .iter()
        .map(|id| limit.stop_instance(id))
        .collect();
    for call in &mut dropped {
        poll_once(call).await;
    }
    let mut last = limit.stop_instance(&ids[11]);
    poll_once(&mut last).await;
    drop(dropped);
    last.await.unwrap();
    assert_eq!(limit.inner().times(), [0, 1].map(secs));
}
