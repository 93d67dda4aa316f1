//! The memory cloud: whether the cost of a call grows with the fleet.

use std::time::Duration;

use fleetwright::{InstanceConfig, InstanceFilter, InstanceId, InstanceProvisioner};
use fleetwright_memory::{MemoryCloud, Timing};
use tokio::runtime::Runtime;

use crate::{
    layers::runtime,
    measure::{Effort, Row, Variant, interleave},
};

/// How many instances have the tag that the list selects, whatever the size of the fleet.
const SELECTED: usize = 50;

/// An operation that is measured.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Describe,
    ListByTag,
    StopAndStart,
    DescribeBatch,
}

impl Operation {
    const ALL: [Self; 4] = [
        Self::Describe,
        Self::ListByTag,
        Self::StopAndStart,
        Self::DescribeBatch,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Describe => "describe one",
            Self::ListByTag => "list 50 by tag",
            Self::StopAndStart => "stop and start",
            Self::DescribeBatch => "describe 50",
        }
    }
}

/// A fleet in a memory cloud whose transitions take no time.
struct Fleet {
    cloud: MemoryCloud,
    ids: Vec<InstanceId>,
    next: usize,
}

impl Fleet {
    /// Launches `size` instances, [`SELECTED`] of them with a tag of their own.
    async fn launch(size: u32) -> Self {
        let cloud = MemoryCloud::builder()
            .timing(Timing::all(Duration::ZERO))
            .build();
        let provisioner = cloud.provisioner();
        let mut ids = Vec::new();
        while ids.len() < size as usize {
            let role = if ids.is_empty() { "selected" } else { "other" };
            let count = if ids.is_empty() { SELECTED } else { 1000 };
            let count = count.min(size as usize - ids.len());
            let config = InstanceConfig::builder("image-1", "small")
                .tag("role", role)
                .tag("fleet", "bench")
                .build()
                .expect("a valid config");
            let count = u32::try_from(count)
                .ok()
                .and_then(std::num::NonZeroU32::new);
            let launched = provisioner
                .launch_instances(&config, count.expect("not zero"))
                .await
                .expect("a launch");
            ids.extend(launched.into_iter().map(|info| info.id));
        }
        Self {
            cloud,
            ids,
            next: 0,
        }
    }

    async fn run(&mut self, operation: Operation, count: u32) {
        let provisioner = self.cloud.provisioner();
        let filter = InstanceFilter::default().with_tag("role", "selected");
        let filter = filter.expect("a valid tag");
        for _ in 0..count {
            // Another one at each call, so that no cache of the processor helps.
            self.next = (self.next + 7919) % (self.ids.len() - SELECTED);
            let ids = &self.ids[self.next..self.next + SELECTED];
            match operation {
                Operation::Describe => {
                    let status = provisioner.describe_instance(&ids[0]).await;
                    assert!(status.is_ok());
                }
                Operation::ListByTag => {
                    let found = provisioner.list_instances(&filter).await;
                    assert_eq!(found.map(|found| found.len()).unwrap_or_default(), SELECTED);
                }
                Operation::StopAndStart => {
                    provisioner.stop_instance(&ids[0]).await.expect("a stop");
                    provisioner.start_instance(&ids[0]).await.expect("a start");
                }
                Operation::DescribeBatch => {
                    let statuses = provisioner.describe_instances(ids).await;
                    assert!(statuses.iter().all(Result::is_ok));
                }
            }
        }
    }
}

/// Measures every operation with every size of the fleet.
pub fn run(effort: Effort) -> Vec<Row> {
    let runtime: Runtime = runtime();
    let sizes: Vec<u32> = [1_000, 10_000, 100_000]
        .into_iter()
        .filter(|size| *size <= effort.fleet)
        .collect();
    let mut rows = Vec::new();
    for operation in Operation::ALL {
        let mut variants: Vec<Variant<'_>> = sizes
            .iter()
            .map(|size| -> Variant<'_> {
                let mut fleet = runtime.block_on(Fleet::launch(*size));
                let runtime = &runtime;
                let run = move |count| runtime.block_on(fleet.run(operation, count));
                (format!("{size} instances"), Box::new(run))
            })
            .collect();
        let times = interleave(effort, &mut variants);
        for ((variant, _), (median_ns, spread_ns)) in variants.iter().zip(times) {
            rows.push(Row {
                group: "memory cloud",
                operation: operation.name().to_owned(),
                variant: variant.clone(),
                median_ns,
                spread_ns,
                allocations: None,
                ..Row::default()
            });
        }
    }
    rows
}
