//! From the request until the tenant sees the instance running: time, commits and CPU, with every loop and the default intervals.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use fleetwright_store::{Interest, Revision, Store};
use tokio::runtime::Runtime;

use super::{
    row,
    world::{Kept, World},
};
use crate::measure::{Amount, Effort, Row};

/// How many instances are created to count commits and CPU for each, and how many at once.
const MANY: (usize, usize) = (400, 16);

pub(super) fn run(effort: Effort, runtime: &Runtime) -> Vec<Row> {
    let worlds = Kept::ALL.map(|kept| (kept, runtime.block_on(World::new(kept, 1))));
    let running =
        runtime.block_on(async { worlds.each_ref().map(|(_, world)| world.facade.start()) });
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..effort.rounds {
        for (at, (_, world)) in worlds.iter().enumerate() {
            let began = Instant::now();
            runtime.block_on(async {
                let id = world.create().await;
                world.until_running(id).await;
            });
            times[at].push(began.elapsed().as_secs_f64() * 1e9);
        }
    }
    runtime.block_on(async {
        for one in running {
            one.shutdown().await;
        }
    });
    let mut rows: Vec<Row> = Vec::new();
    for ((kept, _), mut times) in worlds.iter().zip(times) {
        // The first round is not counted.
        times.remove(0);
        times.sort_by(f64::total_cmp);
        let (median, spread) = (times[times.len() / 2], (times[0], times[times.len() - 1]));
        rows.push(row(
            "create to running",
            kept.name().to_owned(),
            median,
            spread,
        ));
    }
    let many = Kept::ALL.map(|kept| (kept, many(kept, runtime)));
    rows.extend(many.iter().map(|(_, (row, _))| row.clone()));
    let written = many.map(|(kept, (_, written))| (kept, written));
    rows.extend(by_content(&written));
    rows
}

/// Commits for each instance, by the kinds of the records that they write.
type Written = BTreeMap<String, f64>;

/// Returns a row for each kind of commit.
fn by_content(written: &[(Kept, Written)]) -> Vec<Row> {
    let names: BTreeSet<&String> = written.iter().flat_map(|(_, each)| each.keys()).collect();
    let rows = names.into_iter().map(|name| Row {
        group: "facade",
        operation: "commits of an instance, create to running, by the records that they write"
            .to_owned(),
        variant: name.clone(),
        details: written
            .iter()
            .map(|(kept, each)| {
                let count = each.get(name).copied().unwrap_or_default();
                (kept.name(), Amount::Count(count))
            })
            .collect(),
        ..Row::default()
    });
    rows.collect()
}

/// Reads the commits between two revisions.
async fn read_commits(store: &dyn Store, after: Revision, through: Revision) -> Written {
    let mut written = Written::new();
    let watch = store.watch(after, Interest::all()).await;
    let mut watch = watch.expect("the changes are kept");
    while watch.position() < through {
        let commit = watch.next().await.expect("a commit");
        let changes = commit.changes.iter();
        let kinds: BTreeSet<_> = changes.map(|change| change.id().kind.as_str()).collect();
        let name = Vec::from_iter(kinds).join(", ");
        *written.entry(name).or_default() += 1.0 / MANY.0 as f64;
    }
    written
}

/// Creates many instances at once. The time of the row is the CPU of each.
fn many(kept: Kept, runtime: &Runtime) -> (Row, Written) {
    let (count, at_once) = MANY;
    let (commits, written, cpu, took) = runtime.block_on(async {
        let world = World::new(kept, 1).await;
        let running = world.facade.start();
        let first = world.create().await;
        world.until_running(first).await;
        let head = async || world.facade.store.head().await.expect("a revision").0;
        let (before, cpu, began) = (head().await, cpu_ns(), Instant::now());
        let ids = world.create_many(count, at_once).await;
        for id in ids {
            world.until_running(id).await;
        }
        let cpu = cpu_ns() - cpu;
        let (after, took) = (head().await, began.elapsed());
        running.shutdown().await;
        let store = &*world.facade.store;
        let written = read_commits(store, Revision(before), Revision(after)).await;
        (after - before, written, cpu, took)
    });
    let each = cpu / count as f64;
    let variant = format!(
        "{}: {:.2} commits, all {count} running after {:.2} s",
        kept.name(),
        commits as f64 / count as f64,
        took.as_secs_f64()
    );
    let operation = "CPU of an instance, create to running";
    (row(operation, variant, each, (each, each)), written)
}

/// The CPU time of this process in nanoseconds, by the system's count of hundredths.
fn cpu_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses, the times in user and system mode are the 12th and 13th field.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let fields = fields.split_whitespace().skip(11).take(2);
    fields
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        * 1e7
}
