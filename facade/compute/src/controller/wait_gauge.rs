//! What each instance waits for, as far as this process knows: for gauges, and for nothing else.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use metrics::gauge;

use crate::instance::InstanceId;

/// The instances that wait, by what for. What is at rest is not here.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitGauge {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: BTreeMap<InstanceId, &'static str>,
    counts: BTreeMap<&'static str, usize>,
}

impl WaitGauge {
    /// What an instance waits for since its last pass; nothing if it waits for nothing. Answers whether that is news.
    pub(super) fn set(&self, id: InstanceId, waits_for: Option<&'static str>) -> bool {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match waits_for {
            Some(what) => inner.waiting.insert(id, what),
            None => inner.waiting.remove(&id),
        };
        if before == waits_for {
            return false;
        }
        if let Some(what) = before {
            inner.change(what, |count| count.saturating_sub(1));
        }
        if let Some(what) = waits_for {
            inner.change(what, |count| count.saturating_add(1));
        }
        true
    }
}

impl Inner {
    fn change(&mut self, what: &'static str, change: impl Fn(usize) -> usize) {
        let count = self.counts.entry(what).or_default();
        *count = change(*count);
        gauge!("fleetwright_compute_instances_waiting", "for" => what).set(float(*count));
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges are f64")]
fn float(count: usize) -> f64 {
    count as f64
}
