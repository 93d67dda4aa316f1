//! A recorder of metrics that keeps all of them in a book.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// Everything that was recorded: what counters and gauges stand at, and all of a histogram.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

/// One name with its labels in the book.
struct Line(Book, String);

impl Book {
    /// Of `name{label=value,...}`, labels in the order of their names.
    pub(crate) fn of(&self, line: &str) -> Vec<f64> {
        self.0
            .lock()
            .unwrap()
            .get(line)
            .cloned()
            .unwrap_or_default()
    }

    fn line(&self, key: &Key) -> Arc<Line> {
        let mut labels: Vec<_> = key
            .labels()
            .map(|l| format!("{}={}", l.key(), l.value()))
            .collect();
        labels.sort();
        Arc::new(Line(
            self.clone(),
            format!("{}{{{}}}", key.name(), labels.join(",")),
        ))
    }
}

impl Line {
    fn change(&self, change: impl FnOnce(&mut Vec<f64>)) {
        change(self.0.0.lock().unwrap().entry(self.1.clone()).or_default());
    }

    fn add(&self, value: f64) {
        self.change(|line| *line = vec![line.first().unwrap_or(&0.0) + value]);
    }
}

impl CounterFn for Line {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }
    fn absolute(&self, _: u64) {
        unreachable!()
    }
}

impl GaugeFn for Line {
    fn increment(&self, value: f64) {
        self.add(value);
    }
    fn decrement(&self, value: f64) {
        self.add(-value);
    }
    fn set(&self, value: f64) {
        self.change(|line| *line = vec![value]);
    }
}

impl HistogramFn for Line {
    fn record(&self, value: f64) {
        self.change(|line| line.push(value));
    }
}

impl Recorder for Book {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.line(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.line(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.line(key))
    }
}
