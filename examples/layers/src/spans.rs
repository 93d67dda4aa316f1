//! Collects the fields of the spans of calls when they close. A real program has a subscriber that
//! exports them; `tracing-opentelemetry` understands the same fields.

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

/// The spans of the finished calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<Fields>>>);

impl Calls {
    /// Removes and returns the collected spans.
    pub(crate) fn take(&self) -> Vec<Fields> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Calls {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            if span.name() == "fleetwright.call" {
                let mut collected = Collected::default();
                attributes.record(&mut collected);
                span.extensions_mut().insert(collected);
            }
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        with_fields(context.span(id), |collected| values.record(collected));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        with_fields(context.span(&id), |collected| {
            let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            calls.push(std::mem::take(&mut collected.0));
        });
    }
}

fn with_fields<'a, S: LookupSpan<'a>>(
    span: Option<SpanRef<'a, S>>,
    work: impl FnOnce(&mut Collected),
) {
    if let Some(span) = span {
        if let Some(collected) = span.extensions_mut().get_mut::<Collected>() {
            work(collected);
        }
    }
}

#[derive(Default)]
struct Collected(Fields);

impl Visit for Collected {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
