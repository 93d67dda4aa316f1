//! Tests that need the internals of the engine: that removed instances leave no state behind.

use std::num::NonZeroU32;

use fleetwright::{InstanceConfig, InstanceType, Market, Tags, Zone};
use fleetwright_chaos::ManualClock;

use super::*;
use crate::{Capacity, MemoryCloudBuilder};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns an empty account and its clock; reads may lag by `window`.
fn world(window: Duration) -> (World, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let mut knobs = MemoryCloudBuilder::new().read_lag(window).knobs;
    knobs.zones = vec![Zone::new("z").unwrap()];
    (World::new(knobs, clock.clone()), clock)
}

fn launch(world: &mut World, config: &InstanceConfig) -> InstanceId {
    let (count, boot_failure) = (NonZeroU32::MIN, None);
    let request = LaunchRequest {
        config,
        count,
        boot_failure,
    };
    world.launch(&request).unwrap().views.remove(0).id
}

#[test]
fn purged_instances_leave_no_state() {
    for window in [Duration::ZERO, Duration::from_secs(7)] {
        let (mut world, clock) = world(window);
        for number in 0..50 {
            let config = InstanceConfig::builder("i", format!("type-{number}"))
                .tag("number", number.to_string())
                .launch_token(format!("token-{number}"))
                .build()
                .unwrap();
            let id = launch(&mut world, &config);
            clock.advance(Duration::from_secs(20));
            world.run_due_events();
            world.stop(&id, "stopped").unwrap();
            clock.advance(Duration::from_secs(20));
            world.run_due_events();
            world.start(&id).unwrap();
            world.terminate(&id, "terminated").unwrap();
        }
        clock.advance(HOUR * 2);
        world.run_due_events();
        assert!(world.records.is_empty());
        assert!(world.tokens.is_empty() && world.events.is_empty());
        assert_eq!(
            world
                .index
                .find(&[index::Existence::Terminated], &Tags::new(), None)
                .count(),
            0
        );
        assert_eq!(
            format!("{:?}", world.usage),
            format!("{:?}", Usage::default())
        );
        assert_eq!(
            world.private.in_use().chain(world.public.in_use()).count(),
            0
        );
    }
}

#[test]
fn versions_are_kept_for_the_consistency_window_only() {
    let (mut world, clock) = world(Duration::from_secs(10));
    let config = InstanceConfig::builder("i", "t").build().unwrap();
    let id = launch(&mut world, &config);
    for number in 0..200 {
        clock.advance(Duration::from_secs(1));
        world.run_due_events();
        let change = fleetwright::TagChange::new().set("n", number.to_string());
        world.update_tags(&id, &change.unwrap()).unwrap();
        assert!(world.record(&id).unwrap().versions().count() <= 12);
        assert!(world.events.len() <= 12);
    }
    clock.advance(Duration::from_secs(10));
    world.run_due_events();
    assert_eq!(world.record(&id).unwrap().versions().count(), 1);
    assert!(world.events.is_empty());
}

#[test]
fn time_does_not_go_back_with_the_clock() {
    #[derive(Debug)]
    struct Broken(std::sync::Mutex<Duration>);
    impl Clock for Broken {
        fn elapsed(&self) -> Duration {
            *self.0.lock().unwrap()
        }
        fn epoch(&self) -> chrono::DateTime<chrono::Utc> {
            chrono::DateTime::UNIX_EPOCH
        }
    }
    let clock = Arc::new(Broken(std::sync::Mutex::new(HOUR)));
    let mut knobs = MemoryCloudBuilder::new().knobs;
    knobs.zones = vec![Zone::new("z").unwrap()];
    let mut world = World::new(knobs, clock.clone());
    world.run_due_events();
    *clock.0.lock().unwrap() = Duration::ZERO;
    world.run_due_events();
    assert_eq!(world.now, HOUR);
}

#[test]
fn event_of_a_purged_instance_is_ignored() {
    let (mut world, _) = world(Duration::ZERO);
    world.run_event(Event::FinishTransition(1, 0));
    world.run_event(Event::Prune(1));
    world.run_event(Event::Purge(1));
    world.run_event(Event::ExpireToken(LaunchToken::new("t").unwrap()));
    assert!(world.records.is_empty() && world.events.is_empty());
}

#[test]
fn free_machines_never_go_below_zero() {
    let (mut world, _) = world(Duration::ZERO);
    let kind = (
        InstanceType::new("t").unwrap(),
        Zone::new("z").unwrap(),
        Market::OnDemand,
    );
    assert_eq!(world.free_machines(&kind), u64::MAX);
    world.knobs.capacity = vec![Capacity::of(2)];
    let config = InstanceConfig::builder("i", "t").build().unwrap();
    for free in [2, 1] {
        assert_eq!(world.free_machines(&kind), free);
        launch(&mut world, &config);
    }
    assert_eq!(world.free_machines(&kind), 0);
    world.knobs.capacity = vec![Capacity::of(1)];
    assert_eq!(world.free_machines(&kind), 0);
}

#[test]
fn events_with_the_same_due_time_run_in_scheduling_order() {
    let (mut world, _) = world(Duration::ZERO);
    let scheduled = [
        Event::Purge(2),
        Event::FinishTransition(1, 0),
        Event::Purge(1),
    ];
    for event in scheduled.clone() {
        world.schedule(HOUR, event);
    }
    world.schedule(Duration::ZERO, Event::Prune(9));
    let popped = std::iter::from_fn(|| world.events.pop());
    let order: Vec<_> = popped.map(|Reverse((_, _, event))| event).collect();
    assert_eq!(order[0], Event::Prune(9));
    assert_eq!(order[1..], scheduled);
}
