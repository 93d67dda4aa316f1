//! Captures spans and events, to look for secrets in them.
//!
//! Owns a subscriber that keeps the text of everything from the level `DEBUG` on that is recorded on the current
//! thread. The level `TRACE` is left out: libraries write whole requests there, and say so.

use std::{
    fmt::{self, Write as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing_core::{
    Dispatch, Event, Level, Metadata, Subscriber,
    dispatcher::with_default,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Runs `work` and returns its result with the text of all spans and events of this thread, one per line.
pub(crate) fn capture<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let dispatch = Dispatch::new(Capture {
        lines: Arc::clone(&lines),
        spans: AtomicU64::new(1),
    });
    let result = with_default(&dispatch, work);
    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    (result, std::mem::take(&mut *lines))
}

/// Keeps what is recorded.
struct Capture {
    lines: Arc<Mutex<Vec<String>>>,
    spans: AtomicU64,
}

impl Capture {
    /// Adds a line with the fields that `record` visits.
    fn add(&self, name: &str, record: impl FnOnce(&mut Fields)) {
        let mut fields = Fields(name.to_owned());
        record(&mut fields);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(fields.0);
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.add(span.metadata().name(), |fields| span.record(fields));
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.add("", |fields| values.record(fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.add(event.metadata().target(), |fields| event.record(fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The text of a span or an event.
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a string cannot fail.
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}
