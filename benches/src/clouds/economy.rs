//! How many calls reach a cloud when a fleet comes and goes, with fleetwright and with the SDK used plainly.
//!
//! Transitions take [`TRANSITION`] of real time, and all options and rates have their defaults. The plain way polls every two
//! seconds. Only calls are counted; the times are those of the transitions.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use fleetwright::{
    CloudInstanceState, InstanceFilter, InstanceId, InstanceProvisioner,
    InstanceProvisionerExt as _,
    layer::Stack,
    wait::{self, WaitPolicy},
};
use futures_util::future::join_all;

use super::{
    Calls, TRANSITION, columns,
    sdk::{Sdk, Seen, TAG, Token},
    since,
    world::{Vendor, World},
};
use crate::measure::{Effort, Row};

/// How often the plain way polls, as often as the providers of EC2 and Compute Engine.
const POLL: Duration = Duration::from_secs(2);
/// How long a wait may take. The rates of the default stack decide how long it does.
const PATIENCE: Duration = Duration::from_secs(600);

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    Batch,
    Tasks,
    Describes,
    Poll,
}

impl Story {
    const ALL: [Self; 4] = [Self::Batch, Self::Tasks, Self::Describes, Self::Poll];

    fn name(self, fleet: u32, polled: u32) -> String {
        match self {
            Self::Batch => format!("0 to {fleet} to 0 in one batch, with both waits"),
            Self::Tasks => format!("{fleet} tasks that launch, wait, terminate and wait"),
            Self::Describes => format!("{fleet} describes at once"),
            Self::Poll => format!("one poll of {polled} instances"),
        }
    }
}

/// Counts the calls of every story on every cloud.
pub fn run(effort: Effort) -> Vec<Row> {
    let quick = effort.fleet < 50_000;
    let (fleet, polled) = if quick { (50, 1_000) } else { (500, 10_000) };
    let runtime = super::runtime();
    let mut rows = Vec::new();
    for vendor in Vendor::ALL {
        // Each has its own emulator, so they can wait at the same time.
        let stories = Story::ALL.into_iter().map(|story| async move {
            let (ours, plain) = tokio::join!(
                ours(vendor, story, fleet, polled),
                plain(vendor, story, fleet, polled)
            );
            (story, ours, plain)
        });
        for (story, ours, plain) in runtime.block_on(join_all(stories)) {
            for (variant, calls) in [("SDK, plainly", plain), ("Stack::default()", ours)] {
                rows.push(Row {
                    group: "economy",
                    operation: format!("{}: {}", vendor.name(), story.name(fleet, polled)),
                    variant: variant.to_owned(),
                    details: columns(&calls),
                    ..Row::default()
                });
            }
        }
    }
    rows
}

async fn ours(vendor: Vendor, story: Story, fleet: u32, polled: u32) -> Calls {
    let world = World::start(vendor, TRANSITION).await;
    let stack = Stack::default().wrap(Arc::clone(&world.bare));
    match story {
        Story::Batch => {
            let count = NonZeroU32::new(fleet).expect("not zero");
            let config = world.config(Some("fleet"));
            let launched = stack.launch_instances(&config, count).await;
            let launched = launched.expect("a launch").into_iter();
            let ids: Vec<_> = launched.map(|info| info.id).collect();
            let policy = WaitPolicy::within(PATIENCE);
            let reached = CloudInstanceState::Running;
            let waited = wait::for_state(&*stack, &ids, reached, &policy).await;
            waited.expect("running");
            for result in stack.terminate_instances(&ids).await {
                result.expect("a termination");
            }
            let reached = CloudInstanceState::Terminated;
            let waited = wait::for_state(&*stack, &ids, reached, &policy).await;
            waited.expect("terminated");
        }
        Story::Tasks => {
            let tasks = (0..fleet).map(|number| {
                let config = world.config(Some(&format!("task-{number}")));
                let stack = &stack;
                async move {
                    let policy = WaitPolicy::within(PATIENCE);
                    let launched = stack.launch_and_wait(&config, &policy).await;
                    let id = launched.expect("a launch").id;
                    let gone = stack.terminate_and_wait(&id, &policy).await;
                    gone.expect("a termination");
                }
            });
            join_all(tasks).await;
        }
        Story::Describes => {
            let ids = listed(&world, fleet).await;
            let before = world.emulator.calls();
            let describes = ids.iter().map(|id| stack.describe_instance(id));
            for result in join_all(describes).await {
                result.expect("a read");
            }
            return since(&before, &world.emulator.calls());
        }
        Story::Poll => {
            let ids = listed(&world, polled).await;
            let before = world.emulator.calls();
            for result in stack.describe_instances(&ids).await {
                result.expect("a read");
            }
            return since(&before, &world.emulator.calls());
        }
    }
    world.emulator.calls()
}

/// Launches instances past the API, and returns their ids.
async fn listed(world: &World, count: u32) -> Vec<InstanceId> {
    world.emulator.populate(count);
    let filter = InstanceFilter::tagged(TAG.0, TAG.1).expect("a valid tag");
    let all = world.bare.list_instances(&filter).await.expect("a list");
    all.into_iter().map(|info| info.id).collect()
}

async fn plain(vendor: Vendor, story: Story, fleet: u32, polled: u32) -> Calls {
    let world = World::start(vendor, TRANSITION).await;
    let sdk = &*world.sdk;
    match story {
        Story::Batch => {
            let ids = sdk.launch("fleet", Token::Sent, fleet).await;
            let all = ids.len();
            until(|| async { count(&sdk.poll(&ids).await, Seen::Running) == all }).await;
            sdk.terminate(&ids).await;
            until(|| async {
                let states = sdk.poll(&ids).await;
                states.len() == count(&states, Seen::Gone)
            })
            .await;
        }
        Story::Tasks => {
            let tasks = (0..fleet).map(|number| one(sdk, format!("task-{number}")));
            join_all(tasks).await;
        }
        Story::Describes | Story::Poll => {
            let size = if story == Story::Poll { polled } else { fleet };
            let names = world.emulator.populate(size);
            let names = names.iter().filter_map(|id| id.rsplit('/').next());
            join_all(names.map(|name| sdk.describe(name))).await;
        }
    }
    world.emulator.calls()
}

/// The life of one instance.
async fn one(sdk: &dyn Sdk, name: String) {
    let id = sdk.launch(&name, Token::Sent, 1).await.remove(0);
    until(|| async { sdk.describe(&id).await == Seen::Running }).await;
    sdk.terminate(std::slice::from_ref(&id)).await;
    until(|| async { sdk.describe(&id).await == Seen::Gone }).await;
}

fn count(states: &[Seen], wanted: Seen) -> usize {
    states.iter().filter(|seen| **seen == wanted).count()
}

/// Polls until it is so.
async fn until<F: Future<Output = bool>>(mut reached: impl FnMut() -> F) {
    while !reached().await {
        tokio::time::sleep(POLL).await;
    }
}
