//! Streams of a recorded handle.
//!
//! Owns the end of a stream: one that panics, waits for too long or does not end is ended here, and
//! fails the clause.

use std::panic::AssertUnwindSafe;

use fleetwright::{BoxStream, InstanceFilter, InstanceProvisioner as _, ListItem, Result};
use fleetwright_clause_engine::panic_message;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, timeout};

use super::{Recorder, shown_filter};
use crate::poll_limit::limit_polls;

/// The most items that a stream may return: far more than any clause launches.
const MAX_ITEMS: usize = 20_000;

/// The most errors that a stream may return.
const MAX_ERRORS: usize = 1_000;

/// A stream with what it has returned so far.
struct Progress<'a> {
    /// What the line of the transcript calls it.
    name: String,
    /// `None` if it was ended here.
    items: Option<BoxStream<'a, Result<ListItem>>>,
    instances: usize,
    gaps: usize,
    errors: usize,
}

/// Returns the stream of the recorder's backend. It always ends.
pub(super) fn guarded<'a>(
    recorder: &'a Recorder,
    filter: &'a InstanceFilter,
) -> BoxStream<'a, Result<ListItem>> {
    let number = recorder.handle;
    let progress = Progress {
        name: format!(
            "handle {number}: stream_instances({})",
            shown_filter(filter)
        ),
        items: Some(recorder.inner.stream_instances(filter)),
        instances: 0,
        gaps: 0,
        errors: 0,
    };
    recorder.transcript.note(progress.name.clone());
    futures_util::stream::unfold(progress, move |mut progress| async move {
        let item = next(recorder, &mut progress).await?;
        Some((item, progress))
    })
    .boxed()
}

/// Returns the next item, or `None` at the end.
async fn next(recorder: &Recorder, progress: &mut Progress<'_>) -> Option<Result<ListItem>> {
    let (start, transcript) = (Instant::now(), &recorder.transcript);
    let item = AssertUnwindSafe(progress.items.as_mut()?.next()).catch_unwind();
    let item = timeout(recorder.budget, limit_polls(item)).await;
    let name = &progress.name;
    match item {
        Ok(Some(Ok(Some(item)))) => {
            progress.count(&item);
            if progress.is_endless() {
                let (name, so_far) = (&progress.name, progress.counts());
                let message = format!("{name} does not end: so far it returned {so_far}");
                transcript.record_violation(start, message);
                progress.items = None;
            }
            return Some(item);
        }
        Ok(Some(Ok(None))) => transcript.note(format!("{name} ended -> {}", progress.counts())),
        Ok(Some(Err(panic))) => {
            let message = format!("{name} panicked: {}", panic_message(&*panic));
            transcript.record_violation(start, message);
        }
        Ok(None) => {
            let message = format!("{name} returns nothing, and never waits either");
            transcript.record_timeout(start, message);
        }
        Err(_) => {
            let message = format!("{name} did not return within {:?}", recorder.budget);
            transcript.record_timeout(start, message);
        }
    }
    None
}

impl Progress<'_> {
    fn count(&mut self, item: &Result<ListItem>) {
        match item {
            Ok(ListItem::Instance(_)) => self.instances += 1,
            Ok(ListItem::Gap { .. }) => self.gaps += 1,
            Err(_) => self.errors += 1,
        }
    }

    /// Whether it has returned more than a stream that ends.
    const fn is_endless(&self) -> bool {
        self.instances + self.gaps > MAX_ITEMS || self.errors > MAX_ERRORS
    }

    fn counts(&self) -> String {
        let Self {
            instances,
            gaps,
            errors,
            ..
        } = self;
        format!("{instances} instances, {gaps} gaps, {errors} errors")
    }
}
