//! A metrics recorder that keeps all values.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// The recorded metrics: the current value of counters and gauges, and all values of histograms.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestRecorder(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

/// One metric with its labels.
struct Metric(TestRecorder, String);

impl TestRecorder {
    /// Returns the values of `name{label=value,...}`, with labels in alphabetical order.
    pub(crate) fn values(&self, key: &str) -> Vec<f64> {
        self.0.lock().unwrap().get(key).cloned().unwrap_or_default()
    }

    fn metric(&self, key: &Key) -> Arc<Metric> {
        let mut labels: Vec<_> = key
            .labels()
            .map(|l| format!("{}={}", l.key(), l.value()))
            .collect();
        labels.sort();
        Arc::new(Metric(
            self.clone(),
            format!("{}{{{}}}", key.name(), labels.join(",")),
        ))
    }
}

impl Metric {
    fn change(&self, change: impl FnOnce(&mut Vec<f64>)) {
        change(self.0.0.lock().unwrap().entry(self.1.clone()).or_default());
    }

    fn add(&self, value: f64) {
        self.change(|values| *values = vec![values.first().unwrap_or(&0.0) + value]);
    }
}

impl CounterFn for Metric {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }
    fn absolute(&self, _: u64) {
        unreachable!()
    }
}

impl GaugeFn for Metric {
    fn increment(&self, value: f64) {
        self.add(value);
    }
    fn decrement(&self, value: f64) {
        self.add(-value);
    }
    fn set(&self, value: f64) {
        self.change(|values| *values = vec![value]);
    }
}

impl HistogramFn for Metric {
    fn record(&self, value: f64) {
        self.change(|values| values.push(value));
    }
}

impl Recorder for TestRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.metric(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.metric(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.metric(key))
    }
}
