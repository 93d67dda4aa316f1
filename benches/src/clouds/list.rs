//! Lists of large fleets: a provider's stream and list beside the SDK's paginator.

use std::time::{Duration, Instant};

use fleetwright::InstanceFilter;
use futures_util::StreamExt as _;

use super::{
    sdk::TAG,
    since,
    world::{Vendor, World},
};
use crate::measure::{Amount, Effort, Row, nanoseconds, summarize};

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
            let rounds = if quick { 4 } else { 8 };
            rows.extend(runtime.block_on(measure(&world, *size, rounds)));
        }
    }
    rows
}

async fn measure(world: &World, size: u32, rounds: usize) -> Vec<Row> {
    let mut times = [const { (Vec::new(), Vec::new()) }; 3];
    let mut sent = [0; 3];
    for round in 0..rounds {
        for (at, way) in Way::ALL.into_iter().enumerate() {
            let before = (round == 0).then(|| world.emulator.calls());
            let began = Instant::now();
            let (count, first) = way.read(world).await;
            let took = began.elapsed();
            assert_eq!(count, size as usize, "{}", way.name());
            match before {
                Some(before) => {
                    sent[at] = since(&before, &world.emulator.calls())
                        .values()
                        .sum::<u64>();
                }
                None => {
                    times[at].0.push(nanoseconds(took));
                    times[at].1.push(nanoseconds(first));
                }
            }
        }
    }
    let each = Way::ALL.into_iter().zip(times).zip(sent);
    let rows = each.map(|((way, (all, first)), sent)| {
        let (median_ns, spread_ns) = summarize(all);
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let sent = sent as f64;
        Row {
            group: "list",
            operation: format!("{}: list {size}", world.vendor.name()),
            variant: way.name().to_owned(),
            median_ns,
            spread_ns,
            details: vec![
                ("first item", Amount::Nanoseconds(summarize(first).0)),
                ("wire calls", Amount::Count(sent)),
            ],
            ..Row::default()
        }
    });
    rows.collect()
}
