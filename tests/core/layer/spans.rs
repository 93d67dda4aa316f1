//! A subscriber that captures every span and event with its fields.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use tracing_core::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Current, Id, Record},
};

/// A captured span or event.
#[derive(Clone, Debug, Default)]
pub(crate) struct CapturedSpan {
    pub(crate) name: &'static str,
    pub(crate) target: &'static str,
    pub(crate) level: String,
    pub(crate) fields: BTreeMap<&'static str, String>,
    /// The index of the enclosing span.
    pub(crate) within: Option<usize>,
}

impl CapturedSpan {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

impl Visit for CapturedSpan {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

#[derive(Debug, Default)]
struct CapturedSpans {
    spans: Vec<(CapturedSpan, &'static Metadata<'static>)>,
    events: Vec<CapturedSpan>,
    entered: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Spans(Arc<Mutex<CapturedSpans>>);

impl Spans {
    /// Returns every span with this name.
    pub(crate) fn named(&self, name: &str) -> Vec<CapturedSpan> {
        let kept = self.0.lock().unwrap();
        let captured = kept.spans.iter().map(|(captured, _)| captured.clone());
        captured.filter(|captured| captured.name == name).collect()
    }

    pub(crate) fn events(&self) -> Vec<CapturedSpan> {
        self.0.lock().unwrap().events.clone()
    }

    /// Returns the span at an index.
    pub(crate) fn at(&self, place: usize) -> CapturedSpan {
        self.0.lock().unwrap().spans[place].0.clone()
    }

    /// Returns everything as text, for searches.
    pub(crate) fn text(&self) -> String {
        format!("{:?}", self.0.lock().unwrap())
    }
}

fn place(id: &Id) -> usize {
    usize::try_from(id.into_u64()).unwrap() - 1
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut kept = self.0.lock().unwrap();
        let metadata = span.metadata();
        let mut captured = CapturedSpan {
            name: metadata.name(),
            target: metadata.target(),
            level: metadata.level().to_string(),
            within: kept.entered.last().copied(),
            ..CapturedSpan::default()
        };
        span.record(&mut captured);
        kept.spans.push((captured, metadata));
        Id::from_u64(kept.spans.len() as u64)
    }
    fn record(&self, id: &Id, values: &Record<'_>) {
        values.record(&mut self.0.lock().unwrap().spans[place(id)].0);
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut kept = self.0.lock().unwrap();
        let mut captured = CapturedSpan {
            name: event.metadata().name(),
            target: event.metadata().target(),
            level: event.metadata().level().to_string(),
            within: kept.entered.last().copied(),
            ..CapturedSpan::default()
        };
        event.record(&mut captured);
        kept.events.push(captured);
    }
    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(place(id));
    }
    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }
    fn current_span(&self) -> Current {
        let kept = self.0.lock().unwrap();
        match kept.entered.last() {
            Some(place) => Current::new(Id::from_u64(*place as u64 + 1), kept.spans[*place].1),
            None => Current::none(),
        }
    }
}
