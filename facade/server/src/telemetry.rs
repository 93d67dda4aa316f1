//! Where log lines and metrics go. Both are the process's: they are set up once.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{cli::LogFormat, config::TracesConfig, error::ServerError, traces::Traces};

/// The bounds of the histograms of seconds.
const SECONDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// The metrics of this process. If another recorder was installed first, the text that they render is empty.
pub(crate) fn metrics() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    let handle = HANDLE.get_or_init(|| {
        let builder = PrometheusBuilder::new();
        let suffix = Matcher::Suffix("_seconds".to_owned());
        let builder = builder
            .set_buckets_for_metric(suffix, &SECONDS)
            .unwrap_or_default();
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another recorder of metrics is installed: /metrics is empty");
        }
        handle
    });
    handle.clone()
}

/// Writes log lines to standard error: as JSON, or for people. `RUST_LOG` chooses which. Sends traces if they are configured.
///
/// # Errors
///
/// The exporter of traces cannot be built.
pub(crate) fn start(
    format: LogFormat,
    traces: Option<&TracesConfig>,
) -> Result<Traces, ServerError> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let lines = match format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    let sending = Traces::open(traces)?;
    let registry = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "otel")]
    let registry = registry.with(sending.layer());
    // It fails only in a program that uses the library and has its own.
    drop(registry.try_init());
    Ok(sending)
}
