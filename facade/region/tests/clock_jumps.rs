//! Clocks that jump, at every second of a server's life: no observation is ignored for long, and no delay exceeds its policy.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright::{Reboot, TagChange};
use fleetwright_facade_testkit::{NamePlanner, TestRegion, memory_store, server_admin, server_id};
use fleetwright_memory::{Fault, MemoryCloud, Phase as When, RefusalReason, Rule, WireCall};
use fleetwright_region::server::{Health, Phase, Power, ServerView};
use fleetwright_runtime::clock::{Clock, TokioClock};
use tokio::time::{Instant, timeout};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// The longest that one change may take: the longest backoff, and some scans.
const BOUND: Duration = Duration::from_secs(700);

/// A clock that was set forward or back by some seconds.
#[derive(Debug)]
struct JumpingClock {
    base: TokioClock,
    offset: AtomicI64,
}

impl Clock for JumpingClock {
    fn now(&self) -> DateTime<Utc> {
        self.base.now() + TimeDelta::seconds(self.offset.load(Ordering::SeqCst))
    }
}

fn region(cloud: &MemoryCloud) -> (TestRegion, Arc<JumpingClock>) {
    let epoch = DateTime::<Utc>::from_timestamp(1_767_225_600, 0).unwrap();
    let clock = Arc::new(JumpingClock {
        base: TokioClock::starting_at(epoch),
        offset: AtomicI64::new(0),
    });
    let provisioner = Arc::new(cloud.provisioner());
    let names = NamePlanner::identity();
    let region = TestRegion::reopened(provisioner, memory_store(), names, clock.clone());
    (region, clock)
}

fn healthy(view: &ServerView) -> bool {
    view.phase == Phase::Running && view.health == Health::Healthy
}

/// Waits until a server fulfils a condition, and fails if that takes too long.
async fn soon(region: &TestRegion, what: &str, condition: impl Fn(&ServerView) -> bool) {
    let reached = timeout(BOUND, region.until(server_id(1), condition)).await;
    if reached.is_err() {
        let view = region.read(server_id(1)).await;
        panic!("{what} takes longer than {BOUND:?}: {view:#?}");
    }
}

/// The life of a server: launched, stopped, started, deleted.
async fn life(region: &TestRegion) {
    let (admin, id) = (server_admin(), region.create(1).await);
    soon(region, "the launch", healthy).await;
    for (power, phase) in [
        (Power::Stopped, Phase::Stopped),
        (Power::Running, Phase::Running),
    ] {
        region.servers.set_power(&admin, id, power).await.unwrap();
        soon(region, "the change", |view| view.phase == phase).await;
    }
    region.servers.delete(&admin, id).await.unwrap();
    let gone = timeout(BOUND, region.until_gone(id)).await;
    assert!(gone.is_ok(), "the deletion takes longer than {BOUND:?}");
}

/// A cloud whose reads lag and whose calls fail now and then. Calls take longer than a second, so that clocks also jump during a call.
fn imperfect_cloud() -> MemoryCloud {
    let cloud = MemoryCloud::builder()
        .read_lag(Duration::from_secs(3))
        .latency(Duration::from_millis(1500))
        .build();
    let capacity = Fault::Refused(RefusalReason::Capacity);
    cloud.faults().add(Rule::nth(WireCall::Launch, 1, capacity));
    let lost = Fault::Lost(When::After);
    cloud.faults().add(Rule::nth(WireCall::Launch, 2, lost));
    let internal = Fault::ServerError(When::Before);
    cloud
        .faults()
        .add(Rule::nth(WireCall::Stop, 1, internal.clone()));
    cloud
        .faults()
        .add(Rule::nth(WireCall::Terminate, 1, internal));
    cloud
}

async fn length_of_a_life() -> u64 {
    let cloud = imperfect_cloud();
    let (region, _) = region(&cloud);
    let start = Instant::now();
    region.during(life(&region)).await;
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn jumps_at_every_second_of_a_life_delay_nothing_for_long() {
    let seconds = length_of_a_life().await;
    assert!((20..600).contains(&seconds), "{seconds}");
    for jump in [-DAY, -HOUR, -30, 30, HOUR, DAY] {
        for at in 0..=seconds {
            let cloud = imperfect_cloud();
            let (region, clock) = region(&cloud);
            let jumps = async {
                tokio::time::sleep(Duration::from_secs(at)).await;
                clock.offset.fetch_add(jump, Ordering::SeqCst);
                std::future::pending::<()>().await;
            };
            region
                .during(async {
                    tokio::select! {
                        () = life(&region) => {}
                        () = jumps => {}
                    }
                })
                .await;
            let left = cloud.oracle().leftovers();
            assert!(left.is_empty(), "{jump} s after {at} s: {left:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn action_from_the_future_hides_no_change_by_others() {
    let cloud = MemoryCloud::new();
    let (region, clock) = region(&cloud);
    let (admin, id) = (server_admin(), region.create(1).await);
    region
        .during(async {
            soon(&region, "the launch", healthy).await;
            clock.offset.fetch_add(DAY, Ordering::SeqCst);
            // The machine is observed in the same state before and after it, so that no observation is recorded.
            let requested = region.servers.request_reboot(&admin, id, Reboot::Soft);
            requested.await.unwrap();
            let rebooted = |view: &ServerView| {
                view.server
                    .machine
                    .as_ref()
                    .is_some_and(|machine| machine.reboots == 1)
            };
            soon(&region, "the reboot", rebooted).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            clock.offset.store(0, Ordering::SeqCst);
            let machine = region.read(id).await.server.machine.unwrap().id;
            let tags = || cloud.oracle().instance(&machine).unwrap().info.tags;
            let before = tags();
            let mut change = TagChange::new();
            change.remove = before.iter().map(|(key, _)| key.to_owned()).collect();
            let others = cloud.external_actor();
            others.update_tags(&machine, &change).unwrap();
            tokio::time::sleep(BOUND).await;
            assert_eq!(tags(), before, "the tags are restored");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn scan_from_the_future_hides_no_later_one() {
    let cloud = MemoryCloud::new();
    let (region, clock) = region(&cloud);
    let id = region.create(1).await;
    region
        .during(async {
            soon(&region, "the launch", healthy).await;
            clock.offset.fetch_add(DAY, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(10)).await;
            soon(&region, "the first jump", healthy).await;
            clock.offset.fetch_add(-DAY, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(10)).await;
            let view = region.read(id).await;
            assert_eq!(view.health, Health::Healthy, "{view:#?}");
            assert!(view.observed_at.unwrap() <= clock.now());
            // A change from outside is seen by the next scan.
            let machine = view.server.machine.unwrap().id;
            cloud.external_actor().stop(&machine).unwrap();
            soon(&region, "the observation", |view| {
                view.phase != Phase::Running
            })
            .await;
            soon(&region, "the repair", healthy).await;
        })
        .await;
}
