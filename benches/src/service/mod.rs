//! The service under load: requests in a second, times and errors, over real sockets to a server in this process.
//!
//! The server has a SQLite file and a memory cloud with every loop, as the program has. The store alone is measured with the same numbers of tasks, in a
//! file of its own. The client is a few lines on a socket, so that it takes little of the machine, and shares the machine with the server.

mod client;
mod files;
mod load;
mod watches;

use tokio::runtime::Runtime;

use crate::measure::{Amount, Effort, Row};

/// How many requests are under way at once.
const AT_ONCE: usize = 64;
/// How many watches are open.
const WATCHES: usize = 1000;

/// Measures everything of this group.
pub fn run(effort: Effort) -> Vec<Row> {
    let runtime = runtime();
    runtime.block_on(async {
        let files = files::Files::new();
        let server = files.start().await;
        let world = files.prepare(server.address()).await;
        let mut rows = load::reads(effort, &world).await;
        rows.extend(load::writes(effort, &world).await);
        rows.extend(watches::run(effort, &world).await);
        server.shutdown().await;
        rows
    })
}

/// A runtime with as many workers as the program has.
fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().expect("a runtime")
}

/// The results of one load: the time of each request that succeeded, and how many failed.
#[derive(Debug, Default)]
struct Results {
    times: Vec<f64>,
    errors: u64,
    /// How long all of them took, in nanoseconds.
    took: f64,
}

impl Results {
    fn row(mut self, operation: &str, variant: &str) -> Row {
        self.times.sort_by(f64::total_cmp);
        let rate = self.times.len() as f64 / (self.took / 1e9);
        Row {
            group: "service",
            operation: operation.to_owned(),
            variant: variant.to_owned(),
            median_ns: self.share(50),
            spread_ns: (self.share(0), self.share(100)),
            details: vec![
                ("in a second", Amount::Count(rate.round())),
                ("p99", Amount::Nanoseconds(self.share(99))),
                ("errors", Amount::Count(self.errors as f64)),
            ],
            ..Row::default()
        }
    }

    /// The time that this share of the requests did not exceed, in percent. The times are sorted.
    fn share(&self, percent: usize) -> f64 {
        let last = self.times.len().saturating_sub(1);
        self.times.get(last * percent / 100).copied().unwrap_or(0.0)
    }
}
