//! The keys of metrics: a name and labels.
//!
//! An ordinary call builds none: a key is built once for each operation of the first [`BACKENDS`] backends of the process, with
//! the metric's usual label or without one. Others are built when they are needed.

use std::sync::OnceLock;

use metrics::{Key, Label, SharedString};

use super::Request;
use crate::Operation;

/// How many backends have stored keys. A process with more of them builds those of the others at every call.
const BACKENDS: usize = 4;

/// The names of these backends, in the order of their first call.
static PROVIDERS: [OnceLock<String>; BACKENDS] = [const { OnceLock::new() }; BACKENDS];

/// A label with a fixed key and value.
pub(super) type StaticLabel = (&'static str, &'static str);

/// A metric, and its keys with the labels `provider` and `operation`, and with the label of its ordinary case.
pub(super) struct Metric {
    name: &'static str,
    usual: Option<StaticLabel>,
    keys: [[OnceLock<Key>; Operation::ALL.len()]; BACKENDS],
}

impl Metric {
    /// Creates a metric without further labels.
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name,
            usual: None,
            keys: [const { [const { OnceLock::new() }; Operation::ALL.len()] }; BACKENDS],
        }
    }

    /// Creates a metric that mostly has this label.
    pub(super) const fn usually(name: &'static str, label: StaticLabel) -> Self {
        let mut metric = Self::new(name);
        metric.usual = Some(label);
        metric
    }

    /// Passes the key for a request to `record`, with another label than the usual one if there is one.
    pub(super) fn with_key<T>(
        &self,
        request: &Request<'_>,
        label: Option<StaticLabel>,
        record: impl FnOnce(&Key) -> T,
    ) -> T {
        let provider = request.call.provider();
        let operation = request.operation();
        let stored = (label == self.usual)
            .then(|| backend(provider))
            .flatten()
            .and_then(|backend| self.keys[backend].get(operation as usize));
        let build = || {
            let mut labels = vec![
                Label::new("provider", SharedString::from(provider.to_owned())),
                Label::from_static_parts("operation", operation.as_str()),
            ];
            labels.extend(label.map(|(key, value)| Label::from_static_parts(key, value)));
            Key::from_parts(self.name, labels)
        };
        match stored {
            Some(stored) => record(stored.get_or_init(build)),
            None => record(&build()),
        }
    }
}

/// Returns the index of a backend among those with stored keys, which it joins if there is room.
fn backend(provider: &str) -> Option<usize> {
    PROVIDERS
        .iter()
        .position(|name| name.get_or_init(|| provider.to_owned()) == provider)
}
