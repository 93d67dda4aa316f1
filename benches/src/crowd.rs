//! Many tasks at once on the memory cloud, in virtual time: how many calls reach the cloud, and when the last task has ended.
//!
//! Nothing here depends on the machine: calls are counted, and the time is that of the simulated round trips and delays.
//! `tests/counts.rs` asserts the counts.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use fleetwright::{
    InstanceConfig, InstanceId, InstanceProvisioner,
    layer::{Layered, Retry, RetryPolicy, Stack},
};
use fleetwright_memory::{MemoryCloud, WireCall};
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::measure::{Amount, Row, nanoseconds};

/// The round-trip time of a call.
const LATENCY: Duration = Duration::from_millis(20);
/// How many tasks describe at once.
pub const DESCRIBES: u32 = 10_000;
/// How many tasks launch at once on the throttled cloud.
pub const LAUNCHES: u32 = 200;
/// The throttled cloud accepts this many launches at once,
const BURST: u32 = 10;
/// and then one in this time.
const PERIOD: Duration = Duration::from_millis(200);

/// What is around the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers {
    /// Nothing.
    None,
    /// Only retries.
    Retry,
    /// `Stack::default()`.
    Stack,
}

impl Layers {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Retry, Self::Stack];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "no layers",
            Self::Retry => "Retry",
            Self::Stack => "Stack::default()",
        }
    }

    fn around(self, cloud: &MemoryCloud) -> Arc<dyn InstanceProvisioner> {
        match self {
            Self::None => Arc::new(cloud.provisioner()),
            Self::Retry => {
                let retry = Retry::new(RetryPolicy::default());
                Arc::new(Layered::new(cloud.provisioner(), retry))
            }
            Self::Stack => Stack::default().wrap(cloud.provisioner()),
        }
    }
}

/// What became of a crowd of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How many calls reached the cloud.
    pub calls: u64,
    /// How many of them the cloud refused.
    pub wasted: u64,
    /// How many tasks got an error.
    pub failed: u64,
    /// When the last task had ended.
    pub took: Duration,
}

/// Lets [`DESCRIBES`] tasks describe one instance each.
pub async fn describes(layers: Layers) -> Outcome {
    let cloud = MemoryCloud::builder().latency(LATENCY).build();
    let config = InstanceConfig::builder("image-1", "small").build();
    let config = config.expect("a valid config");
    let mut ids: Vec<InstanceId> = Vec::new();
    let batch = NonZeroU32::new(1_000).expect("not zero");
    while ids.len() < DESCRIBES as usize {
        let launched = cloud.provisioner().launch_instances(&config, batch).await;
        ids.extend(launched.expect("a launch").into_iter().map(|info| info.id));
    }
    let (provisioner, began) = (layers.around(&cloud), Instant::now());
    let tasks = ids.iter().map(|id| provisioner.describe_instance(id));
    let results = join_all(tasks).await;
    Outcome {
        calls: cloud.oracle().call_count(WireCall::Describe),
        wasted: 0,
        failed: count(results.iter().filter(|result| result.is_err())),
        took: began.elapsed(),
    }
}

/// Lets [`LAUNCHES`] tasks launch one instance each on a cloud that accepts a few launches at once and then one in a period.
pub async fn throttled_launches(layers: Layers) -> Outcome {
    let burst = NonZeroU32::new(BURST).expect("not zero");
    let cloud = MemoryCloud::builder()
        .latency(LATENCY)
        .throttle(WireCall::Launch, PERIOD, burst)
        .build();
    let (provisioner, began) = (layers.around(&cloud), Instant::now());
    let tasks = (0..LAUNCHES).map(|number| {
        let config = InstanceConfig::builder("image-1", "small");
        let config = config.launch_token(format!("task-{number}")).build();
        let (provisioner, config) = (&provisioner, config.expect("a valid config"));
        async move { provisioner.launch_instance(&config).await.is_err() }
    });
    let failed = join_all(tasks).await.into_iter().filter(|failed| *failed);
    let failed = count(failed);
    let calls = cloud.oracle().call_count(WireCall::Launch);
    Outcome {
        calls,
        wasted: calls - (u64::from(LAUNCHES) - failed),
        failed,
        took: began.elapsed(),
    }
}

fn count(all: impl Iterator) -> u64 {
    all.fold(0, |sum, _| sum + 1)
}

/// Counts everything.
pub fn run() -> Vec<Row> {
    let mut rows = Vec::new();
    for layers in Layers::ALL {
        let outcome = virtual_time(describes(layers));
        rows.push(row(
            format!("{DESCRIBES} describes at once, in virtual time"),
            layers,
            outcome,
        ));
    }
    for layers in Layers::ALL {
        let outcome = virtual_time(throttled_launches(layers));
        rows.push(row(
            format!("{LAUNCHES} launches at once on a throttled cloud, in virtual time"),
            layers,
            outcome,
        ));
    }
    rows
}

/// Runs in virtual time.
fn virtual_time<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(work)
}

fn row(operation: String, layers: Layers, outcome: Outcome) -> Row {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let amount = |count: u64| Amount::Count(count as f64);
    Row {
        group: "layers",
        operation,
        variant: layers.name().to_owned(),
        details: vec![
            ("wire calls", amount(outcome.calls)),
            ("refused calls", amount(outcome.wasted)),
            ("failed tasks", amount(outcome.failed)),
            (
                "finished after",
                Amount::Nanoseconds(nanoseconds(outcome.took)),
            ),
        ],
        ..Row::default()
    }
}
