//! The façade: what creating an instance costs, and how long it takes until the tenant sees it running.
//!
//! Everything runs in this process: the service, the controllers, the store and a memory cloud whose machines boot at once. SQLite is
//! compared with raw transactions that write the same rows to tables of the same form.

mod boot;
mod creates;
mod fleet;
mod raw;
mod world;

use tokio::runtime::Runtime;

use crate::measure::{Effort, Row, Variant, interleave};

/// Measures everything of this group.
pub fn run(effort: Effort) -> Vec<Row> {
    let runtime = runtime();
    let mut rows = creates::run(effort, &runtime);
    rows.extend(fleet::run(effort, &runtime));
    rows.extend(boot::run(effort, &runtime));
    rows
}

/// A runtime with two workers, because SQLite's work is done on other threads.
fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.worker_threads(2).enable_time().build();
    built.expect("a runtime")
}

/// Measures the variants of one operation in turn.
fn measure(effort: Effort, operation: &str, mut variants: Vec<Variant<'_>>) -> Vec<Row> {
    let times = interleave(effort, &mut variants);
    let named = variants.into_iter().zip(times);
    let row = |((variant, _), (median_ns, spread_ns)): (Variant<'_>, _)| {
        row(operation, variant, median_ns, spread_ns)
    };
    named.map(row).collect()
}

fn row(operation: &str, variant: String, median_ns: f64, spread_ns: (f64, f64)) -> Row {
    Row {
        group: "facade",
        operation: operation.to_owned(),
        variant,
        median_ns,
        spread_ns,
        allocations: None,
        ..Row::default()
    }
}
