//! The gauge of what instances wait for, as far as this process knows. Nothing else uses it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use metrics::gauge;

use crate::instance::InstanceId;

/// The instances that wait, with what they wait for. Idle instances are not in it.
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
    /// Sets what an instance waits for since its last reconcile, or `None`. Returns whether that changed.
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
