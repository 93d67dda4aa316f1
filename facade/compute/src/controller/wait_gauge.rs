//! The gauge of instances that are not idle, by their last step in this process.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use metrics::gauge;

use crate::instance::InstanceId;

/// The last step of each instance that is not idle.
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
    /// Sets the last step of an instance, or `None` if it is idle. Returns whether that changed.
    pub(super) fn set(&self, id: InstanceId, step: Option<&'static str>) -> bool {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match step {
            Some(step) => inner.waiting.insert(id, step),
            None => inner.waiting.remove(&id),
        };
        if before == step {
            return false;
        }
        if let Some(step) = before {
            inner.change(step, |count| count.saturating_sub(1));
        }
        if let Some(step) = step {
            inner.change(step, |count| count.saturating_add(1));
        }
        true
    }
}

impl Inner {
    fn change(&mut self, step: &'static str, change: impl Fn(usize) -> usize) {
        let count = self.counts.entry(step).or_default();
        *count = change(*count);
        gauge!("fleetwright_compute_instances_waiting", "step" => step).set(float(*count));
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges are f64")]
fn float(count: usize) -> f64 {
    count as f64
}
