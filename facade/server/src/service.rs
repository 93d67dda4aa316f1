//! What every request has: the façade, the tokens, the limits. It owns no rule.

use std::{fmt, ops::Deref, sync::Arc};

use fleetwright_compute::Facade;
use tokio::sync::watch;

use crate::{
    auth::Authenticator, config::Limits, http::limit::CallerLimits, idempotency::Idempotency,
    keys::Keys,
};

/// The parts of a running service. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Service(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) facade: Facade,
    pub(crate) authenticator: Authenticator,
    pub(crate) keys: Keys,
    pub(crate) idempotency: Idempotency,
    pub(crate) limits: Limits,
    pub(crate) callers: CallerLimits,
    pub(crate) metrics: metrics_exporter_prometheus::PrometheusHandle,
    /// When readiness was found out last, and the result.
    pub(crate) readiness: tokio::sync::Mutex<Option<(tokio::time::Instant, bool)>>,
    /// Becomes true when the service stops: then long requests end.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Service {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for Service {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}
