//! Rounds of measurements, and what they come to.

use std::time::{Duration, Instant};

use serde::Serialize;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many rounds there are. The first one is not counted.
    pub rounds: usize,
    /// How long one variant runs in one round.
    pub time: Duration,
    /// The largest fleet.
    pub fleet: u32,
}

impl Effort {
    /// For the published table.
    pub const FULL: Self = Self {
        rounds: 11,
        time: Duration::from_millis(400),
        fleet: 100_000,
    };
    /// For a first look.
    pub const QUICK: Self = Self {
        rounds: 5,
        time: Duration::from_millis(50),
        fleet: 10_000,
    };
}

/// What a row has besides its time.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// A number of things.
    Count(f64),
    /// A time in nanoseconds.
    Nanoseconds(f64),
    /// A size.
    Bytes(u64),
}

/// One line of the table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// What is measured, such as "layers".
    pub group: &'static str,
    /// The operation.
    pub operation: String,
    /// How it is done.
    pub variant: String,
    /// The median time of one operation, in nanoseconds. Zero if no time was measured.
    pub median_ns: f64,
    /// The fastest and the slowest round, in nanoseconds.
    pub spread_ns: (f64, f64),
    /// How many allocations one operation makes, if that was counted.
    pub allocations: Option<u64>,
    /// Further columns by their headings.
    pub details: Vec<(&'static str, Amount)>,
}

/// A variant of an operation: its name, and a function that repeats it this many times.
pub type Variant<'a> = (String, Box<dyn FnMut(u32) + 'a>);

/// Runs the variants in turn, and returns the time of one operation of each: median, fastest and slowest round.
pub fn interleave(effort: Effort, variants: &mut [Variant<'_>]) -> Vec<(f64, (f64, f64))> {
    let repetitions: Vec<u32> = variants
        .iter_mut()
        .map(|(_, run)| repetitions(effort.time, run))
        .collect();
    let mut times = vec![Vec::new(); variants.len()];
    for round in 0..effort.rounds {
        for (at, (_, run)) in variants.iter_mut().enumerate() {
            let began = Instant::now();
            run(repetitions[at]);
            let each = nanoseconds(began.elapsed()) / f64::from(repetitions[at]);
            if round > 0 {
                times[at].push(each);
            }
        }
    }
    times.into_iter().map(summarize).collect()
}

/// Returns how often an operation is repeated to fill `time`.
fn repetitions(time: Duration, run: &mut dyn FnMut(u32)) -> u32 {
    let mut count = 1;
    loop {
        let began = Instant::now();
        run(count);
        let took = began.elapsed();
        if took * 2 >= time || count >= 1 << 24 {
            return count;
        }
        count *= 2;
    }
}

/// Returns the median, and the fastest and the slowest one.
pub fn summarize(mut times: Vec<f64>) -> (f64, (f64, f64)) {
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let end = |time: Option<&f64>| time.copied().unwrap_or_default();
    (median, (end(times.first()), end(times.last())))
}

/// Returns a time in nanoseconds.
pub fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

/// Returns how long this thread has used a processor, in nanoseconds; zero where the system does not say.
pub fn thread_cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Returns the most bytes that `run` held at once on this thread, beyond what was held before.
pub fn peak_bytes(run: impl FnOnce()) -> u64 {
    allocation_counter::measure(run).bytes_max
}

/// Returns how many allocations `run` makes on this thread.
pub fn allocations(run: impl FnOnce()) -> u64 {
    allocation_counter::measure(run).count_total
}
