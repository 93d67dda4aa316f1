//! What only the inside of the engine can show: that nothing is kept of what is gone.

use std::num::NonZeroU32;

use fleetwright::{InstanceConfig, InstanceType, Market, Tags, Zone};
use fleetwright_chaos::ManualClock;

use super::*;
use crate::{Capacity, MemoryCloudBuilder};

const HOUR: Duration = Duration::from_secs(3600);

/// An empty world and its clock; reads may lag by `window`.
fn world(window: Duration) -> (World, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let mut knobs = MemoryCloudBuilder::new().read_lag(window).knobs;
    knobs.zones = vec![Zone::new("z").unwrap()];
    (World::new(knobs, clock.clone()), clock)
}

fn launch(world: &mut World, config: &InstanceConfig) -> InstanceId {
    let (count, doom) = (NonZeroU32::MIN, None);
    let order = Order {
        config,
        count,
        doom,
    };
    world.launch(&order).unwrap().views.remove(0).id
}

#[test]
fn nothing_is_kept_of_what_has_vanished() {
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
            world.catch_up();
            world.stop(&id, "stopped").unwrap();
            clock.advance(Duration::from_secs(20));
            world.catch_up();
            world.start(&id).unwrap();
            world.terminate(&id, "terminated").unwrap();
        }
        clock.advance(HOUR * 2);
        world.catch_up();
        assert!(world.records.is_empty() && world.by_id.is_empty());
        assert!(world.tokens.is_empty() && world.events.is_empty());
        assert_eq!(
            world
                .index
                .find(&[index::Life::Over], &Tags::new(), None)
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
fn a_lagging_world_keeps_no_more_versions_than_its_window_needs() {
    let (mut world, clock) = world(Duration::from_secs(10));
    let config = InstanceConfig::builder("i", "t").build().unwrap();
    let id = launch(&mut world, &config);
    for number in 0..200 {
        clock.advance(Duration::from_secs(1));
        world.catch_up();
        let change = fleetwright::TagChange::new().set("n", number.to_string());
        world.update_tags(&id, &change.unwrap()).unwrap();
        assert!(world.record(&id).unwrap().versions.len() <= 12);
        assert!(world.events.len() <= 12);
    }
    clock.advance(Duration::from_secs(10));
    world.catch_up();
    assert_eq!(world.record(&id).unwrap().versions.len(), 1);
    assert!(world.events.is_empty());
}

#[test]
fn a_clock_that_goes_back_does_not_take_the_world_with_it() {
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
    world.catch_up();
    *clock.0.lock().unwrap() = Duration::ZERO;
    world.catch_up();
    assert_eq!(world.now, HOUR);
}

#[test]
fn an_event_after_its_instance_has_vanished_does_nothing() {
    let (mut world, _) = world(Duration::ZERO);
    world.happen(Event::Settle(1, 0));
    world.happen(Event::Prune(1));
    world.happen(Event::Vanish(1));
    world.happen(Event::Forget(LaunchToken::new("t").unwrap()));
    assert!(world.records.is_empty() && world.events.is_empty());
}

#[test]
fn free_machines_are_counted_down_to_none_and_not_below() {
    let (mut world, _) = world(Duration::ZERO);
    let kind = (
        InstanceType::new("t").unwrap(),
        Zone::new("z").unwrap(),
        Market::OnDemand,
    );
    assert_eq!(world.free_machines(&kind), u64::MAX);
    world.knobs.capacity = vec![Capacity::of(2)];
    let config = InstanceConfig::builder("i", "t").build().unwrap();
    for left in [2, 1] {
        assert_eq!(world.free_machines(&kind), left);
        launch(&mut world, &config);
    }
    assert_eq!(world.free_machines(&kind), 0);
    world.knobs.capacity = vec![Capacity::of(1)];
    assert_eq!(world.free_machines(&kind), 0);
}

#[test]
fn what_is_due_at_the_same_time_happens_in_the_order_it_was_made() {
    let (mut world, _) = world(Duration::ZERO);
    let made = [Event::Vanish(2), Event::Settle(1, 0), Event::Vanish(1)];
    for event in made.clone() {
        world.after(HOUR, event);
    }
    world.after(Duration::ZERO, Event::Prune(9));
    let popped = std::iter::from_fn(|| world.events.pop());
    let order: Vec<_> = popped.map(|Reverse((_, _, event))| event).collect();
    assert_eq!(order[0], Event::Prune(9));
    assert_eq!(order[1..], made);
}
