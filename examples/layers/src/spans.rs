//! Keeps what the spans of calls say when they end. A real program has a subscriber that sends them
//! somewhere; `tracing-opentelemetry` understands the same fields.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::Context,
    registry::{LookupSpan, SpanRef},
};

/// The fields of a span.
pub(crate) type Fields = BTreeMap<&'static str, String>;

/// The calls that ended, as their spans tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<Fields>>>);

impl Calls {
    /// The calls since this was last asked.
    pub(crate) fn take(&self) -> Vec<Fields> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Calls {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            if span.name() == "fleetwright.call" {
                let mut seen = Seen::default();
                attributes.record(&mut seen);
                span.extensions_mut().insert(seen);
            }
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        with_fields(context.span(id), |seen| values.record(seen));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        with_fields(context.span(&id), |seen| {
            let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            calls.push(std::mem::take(&mut seen.0));
        });
    }
}

fn with_fields<'a, S: LookupSpan<'a>>(span: Option<SpanRef<'a, S>>, see: impl FnOnce(&mut Seen)) {
    if let Some(span) = span {
        if let Some(seen) = span.extensions_mut().get_mut::<Seen>() {
            see(seen);
        }
    }
}

#[derive(Default)]
struct Seen(Fields);

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
