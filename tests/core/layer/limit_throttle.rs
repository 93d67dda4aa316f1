//! Throttling lowers the shared rate, which then recovers.

use std::time::Duration;

use fleetwright::{
    Effect, InstanceFilter, InstanceProvisioner, Operation,
    layer::{Layered, Limit, LimitPolicy, Rate},
};
use futures_util::StreamExt as _;
use tokio::time::{sleep, timeout};

use super::{
    limit::at_once,
    many, millis, numbered,
    scripted::{Response, Scripted},
};
use crate::fake::{call, id, secs};

#[tokio::test(start_paused = true)]
async fn throttling_delays_all_calls_and_halves_the_rate_once() {
    let throttled = call(Operation::StopInstance).throttled(secs(60));
    let backend = Scripted::new(vec![throttled.into(); 4]).with_latency(millis(1));
    let rate = Rate::every(secs(1)).burst(many(4));
    let policy = LimitPolicy::unlimited().with(&[Operation::StopInstance], rate);
    let limit = Layered::new(backend, Limit::new(&policy.recovery_time(secs(3600))));
    let times = at_once(&limit, 8).await;
    assert_eq!(times[..4], [0; 4].map(secs));
    // The requested delay earns no tokens; otherwise all calls would return at once.
    let after: Vec<_> = times[4..].iter().map(|at| *at - millis(60_001)).collect();
    assert_eq!(after, [2, 4, 6, 8].map(secs));
}

#[tokio::test(start_paused = true)]
async fn each_throttled_burst_halves_the_rate_down_to_an_eighth() {
    let throttled = || Response::from(call(Operation::StopInstance).throttled(Duration::ZERO));
    let backend = Scripted::new([
        throttled(),
        throttled(),
        throttled(),
        throttled(),
        throttled(),
    ]);
    let policy = LimitPolicy::unlimited().with(&[Operation::StopInstance], Rate::every(secs(1)));
    let limit = Layered::new(backend, Limit::new(&policy.recovery_time(Duration::MAX)));
    for _ in 0..7 {
        let _ = limit.stop_instance(&id("i-1")).await;
    }
    assert_eq!(limit.inner().times(), [0, 2, 6, 14, 22, 30, 38].map(secs));
}

#[tokio::test(start_paused = true)]
async fn rate_recovers_by_eighths_with_the_burst() {
    let throttled = call(Operation::StopInstance).throttled(secs(1));
    let rate = Rate::every(secs(1)).burst(many(3));
    let policy = LimitPolicy::unlimited().with(&[Operation::StopInstance], rate);
    let policy = policy.recovery_time(secs(100));
    let limit = Layered::new(
        Scripted::new([throttled.clone().into()]),
        Limit::new(&policy),
    );
    // The rate is lowered at once, to four eighths from the first second on.
    assert!(limit.stop_instance(&id("i-1")).await.is_err());
    for (from, period) in [
        (50, 2_000),
        (150, 1_600),
        (250, 1_333),
        (350, 1_142),
        (500, 1_000),
    ] {
        sleep(secs(from) - limit.inner().elapsed()).await;
        let times = at_once(&limit, 5).await;
        let wait = (times[4] - times[3]).as_millis();
        assert!(
            (period..=period + 1).contains(&wait),
            "{wait} at {from}: {times:?}"
        );
    }
    // A call long after it finds a full bucket.
    let limit = Layered::new(Scripted::new([throttled.into()]), Limit::new(&policy));
    assert!(limit.stop_instance(&id("i-1")).await.is_err());
    sleep(secs(9_999)).await;
    assert_eq!(
        at_once(&limit, 4).await,
        [9_999, 9_999, 9_999, 10_000].map(secs)
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_rate_only_the_requested_delay_applies() {
    let throttled = call(Operation::StreamInstances).throttled(secs(5));
    let down = call(Operation::ListInstances).unavailable(Effect::None, "down");
    let backend = Scripted::new([
        Response::Failure(down.retry_after(secs(77))),
        throttled.into(),
    ]);
    let limit = Layered::new(backend, Limit::new(&LimitPolicy::unlimited()));
    let filter = InstanceFilter::new();
    assert!(limit.list_instances(&filter).await.is_err());
    let items: Vec<_> = limit.stream_instances(&filter).collect().await;
    assert!(items[0].is_err());
    for _ in 0..99 {
        limit.list_instances(&filter).await.unwrap();
        limit.describe_instance(&id("i-1")).await.unwrap();
    }
    // Only throttling changes the shared rate, and only that of the operation.
    let times = limit.inner().times();
    assert_eq!(
        (times[1], times[2], limit.inner().elapsed()),
        (secs(0), secs(5), secs(5))
    );
}

#[tokio::test(start_paused = true)]
async fn no_time_is_too_long_for_a_rate() {
    let longest = Duration::MAX;
    for every in [Duration::ZERO, millis(1), secs(1 << 40), longest] {
        for burst in [1, 2, u32::MAX] {
            for requested in [Duration::ZERO, secs(1 << 40), longest] {
                let throttled = call(Operation::StopInstance).throttled(requested);
                let rate = Rate::every(every).burst(many(burst));
                let policy = LimitPolicy::unlimited().with(&[Operation::StopInstance], rate);
                for recovery in [Duration::ZERO, longest] {
                    let policy = policy.clone().recovery_time(recovery);
                    let backend = Scripted::new([throttled.clone().into()]).with_batch_size(1);
                    let limit = Layered::new(backend, Limit::new(&policy));
                    let all = async {
                        for _ in 0..4 {
                            limit.stop_instances(&numbered(3)).await;
                        }
                    };
                    let _ = timeout(secs(1 << 20), all).await;
                    assert!(!limit.inner().calls().is_empty());
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recovered_rate_earns_permits_from_recovery_on() {
    let throttled = call(Operation::StopInstance).throttled(secs(1));
    let rate = Rate::every(secs(1)).burst(many(3));
    let policy = LimitPolicy::unlimited().with(&[Operation::StopInstance], rate);
    let policy = policy.recovery_time(secs(100));
    let limit = Layered::new(Scripted::new([throttled.into()]), Limit::new(&policy));
    assert!(limit.stop_instance(&id("i-1")).await.is_err());
    // After 101 seconds the rate is back at five eighths: one call every 1.6 s.
    sleep(millis(102_700)).await;
    let times = at_once(&limit, 2).await;
    assert_eq!(times[0], millis(102_700));
    assert!(times[1] > millis(103_900), "{times:?}");
}
