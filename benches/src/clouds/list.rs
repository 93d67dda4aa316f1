//! Lists of large fleets: a provider's stream and list beside the SDK's paginator and the Python clients.

use std::time::{Duration, Instant};

use fleetwright::InstanceFilter;
use futures_util::StreamExt as _;
use tokio::runtime::Runtime;

use super::{
    Calls,
    sdk::TAG,
    since,
    world::{Vendor, World},
};
use crate::measure::{Amount, Effort, Row, nanoseconds, peak_bytes, summarize};

/// How many rounds a short run has.
const QUICK_ROUNDS: usize = 4;

/// How a list is read.
#[derive(Clone, Copy)]
enum Way {
    Sdk,
    Streamed,
    Collected,
}

impl Way {
    const ALL: [Self; 3] = [Self::Sdk, Self::Streamed, Self::Collected];

    const fn name(self) -> &'static str {
        match self {
            Self::Sdk => "SDK, pages",
            Self::Streamed => "stream_instances",
            Self::Collected => "list_instances",
        }
    }

    /// Reads the list once. Returns the number of instances and the time to the first one.
    async fn read(self, world: &World) -> (usize, Duration) {
        let filter = InstanceFilter::tagged(TAG.0, TAG.1).expect("a valid tag");
        let began = Instant::now();
        match self {
            Self::Sdk => world.sdk.list().await,
            Self::Streamed => {
                let (mut first, mut count) = (None, 0);
                let mut items = world.bare.stream_instances(&filter);
                while let Some(item) = items.next().await {
                    item.expect("an item");
                    first.get_or_insert_with(|| began.elapsed());
                    count += 1;
                }
                (count, first.unwrap_or_default())
            }
            Self::Collected => {
                let all = world.bare.list_instances(&filter).await.expect("a list");
                (all.len(), began.elapsed())
            }
        }
    }
}

/// Measures every cloud and size.
pub fn run(effort: Effort) -> Vec<Row> {
    let runtime = super::runtime();
    let quick = effort.fleet < 50_000;
    let sizes: &[u32] = if quick { &[10_000] } else { &[10_000, 50_000] };
    let mut rows = Vec::new();
    for vendor in Vendor::ALL {
        for size in sizes {
            let world = runtime.block_on(World::start(vendor, Duration::ZERO));
            world.emulator.populate(*size);
            let rounds = if quick { QUICK_ROUNDS } else { 8 };
            rows.extend(measure(&runtime, &world, *size, rounds));
        }
    }
    rows
}

/// What the rounds of one variant came to.
#[derive(Default)]
struct Rounds {
    times: Vec<f64>,
    firsts: Vec<f64>,
    wire_calls: u64,
    peak: Option<u64>,
}

impl Rounds {
    fn add(&mut self, took: f64, first: f64) {
        self.times.push(took);
        self.firsts.push(first);
    }

    fn row(self, world: &World, size: u32, variant: &str) -> Row {
        let (median_ns, spread_ns) = summarize(self.times);
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let wire_calls = self.wire_calls as f64;
        let first = Amount::Nanoseconds(summarize(self.firsts).0);
        let mut details = vec![("first item", first)];
        details.extend(self.peak.map(|peak| ("peak memory", Amount::Bytes(peak))));
        details.push(("wire calls", Amount::Count(wire_calls)));
        Row {
            group: "list",
            operation: format!("{}: list {size}", world.vendor.name()),
            variant: variant.to_owned(),
            median_ns,
            spread_ns,
            details,
            ..Row::default()
        }
    }
}

/// Measures one cloud and size. The first round counts calls, the last one memory, and the others take the time.
fn measure(runtime: &Runtime, world: &World, size: u32, rounds: usize) -> Vec<Row> {
    let mut ways = Way::ALL.map(|way| (way, Rounds::default()));
    let clients = world.python_clients().into_iter();
    let mut clients: Vec<_> = clients
        .map(|(name, client)| (name, client, Rounds::default()))
        .collect();
    for round in 0..=rounds {
        let (counts_calls, counts_memory) = (round == 0, round == rounds);
        for (way, result) in &mut ways {
            let before = world.emulator.calls();
            let mut read = (0, Duration::ZERO);
            let began = Instant::now();
            if counts_memory {
                result.peak = Some(peak_bytes(|| read = runtime.block_on(way.read(world))));
            } else {
                read = runtime.block_on(way.read(world));
            }
            let (took, (count, first)) = (began.elapsed(), read);
            assert_eq!(count, size as usize, "{}", way.name());
            if counts_calls {
                result.wire_calls = sent(world, &before);
            } else if !counts_memory {
                result.add(nanoseconds(took), nanoseconds(first));
            }
        }
        // They take ten times as long, so a short run lists once to count and once to measure.
        if counts_memory || rounds <= QUICK_ROUNDS && round > 1 {
            continue;
        }
        clients.retain_mut(|(name, client, result)| {
            let before = world.emulator.calls();
            let report = client.call("list", "", 1);
            if report.items != size as usize {
                // The one of apache-libcloud for EC2 returns the first page as the whole list.
                let items = report.items;
                eprintln!("not measured: {name}: its list has {items} of {size} instances");
                return false;
            }
            if counts_calls {
                result.wire_calls = sent(world, &before);
            } else {
                result.add(report.ns, report.first_ns);
            }
            true
        });
    }
    let ways = ways.into_iter();
    let mut rows: Vec<_> = ways
        .map(|(way, rounds)| rounds.row(world, size, way.name()))
        .collect();
    rows.extend(
        clients
            .into_iter()
            .map(|(name, _, rounds)| rounds.row(world, size, name)),
    );
    rows
}

/// Returns how many calls were sent since.
fn sent(world: &World, before: &Calls) -> u64 {
    since(before, &world.emulator.calls()).values().sum()
}
