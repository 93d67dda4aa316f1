//! What is counted of calls, and the span that each runs in. Neither ever holds what a tenant has sent.

use std::future::Future;

use metrics::counter;
use tracing::Instrument as _;

use super::Instances;
use crate::{ComputeError, instance::InstanceId};

impl Instances {
    /// A call with its span, counted with what came of it.
    pub(super) async fn metered<T>(
        &self,
        call: &'static str,
        id: Option<InstanceId>,
        work: impl Future<Output = Result<T, ComputeError>> + Send,
    ) -> Result<T, ComputeError> {
        let span = tracing::info_span!("instances", call, instance = tracing::field::Empty);
        if let Some(id) = id {
            span.record("instance", tracing::field::display(id));
        }
        let answer = work.instrument(span.clone()).await;
        let outcome = match &answer {
            Ok(_) => "ok",
            Err(error) => error.meaning().code(),
        };
        counter!("fleetwright_compute_calls_total", "call" => call, "outcome" => outcome)
            .increment(1);
        if outcome == crate::Meaning::Internal.code() {
            if let Err(error) = &answer {
                span.in_scope(|| {
                    tracing::error!(
                        error = error as &dyn std::error::Error,
                        "a call failed inside"
                    );
                });
            }
        }
        answer
    }
}
