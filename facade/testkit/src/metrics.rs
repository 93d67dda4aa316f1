//! What was recorded as metrics.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

type Values = Arc<Mutex<BTreeMap<String, f64>>>;

/// A recorder that keeps the last value of every counter and gauge, and how often each histogram was recorded.
///
/// A metric is found by its name and the values of its labels but `region`, separated by spaces:
/// `fleetwright_compute_steps_total create`.
#[derive(Clone, Debug, Default)]
pub struct RecordedMetrics {
    values: Values,
}

struct Entry(Values, String);

impl Entry {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut values = self.0.lock().unwrap();
        let value = values.entry(self.1.clone()).or_default();
        *value = change(*value);
    }
}

impl CounterFn for Entry {
    #[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
    fn increment(&self, by: u64) {
        self.change(|value| value + by as f64);
    }
    #[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
    fn absolute(&self, to: u64) {
        self.change(|_| to as f64);
    }
}

impl GaugeFn for Entry {
    fn increment(&self, by: f64) {
        self.change(|value| value + by);
    }
    fn decrement(&self, by: f64) {
        self.change(|value| value - by);
    }
    fn set(&self, to: f64) {
        self.change(|_| to);
    }
}

impl HistogramFn for Entry {
    fn record(&self, _: f64) {
        self.change(|count| count + 1.0);
    }
}

impl RecordedMetrics {
    fn entry(&self, key: &Key) -> Arc<Entry> {
        let labels = key.labels().filter(|label| label.key() != "region");
        let labels: Vec<_> = labels.map(metrics::Label::value).collect();
        let region = key.labels().any(|label| label.key() == "region");
        let of_region = key.name().starts_with("fleetwright_region_");
        assert!(region || !of_region, "{key} does not say of which region");
        let name = [&[key.name()], labels.as_slice()].concat().join(" ");
        Arc::new(Entry(Arc::clone(&self.values), name))
    }

    /// The value of a metric.
    ///
    /// # Panics
    ///
    /// If it was never recorded.
    pub fn get(&self, name: &str) -> f64 {
        let values = self.values.lock().unwrap();
        let value = values.get(name);
        *value.unwrap_or_else(|| panic!("there is no {name}: {:?}", values.keys()))
    }

    /// Everything whose name begins with `prefix`.
    pub fn starting_with(&self, prefix: &str) -> BTreeMap<String, f64> {
        let values = self.values.lock().unwrap();
        let found = values.iter().filter(|(name, _)| name.starts_with(prefix));
        found.map(|(name, value)| (name.clone(), *value)).collect()
    }
}

impl Recorder for RecordedMetrics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.entry(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.entry(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.entry(key))
    }
}
