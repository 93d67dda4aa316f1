//! How many calls reach a cloud when a fleet comes and goes, with fleetwright and with the SDK used plainly.
//!
//! Transitions take [`TRANSITION`] of real time, and all options and rates have their defaults. The plain way polls every two
//! seconds and makes at most 64 calls at once. Calls are what is compared; the times are those of the transitions and
//! of the rates.
//!
//! On EC2 there are also the numbers that the batches of Karpenter come to. They are computed.

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use fleetwright::{
    CloudInstanceState, InstanceFilter, InstanceId, InstanceProvisioner,
    InstanceProvisionerExt as _,
    layer::Stack,
    wait::{self, WaitCause, WaitPolicy},
};
use futures_util::future::join_all;
use tokio::sync::Semaphore;

use super::{
    Calls, TRANSITION, columns,
    sdk::{Sdk, Seen, TAG, Token},
    since,
    world::{Vendor, World},
};
use crate::measure::{Amount, Effort, Row, nanoseconds};

/// How often the plain way polls, as often as the providers of EC2 and Compute Engine.
const POLL: Duration = Duration::from_secs(2);
/// How long a wait may take. The rates of the default stack decide how long it does.
const PATIENCE: Duration = Duration::from_secs(600);

/// How many calls the plain way makes at once. Without a limit, ten thousand describes open ten thousand connections, for which neither
/// a program nor the emulator beside it in the process has file descriptors.
const CONNECTIONS: usize = 64;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    Batch,
    Tasks,
    Describes,
    Waits,
    Poll,
}

/// How many instances there are.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// In a fleet that comes and goes, and how many describes there are at once.
    fleet: u32,
    /// In a fleet that is polled, and how many tasks wait.
    polled: u32,
}

impl Story {
    const ALL: [Self; 5] = [
        Self::Batch,
        Self::Tasks,
        Self::Describes,
        Self::Waits,
        Self::Poll,
    ];

    fn name(self, sizes: Sizes) -> String {
        let Sizes { fleet, polled } = sizes;
        match self {
            Self::Batch => format!("0 to {fleet} to 0 in one batch, with both waits"),
            Self::Tasks => format!("{fleet} tasks that launch, wait, terminate and wait"),
            Self::Describes => format!("{fleet} describes at once"),
            Self::Waits => format!("{polled} tasks that wait, two polls each"),
            Self::Poll => format!("one poll of {polled} instances"),
        }
    }
}

/// Counts the calls of every story on every cloud.
pub fn run(effort: Effort) -> Vec<Row> {
    let quick = effort.fleet < 50_000;
    let (fleet, polled) = if quick { (50, 1_000) } else { (500, 10_000) };
    let sizes = Sizes { fleet, polled };
    let runtime = super::runtime();
    // Each story has its own emulators, so they can wait at the same time. The clouds of a full run follow each other, because its
    // hundred thousand calls would delay each other's polls.
    let at_once = if quick { Vendor::ALL.len() } else { 1 };
    let clouds = Vendor::ALL.chunks(at_once).flat_map(|some| {
        // Before any story begins: instances are created without a pause, and a connection that is opened meanwhile would time out.
        let prepared = runtime.block_on(prepare_all(some, sizes));
        let stories = prepared.iter().map(|(ours, plain)| async move {
            (
                tokio::join!(run_ours(ours, sizes), run_plainly(plain, sizes)),
                ours,
            )
        });
        let counted = runtime.block_on(join_all(stories));
        let counted = counted.into_iter();
        counted
            .flat_map(|((ours, plain), at)| rows(at, sizes, ours, plain))
            .collect::<Vec<_>>()
    });
    clouds.collect()
}

/// A cloud of its own for one story and way, with the instances that the story needs.
struct Prepared {
    story: Story,
    world: World,
    ids: Vec<InstanceId>,
    names: Vec<String>,
}

/// Prepares the stories of some clouds: fleetwright's, and that of the plain way.
async fn prepare_all(vendors: &[Vendor], sizes: Sizes) -> Vec<(Prepared, Prepared)> {
    let mut all = Vec::new();
    for vendor in vendors {
        for story in Story::ALL {
            let ours = prepare(*vendor, story, sizes).await;
            all.push((ours, prepare(*vendor, story, sizes).await));
        }
    }
    all
}

async fn prepare(vendor: Vendor, story: Story, sizes: Sizes) -> Prepared {
    let world = World::start(vendor, TRANSITION).await;
    let count = match story {
        Story::Batch | Story::Tasks => 0,
        Story::Describes => sizes.fleet,
        Story::Waits | Story::Poll => sizes.polled,
    };
    let created = world.emulator.populate(count).into_iter();
    let names = created.filter_map(|id| id.rsplit('/').next().map(ToOwned::to_owned));
    let names: Vec<_> = names.collect();
    let filter = InstanceFilter::tagged(TAG.0, TAG.1).expect("a valid tag");
    let ids = if count == 0 {
        Vec::new()
    } else {
        let all = world.bare.list_instances(&filter).await.expect("a list");
        all.into_iter().map(|info| info.id).collect()
    };
    Prepared {
        story,
        world,
        ids,
        names,
    }
}

/// Returns the rows of a story.
fn rows(at: &Prepared, sizes: Sizes, ours: Counted, plain: Counted) -> Vec<Row> {
    let (vendor, story) = (at.world.vendor, at.story);
    let mut each = vec![("SDK, plainly", plain)];
    if vendor == Vendor::Ec2 {
        each.push(("Karpenter's batches, computed", karpenter(story, sizes)));
    }
    each.push(("Stack::default()", ours));
    let rows = each.into_iter().map(|(variant, Counted { calls, took })| {
        let mut details = columns(&calls);
        if !took.is_zero() {
            let took = Amount::Nanoseconds(nanoseconds(took));
            details.insert(1, ("finished after", took));
        }
        Row {
            group: "economy",
            operation: format!("{}: {}", vendor.name(), story.name(sizes)),
            variant: variant.to_owned(),
            details,
            ..Row::default()
        }
    });
    rows.collect()
}

/// The calls of a story, and how long it took; zero if that was not measured.
struct Counted {
    calls: Calls,
    took: Duration,
}

/// Returns the calls that Karpenter's batches need for the same, with the polls of the plain way.
///
/// Karpenter combines calls for one instance each: requests of `CreateFleet` with the same content up to 1,000, `DescribeInstances`
/// and `TerminateInstances` up to 500, after 35, 100 and 100 ms without another one and at most after a second
/// (`pkg/batcher/createfleet.go`, `describeinstances.go` and `terminateinstances.go` of aws/karpenter-provider-aws). Its `CreateFleet`
/// has no client token, so a launch whose response is lost launches again. It follows instances by their nodes and not by polls, so
/// the number of polls is an assumption.
fn karpenter(story: Story, sizes: Sizes) -> Counted {
    let polls = TRANSITION.as_secs() / POLL.as_secs() + 1;
    let batches = |count: u32, most: u32| u64::from(count.div_ceil(most));
    let describes = |count: u32, rounds: u64| ("DescribeInstances", rounds * batches(count, 500));
    let calls = match story {
        Story::Batch | Story::Tasks => vec![
            ("CreateFleet", batches(sizes.fleet, 1_000)),
            describes(sizes.fleet, 2 * polls),
            ("TerminateInstances", batches(sizes.fleet, 500)),
        ],
        Story::Describes => vec![describes(sizes.fleet, 1)],
        Story::Waits => vec![describes(sizes.polled, 2)],
        Story::Poll => vec![describes(sizes.polled, 1)],
    };
    let calls = calls
        .into_iter()
        .map(|(name, sent)| (name.to_owned(), sent));
    Counted {
        calls: calls.collect(),
        took: Duration::ZERO,
    }
}

async fn run_ours(at: &Prepared, sizes: Sizes) -> Counted {
    let Prepared { world, ids, .. } = at;
    let fleet = sizes.fleet;
    let stack = Stack::default().wrap(Arc::clone(&world.bare));
    let (before, began) = (world.emulator.calls(), Instant::now());
    match at.story {
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
            let describes = ids.iter().map(|id| stack.describe_instance(id));
            for result in join_all(describes).await {
                result.expect("a read");
            }
        }
        Story::Waits => {
            // None of them is ever stopped, so every wait makes all its polls.
            let two = NonZeroU32::new(2).expect("not zero");
            let policy = WaitPolicy::within(PATIENCE).max_polls(two);
            let goal = CloudInstanceState::Stopped;
            let waits = ids.iter().map(|id| {
                let (stack, policy) = (&*stack, &policy);
                async move {
                    let ids = std::slice::from_ref(id);
                    let waited = wait::for_state(stack, ids, goal, policy).await;
                    let ended = waited.expect_err("a running instance");
                    assert!(matches!(ended.cause, WaitCause::PollLimit), "{ended}");
                }
            });
            join_all(waits).await;
        }
        Story::Poll => {
            for result in stack.describe_instances(ids).await {
                result.expect("a read");
            }
        }
    }
    Counted {
        took: began.elapsed(),
        calls: since(&before, &world.emulator.calls()),
    }
}

async fn run_plainly(at: &Prepared, sizes: Sizes) -> Counted {
    let (world, fleet) = (&at.world, sizes.fleet);
    let (sdk, permits) = (&*world.sdk, &Semaphore::new(CONNECTIONS));
    let (before, began) = (world.emulator.calls(), Instant::now());
    match at.story {
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
            let tasks = (0..fleet).map(|number| one(sdk, permits, format!("task-{number}")));
            join_all(tasks).await;
        }
        Story::Describes | Story::Waits | Story::Poll => {
            let polls = if at.story == Story::Waits { 2 } else { 1 };
            let reads = at.names.iter().map(|name| async move {
                for poll in 0..polls {
                    if poll > 0 {
                        tokio::time::sleep(POLL).await;
                    }
                    limited(permits, sdk.describe(name)).await;
                }
            });
            join_all(reads).await;
        }
    }
    Counted {
        took: began.elapsed(),
        calls: since(&before, &world.emulator.calls()),
    }
}

/// The life of one instance.
async fn one(sdk: &dyn Sdk, permits: &Semaphore, name: String) {
    let id = limited(permits, sdk.launch(&name, Token::Sent, 1))
        .await
        .remove(0);
    until(|| async { limited(permits, sdk.describe(&id)).await == Seen::Running }).await;
    limited(permits, sdk.terminate(std::slice::from_ref(&id))).await;
    until(|| async { limited(permits, sdk.describe(&id)).await == Seen::Gone }).await;
}

/// Makes a call when fewer than [`CONNECTIONS`] others are made.
async fn limited<T>(permits: &Semaphore, call: impl Future<Output = T>) -> T {
    let _permit = permits.acquire().await.expect("an open semaphore");
    call.await
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
