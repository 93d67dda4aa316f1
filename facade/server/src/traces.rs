//! Traces: a span for each request, sent to a collector with OTLP over HTTP. Without the feature `otel` there are none.
//!
//! A span has the method, the route, the path and the status. It never has a query, a header, a body or a token.

#[cfg(feature = "otel")]
pub(crate) use with_otel::{Traces, finish, id, span};
#[cfg(not(feature = "otel"))]
pub(crate) use without_otel::{Traces, finish, id, span};

#[cfg(feature = "otel")]
mod with_otel {
    use std::time::Duration;

    use axum::{
        extract::Request,
        http::{HeaderMap, StatusCode},
    };
    use opentelemetry::{
        propagation::{Extractor, TextMapPropagator as _},
        trace::{TraceContextExt as _, TraceId, TracerProvider as _},
    };
    use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
    use opentelemetry_sdk::{
        Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider,
    };
    use tracing::{Span, field::Empty, level_filters::LevelFilter};
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;
    use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

    use crate::{config::TracesConfig, error::ServerError};

    /// How long sending the last spans may take when the program ends.
    const FINISH_WITHIN: Duration = Duration::from_secs(5);
    /// Whose spans are sent: those of this project's crates. What sends them must not be traced itself.
    const TARGETS: &str = "fleetwright";

    /// What sends spans, if it is configured.
    #[derive(Debug)]
    pub(crate) struct Traces(Option<SdkTracerProvider>);

    impl Traces {
        pub(crate) fn open(config: Option<&TracesConfig>) -> Result<Self, ServerError> {
            let Some(config) = config else {
                return Ok(Self(None));
            };
            let base = config.endpoint.as_str().trim_end_matches('/');
            let exporter = SpanExporter::builder()
                .with_http()
                .with_endpoint(format!("{base}/v1/traces"))
                .build()
                .map_err(ServerError::internal)?;
            let resource = Resource::builder()
                .with_service_name(config.service.clone())
                .build();
            let provider = SdkTracerProvider::builder()
                .with_batch_exporter(exporter)
                .with_resource(resource)
                .build();
            Ok(Self(Some(provider)))
        }

        /// The layer that turns spans of this program into traces.
        pub(crate) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
        where
            S: tracing::Subscriber + for<'a> LookupSpan<'a>,
        {
            let tracer = self.0.as_ref()?.tracer(env!("CARGO_PKG_NAME"));
            let layer = tracing_opentelemetry::layer().with_tracer(tracer);
            Some(layer.with_filter(Targets::new().with_target(TARGETS, LevelFilter::INFO)))
        }

        /// Sends what is left.
        pub(crate) async fn finish(self) {
            let Some(provider) = self.0 else { return };
            let finished =
                tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FINISH_WITHIN));
            if let Ok(Err(error)) = finished.await {
                tracing::warn!(%error, "the last traces are not sent");
            }
        }
    }

    /// The span of a request. It continues the caller's trace.
    pub(crate) fn span(request: &Request, route: &str) -> Span {
        let span = tracing::info_span!(
            "request",
            otel.name = format!("{} {route}", request.method()),
            otel.kind = "server",
            otel.status_code = Empty,
            http.request.method = %request.method(),
            http.route = route,
            url.path = request.uri().path(),
            http.response.status_code = Empty,
        );
        let parent = TraceContextPropagator::new().extract(&Headers(request.headers()));
        if parent.span().span_context().is_valid() {
            // It fails if nothing is traced.
            let _ = span.set_parent(parent);
        }
        span
    }

    /// The trace id of a span, if it is traced.
    pub(crate) fn id(span: &Span) -> Option<String> {
        let id = span.context().span().span_context().trace_id();
        (id != TraceId::INVALID).then(|| id.to_string())
    }

    /// Adds what the response says.
    pub(crate) fn finish(span: &Span, status: StatusCode) {
        span.record("http.response.status_code", status.as_u16());
        if status.is_server_error() {
            span.record("otel.status_code", "ERROR");
        }
    }

    struct Headers<'h>(&'h HeaderMap);

    impl Extractor for Headers<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            self.0.get(key)?.to_str().ok()
        }

        fn keys(&self) -> Vec<&str> {
            self.0.keys().map(axum::http::HeaderName::as_str).collect()
        }
    }
}

#[cfg(not(feature = "otel"))]
mod without_otel {
    use axum::{extract::Request, http::StatusCode};
    use tracing::Span;

    use crate::{config::TracesConfig, error::ServerError};

    /// Nothing is sent: a configuration with traces was refused.
    #[derive(Debug)]
    pub(crate) struct Traces;

    impl Traces {
        #[allow(
            clippy::unnecessary_wraps,
            reason = "the same signature as with the feature"
        )]
        pub(crate) fn open(_: Option<&TracesConfig>) -> Result<Self, ServerError> {
            Ok(Self)
        }

        #[allow(
            clippy::unused_async,
            reason = "the same signature as with the feature"
        )]
        pub(crate) async fn finish(self) {}
    }

    pub(crate) fn span(_: &Request, _: &str) -> Span {
        Span::none()
    }

    pub(crate) fn id(_: &Span) -> Option<String> {
        None
    }

    pub(crate) fn finish(_: &Span, _: StatusCode) {}
}
