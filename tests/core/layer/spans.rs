//! A subscriber that keeps every span and event with its fields.

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

/// A span or an event as it was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) name: &'static str,
    pub(crate) target: &'static str,
    pub(crate) level: String,
    pub(crate) fields: BTreeMap<&'static str, String>,
    /// The place of the span around it.
    pub(crate) within: Option<usize>,
}

impl Told {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

#[derive(Debug, Default)]
struct Kept {
    spans: Vec<(Told, &'static Metadata<'static>)>,
    events: Vec<Told>,
    entered: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Spans(Arc<Mutex<Kept>>);

impl Spans {
    /// Every span by this name.
    pub(crate) fn named(&self, name: &str) -> Vec<Told> {
        let kept = self.0.lock().unwrap();
        let told = kept.spans.iter().map(|(told, _)| told.clone());
        told.filter(|told| told.name == name).collect()
    }

    pub(crate) fn events(&self) -> Vec<Told> {
        self.0.lock().unwrap().events.clone()
    }

    /// The span at a place.
    pub(crate) fn at(&self, place: usize) -> Told {
        self.0.lock().unwrap().spans[place].0.clone()
    }

    /// All that was told, to be searched.
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
        let of = span.metadata();
        let mut told = Told {
            name: of.name(),
            target: of.target(),
            level: of.level().to_string(),
            within: kept.entered.last().copied(),
            ..Told::default()
        };
        span.record(&mut told);
        kept.spans.push((told, of));
        Id::from_u64(kept.spans.len() as u64)
    }
    fn record(&self, id: &Id, values: &Record<'_>) {
        values.record(&mut self.0.lock().unwrap().spans[place(id)].0);
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut kept = self.0.lock().unwrap();
        let mut told = Told {
            name: event.metadata().name(),
            target: event.metadata().target(),
            level: event.metadata().level().to_string(),
            within: kept.entered.last().copied(),
            ..Told::default()
        };
        event.record(&mut told);
        kept.events.push(told);
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
