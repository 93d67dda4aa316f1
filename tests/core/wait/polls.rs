//! Which instances are polled, how often, and when.

use std::{collections::BTreeSet, time::Duration};

use fleetwright::{
    CloudInstanceState::{self, Pending, Running},
    InstanceStatus, Operation,
    wait::{self, WaitPolicy},
};

use super::{every_second, wait_for};
use crate::fake::{Fake, id, ids, poll, secs};

#[tokio::test(start_paused = true)]
async fn instance_at_the_goal_needs_one_poll() {
    for goal in CloudInstanceState::ALL {
        let mut status = InstanceStatus::new(id("i-1"), goal);
        status.private_ip = Some([10, 0, 0, 1].into());
        let fake = Fake::new(secs(9)).with_timeline("i-1", [(0, status.clone().into())]);
        assert_eq!(wait_for(&fake, &["i-1"], goal).await.unwrap(), [status]);
        assert_eq!(fake.polls(), [secs(0)]);
    }
}

#[tokio::test(start_paused = true)]
async fn instance_is_polled_until_the_goal() {
    let fake = Fake::new(secs(0)).with_timeline("i-1", [(0, Pending.into()), (3, Running.into())]);
    let observed = wait_for(&fake, &["i-1"], Running).await.unwrap();
    assert_eq!(observed, [InstanceStatus::new(id("i-1"), Running)]);
    assert_eq!(fake.polls(), [0, 1, 2, 3].map(secs));
    assert!(fake.calls(Operation::DescribeInstance).is_empty());
}

#[tokio::test(start_paused = true)]
async fn empty_wait_needs_no_call() {
    let fake = Fake::new(secs(0));
    assert_eq!(wait_for(&fake, &[], Running).await.unwrap(), []);
    assert_eq!(fake.polls(), []);
    assert_eq!(fake.elapsed(), secs(0));
}

#[tokio::test(start_paused = true)]
async fn thousand_instances_cost_one_call_per_poll() {
    let mut fake = Fake::new(secs(0));
    let names: Vec<_> = (0..1000_u64).map(|n| format!("i-{n:03}")).collect();
    for (n, name) in (0..).zip(&names) {
        fake = fake.with_timeline(name, [(0, Pending.into()), (n % 5, Running.into())]);
    }
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let observed = wait_for(&fake, &names, Running).await.unwrap();
    let observed: Vec<_> = observed.iter().map(|status| status.id.as_str()).collect();
    assert_eq!(observed, names);
    let calls = fake.calls(Operation::DescribeInstances);
    assert_eq!(calls.len(), 5);
    for (left, call) in (0..).zip(&calls) {
        let open = (0..1000).filter(|n| n % 5 >= left).count();
        let requested: BTreeSet<_> = call.targets.iter().collect();
        assert_eq!((call.targets.len(), requested.len()), (open, open));
        assert!(requested.iter().all(|name| {
            let n: u64 = name[2..].parse().unwrap();
            n % 5 >= left
        }));
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_in_the_order_of_ids_with_repeats() {
    let fake = Fake::new(secs(0))
        .with_timeline("i-1", [(0, Running.into())])
        .with_timeline("i-2", [(0, Pending.into()), (2, Running.into())])
        .with_timeline("i-3", [(0, Pending.into()), (1, Running.into())]);
    let names = ["i-3", "i-1", "i-2", "i-1", "i-3"];
    let observed = wait_for(&fake, &names, Running).await.unwrap();
    let observed: Vec<_> = observed.iter().map(|status| status.id.as_str()).collect();
    assert_eq!(observed, names);
    let calls = fake.calls(Operation::DescribeInstances);
    let requested: Vec<_> = calls.iter().map(|call| call.targets.len()).collect();
    assert_eq!(requested, [3, 2, 1]);
}

/// Returns the poll times for an instance that never runs, under `policy`.
async fn times(tick: Duration, policy: WaitPolicy) -> Vec<Duration> {
    let mut fake = Fake::new(secs(0)).with_timeline("i-1", [(0, Pending.into())]);
    fake.capabilities.poll_interval = tick;
    let waited = wait::for_state(&fake, &ids(&["i-1"]), Running, &policy).await;
    waited.unwrap_err();
    fake.polls()
}

#[tokio::test(start_paused = true)]
async fn polls_are_at_least_one_interval_apart() {
    for tick in [1, 3].map(secs) {
        let policy = WaitPolicy::within(secs(30)).delays(secs(0), secs(2));
        let times = times(tick, policy.jitter_seed(5)).await;
        assert!(times.len() >= 7, "{times:?}");
        assert!(times.windows(2).all(|two| two[1] - two[0] >= tick));
    }
}

#[tokio::test(start_paused = true)]
async fn polls_are_spaced_without_interval_and_delay() {
    let millis = Duration::from_millis;
    let times = times(secs(0), every_second(millis(5))).await;
    let gaps = times.windows(2).map(|two| two[1] - two[0]);
    let (first, last) = (times[0], times[times.len() - 1]);
    assert_eq!((first, last), (millis(0), millis(5)), "{times:?}");
    assert!(
        gaps.clone().count() <= 5 && gaps.min().unwrap() > Duration::ZERO,
        "{times:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn zero_first_delay_grows() {
    let policy = WaitPolicy::within(secs(60)).delays(secs(0), secs(10));
    let times = times(secs(0), policy).await;
    assert!(times.len() < 50, "{} polls", times.len());
}

#[tokio::test(start_paused = true)]
async fn delays_grow_by_half_with_jitter() {
    let policy = WaitPolicy::within(secs(900)).delays(secs(2), secs(10));
    let times = times(secs(1), policy.jitter_seed(3)).await;
    let mut base = secs(2);
    let mut stretched = 0.0;
    // The deadline shortens the last delay.
    let gaps: Vec<_> = times.windows(2).map(|two| two[1] - two[0]).collect();
    for gap in &gaps[..gaps.len() - 1] {
        assert!(*gap >= base && *gap <= base * 2, "{base:?} {gap:?}");
        stretched += gap.div_duration_f64(base) - 1.0;
        base = base.mul_f64(1.5).min(secs(10));
    }
    let mean = stretched / (gaps.len() - 1) as f64;
    assert!(gaps.len() > 50 && (0.3..0.7).contains(&mean), "{mean}");
}

#[tokio::test(start_paused = true)]
async fn poll_times_are_reproducible_with_the_same_seed() {
    let policy = |seed| WaitPolicy::within(secs(300)).jitter_seed(seed);
    let first = times(secs(0), policy(1)).await;
    assert_eq!(times(secs(0), policy(1)).await, first);
    assert_ne!(times(secs(0), policy(2)).await, first);
}

#[tokio::test(start_paused = true)]
async fn longest_requested_delay_counts() {
    let fake = Fake::new(secs(0))
        .with_timeline(
            "i-1",
            [(0, poll().throttled(secs(7)).into()), (1, Running.into())],
        )
        .with_timeline(
            "i-2",
            [(0, poll().throttled(secs(20)).into()), (1, Running.into())],
        )
        .with_timeline(
            "i-3",
            [(0, poll().throttled(secs(9)).into()), (1, Running.into())],
        );
    wait_for(&fake, &["i-1", "i-2", "i-3"], Running)
        .await
        .unwrap();
    assert_eq!(fake.polls(), [0, 20].map(secs));
}

#[tokio::test(start_paused = true)]
async fn own_delay_is_kept_if_longer_than_the_requested_one() {
    let fake = Fake::new(secs(0)).with_timeline(
        "i-1",
        [(0, poll().throttled(secs(2)).into()), (1, Running.into())],
    );
    let policy = WaitPolicy::within(secs(60)).delays(secs(5), secs(5));
    let waited = wait::for_state(&fake, &ids(&["i-1"]), Running, &policy).await;
    waited.unwrap();
    assert!(fake.polls()[1] >= secs(5));
}
