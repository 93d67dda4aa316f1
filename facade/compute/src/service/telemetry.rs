//! The counter of calls and the span of each call. Beside the id, neither ever contains anything that a tenant sent.

use std::future::Future;

use metrics::counter;
use tracing::Instrument as _;

use super::Instances;
use crate::{ComputeError, instance::InstanceId};

impl Instances {
    /// Runs a call in its span, and counts it with its outcome.
    pub(super) async fn measure<T>(
        &self,
        call: &'static str,
        id: Option<InstanceId>,
        work: impl Future<Output = Result<T, ComputeError>> + Send,
    ) -> Result<T, ComputeError> {
        let span = tracing::info_span!("instances", call, instance = tracing::field::Empty);
        if let Some(id) = id {
            span.record("instance", tracing::field::display(id));
        }
        let result = work.instrument(span.clone()).await;
        let outcome = match &result {
            Ok(_) => "ok",
            Err(error) => error.meaning().code(),
        };
        counter!("fleetwright_compute_calls_total", "call" => call, "outcome" => outcome)
            .increment(1);
        if outcome == crate::Meaning::Internal.code() {
            if let Err(error) = &result {
                span.in_scope(|| {
                    tracing::error!(
                        error = error as &dyn std::error::Error,
                        "a call failed because of an internal error"
                    );
                });
            }
        }
        result
    }
}
