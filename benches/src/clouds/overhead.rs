//! What a call through a provider costs beside the same call of the vendor's SDK, on the same emulator.
//!
//! Every round makes a small fleet live through all operations, once for each variant: the SDK, the provider bare, the
//! provider under the default stack, and the Python clients if they are installed. Transitions take no time. The processor time is that of
//! the client without the emulator.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Instant};

use fleetwright::{InstanceFilter, InstanceId, InstanceProvisioner};
use tokio::runtime::Runtime;

use super::{
    Calls,
    sdk::{Sdk, TAG, Token},
    since,
    world::{Vendor, World},
};
use crate::{
    layers::stack,
    measure::{Amount, Effort, Row, allocations, nanoseconds, summarize, thread_cpu},
    python::Client,
};

/// How many instances a round launches with a token, and how often it makes each call.
const CALLS: u32 = 10;
/// How often the time of one round of other groups the rounds of one cloud may take. The fewest rounds are two.
const LIMIT: u32 = 75;

/// The operations, in the order of a round.
pub const OPERATIONS: [&str; 7] = [
    "launch without a token",
    "launch with a token",
    "describe",
    "list 20",
    "stop",
    "start",
    "terminate",
];

/// A way to make a call.
#[derive(Clone)]
enum Way<'a> {
    Sdk(&'a dyn Sdk),
    Ours(Arc<dyn InstanceProvisioner>),
    Python(Rc<RefCell<Client>>),
}

/// What one operation took in one round.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    nanoseconds: f64,
    cpu: f64,
    wire_calls: f64,
    /// Not known of Python.
    allocations: Option<u64>,
}

/// Whether a round counts allocations. Counting costs time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allocations {
    Counted,
    Ignored,
}

/// One round of one variant.
struct Round<'a> {
    runtime: &'a Runtime,
    world: &'a World,
    way: Way<'a>,
    name: String,
    allocations: Allocations,
}

impl Round<'_> {
    /// Runs all operations.
    fn run(&self) -> [Option<Sample>; 7] {
        if let Way::Python(client) = &self.way {
            return self.run_python(&mut client.borrow_mut());
        }
        let mut ids = Vec::new();
        let world = self.world;
        let filter = InstanceFilter::tagged(TAG.0, TAG.1).expect("a valid tag");
        let configs = |with: bool| {
            let token = |number| with.then(|| format!("{}-{number}", self.name));
            (0..CALLS)
                .map(|number| world.config(token(number).as_deref()))
                .collect::<Vec<_>>()
        };
        let (without, with) = (configs(false), configs(true));
        let launch = |configs: Vec<fleetwright::InstanceConfig>, token: Token, kind: &str| {
            let mut launched = Vec::new();
            let sample = self.sample(async {
                for (number, config) in configs.iter().enumerate() {
                    launched.push(match &self.way {
                        Way::Sdk(sdk) => {
                            let name = format!("{}-{kind}{number}", self.name);
                            sdk.launch(&name, token, 1).await.remove(0)
                        }
                        Way::Ours(ours) => {
                            let info = ours.launch_instance(config).await;
                            info.expect("a launch").id.to_string()
                        }
                        Way::Python(_) => unreachable!("it has its own rounds"),
                    });
                }
            });
            (sample, launched)
        };
        let (first, _) = launch(without, Token::Absent, "p");
        let (second, launched) = launch(with, Token::Sent, "t");
        ids.extend(launched);
        let each = |operation: &str| {
            let typed: Vec<_> = ids
                .iter()
                .map(|id| InstanceId::new(id).expect("an id"))
                .collect();
            self.sample(async {
                for (id, typed) in ids.iter().zip(&typed) {
                    self.call(operation, id, typed, &filter).await;
                }
            })
        };
        [
            first,
            second,
            each("describe"),
            each("list"),
            each("stop"),
            each("start"),
            each("terminate"),
        ]
        .map(Some)
    }

    /// Runs all operations but the launch without a token, which differs by the token only.
    fn run_python(&self, client: &mut Client) -> [Option<Sample>; 7] {
        client.call("reset", "", 0);
        // The list of the other variants has as many.
        client.call("launch", &format!("{}-p", self.name), CALLS);
        client.call("reset", "", 0);
        let mut each = |operation: &str| {
            let before = self.world.emulator.calls();
            let name = format!("{}-t", self.name);
            let report = client.call(operation, &name, CALLS);
            if operation == "list" {
                assert_eq!(report.items, 2 * CALLS as usize, "{}", self.name);
            }
            let calls = f64::from(CALLS);
            Some(Sample {
                nanoseconds: report.ns / calls,
                cpu: report.cpu_ns / calls,
                wire_calls: self.sent(&before),
                allocations: None,
            })
        };
        [
            None,
            each("launch"),
            each("describe"),
            each("list"),
            each("stop"),
            each("start"),
            each("terminate"),
        ]
    }

    /// Returns how many wire calls each of [`CALLS`] calls has made since.
    fn sent(&self, before: &Calls) -> f64 {
        let sent: u64 = since(before, &self.world.emulator.calls()).values().sum();
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let sent = sent as f64;
        sent / f64::from(CALLS)
    }

    async fn call(&self, name: &str, id: &str, typed: &InstanceId, filter: &InstanceFilter) {
        match (&self.way, name) {
            (Way::Python(_), _) => unreachable!("it has its own rounds"),
            (Way::Sdk(sdk), "describe") => drop(sdk.describe(id).await),
            (Way::Sdk(sdk), "list") => assert_eq!(sdk.list().await.0, 2 * CALLS as usize),
            (Way::Sdk(sdk), "stop") => sdk.stop(id).await,
            (Way::Sdk(sdk), "start") => sdk.start(id).await,
            (Way::Sdk(sdk), _) => sdk.terminate(&[id.to_owned()]).await,
            (Way::Ours(ours), "describe") => {
                ours.describe_instance(typed).await.expect("a read");
            }
            (Way::Ours(ours), "list") => {
                let found = ours.list_instances(filter).await.expect("a list");
                assert_eq!(found.len(), 2 * CALLS as usize);
            }
            (Way::Ours(ours), "stop") => ours.stop_instance(typed).await.expect("a stop"),
            (Way::Ours(ours), "start") => {
                ours.start_instance(typed).await.expect("a start");
            }
            (Way::Ours(ours), _) => {
                let terminated = ours.terminate_instance(typed).await;
                terminated.expect("a termination");
            }
        }
    }

    /// Measures [`CALLS`] calls of one operation.
    fn sample(&self, calls: impl Future<Output = ()>) -> Sample {
        let before = self.world.emulator.calls();
        let mut sample = Sample::default();
        let (began, cpu) = (Instant::now(), thread_cpu());
        if self.allocations == Allocations::Counted {
            let counted = allocations(|| self.runtime.block_on(calls));
            sample.allocations = Some(counted / u64::from(CALLS));
        } else {
            self.runtime.block_on(calls);
        }
        sample.cpu = (thread_cpu() - cpu) / f64::from(CALLS);
        if began.elapsed() > std::time::Duration::from_secs(1) {
            let (cloud, name) = (self.world.vendor.name(), &self.name);
            eprintln!(
                "warning: calls of {cloud} wait: {:?} in {name}",
                began.elapsed()
            );
        }
        sample.nanoseconds = nanoseconds(began.elapsed()) / f64::from(CALLS);
        sample.wire_calls = self.sent(&before);
        sample
    }
}

/// Measures every cloud.
pub fn run(effort: Effort) -> Vec<Row> {
    Vendor::ALL
        .into_iter()
        .flat_map(|vendor| cloud(effort, vendor))
        .collect()
}

/// Measures one cloud.
fn cloud(effort: Effort, vendor: Vendor) -> Vec<Row> {
    let runtime = super::runtime();
    let world = runtime.block_on(World::start(vendor, std::time::Duration::ZERO));
    let layered = stack().wrap(Arc::clone(&world.bare));
    let mut ways = vec![
        ("SDK", Way::Sdk(&*world.sdk)),
        ("provider", Way::Ours(Arc::clone(&world.bare))),
        ("Stack::default()", Way::Ours(layered)),
    ];
    for (name, client) in world.python_clients() {
        ways.push((name, Way::Python(Rc::new(RefCell::new(client)))));
    }
    // Rounds are short, so there are more of them than in other groups. The first is not counted.
    let rounds = effort.rounds * 4;
    let mut samples: Vec<Vec<[Option<Sample>; 7]>> = vec![Vec::new(); ways.len()];
    let mut counted = Vec::new();
    let began = Instant::now();
    for number in 0..=rounds {
        if number > 2 && number < rounds && began.elapsed() > effort.time * LIMIT {
            continue;
        }
        for (at, (_, way)) in ways.iter().enumerate() {
            world.emulator.reset((number * ways.len() + at) as u64);
            let last = number == rounds;
            let round = Round {
                runtime: &runtime,
                world: &world,
                way: way.clone(),
                name: format!("b{number}w{at}"),
                allocations: if last {
                    Allocations::Counted
                } else {
                    Allocations::Ignored
                },
            };
            let result = round.run();
            if last {
                counted.push(result);
            } else if number > 0 {
                samples[at].push(result);
            }
        }
    }
    let mut rows = Vec::new();
    for (operation, name) in OPERATIONS.iter().enumerate() {
        for (at, (variant, _)) in ways.iter().enumerate() {
            let rounds = || samples[at].iter().filter_map(|round| round[operation]);
            let Some(last) = counted[at][operation] else {
                continue;
            };
            let (median_ns, spread_ns) = summarize(rounds().map(|one| one.nanoseconds).collect());
            let (cpu, _) = summarize(rounds().map(|one| one.cpu).collect());
            rows.push(Row {
                group: "overhead",
                operation: format!("{}: {name}", vendor.name()),
                variant: (*variant).to_owned(),
                median_ns,
                spread_ns,
                allocations: last.allocations,
                details: vec![
                    ("CPU", Amount::Nanoseconds(cpu)),
                    ("wire calls", Amount::Count(last.wire_calls)),
                ],
            });
        }
    }
    rows
}
