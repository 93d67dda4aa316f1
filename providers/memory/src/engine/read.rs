//! Describe, and pages of a list.
//!
//! Within the consistency window, both return an earlier version of an instance.

use std::time::Duration;

use fleetwright::{CloudInstanceState, InstanceFilter, InstanceId};

use super::{Record, Seq, Version, View, World, index::Existence};
use crate::{error::NativeError, state::normalize};

/// By how much a read lags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lag {
    /// By a random duration up to the whole consistency window.
    Random,
    /// By the whole consistency window.
    Full,
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) views: Vec<View>,
    /// The last instance of this page, if there may be a next page.
    pub(crate) next: Option<Seq>,
}

impl World {
    /// Returns the time as of which a read that is made now sees the account. `None` is before the
    /// account existed.
    pub(super) fn read_time(&mut self, lag: Lag) -> Option<Duration> {
        let declared = &self.knobs.capabilities;
        let (window, usual) = (declared.consistency_window, declared.usual_lag());
        let lag = match lag {
            Lag::Random => self.lag_rng.up_to(usual),
            Lag::Full => window,
        };
        self.now.checked_sub(lag)
    }

    /// Passes an instance, as of the time that the read sees, to `read`. Nothing of it is copied before that.
    pub(crate) fn describe<T>(
        &mut self,
        id: &InstanceId,
        lag: Lag,
        read: impl FnOnce(&Record, &Version) -> T,
    ) -> Result<T, NativeError> {
        let read_time = self.read_time(lag);
        let record = self.find(id)?;
        let version = record.version_at(read_time);
        let version = version.ok_or_else(|| NativeError::NoSuchInstance(id.clone()))?;
        Ok(read(record, version))
    }

    /// Returns the next page of the instances that `filter` selects, in the order of launch. Reads
    /// only the instances that have the filter's tags.
    pub(crate) fn page(&mut self, filter: &InstanceFilter, after: Option<Seq>, lag: Lag) -> Page {
        let read_time = self.read_time(lag);
        let page_size = self.knobs.capabilities.page_size.get();
        let mut views = Vec::new();
        let (mut last, mut touched) = (after, 0);
        let mut candidates = self
            .index
            .find(&existences(filter), &filter.tags, after)
            .peekable();
        while views.len() < page_size {
            let Some(seq) = candidates.next() else { break };
            last = Some(seq);
            touched += 1;
            let Some(record) = self.records.get(&seq) else {
                continue;
            };
            let Some(version) = record.version_at(read_time) else {
                continue;
            };
            let selected = filter.selects_state(normalize(version.state.as_str()))
                && version.tags.contains_all(&filter.tags)
                && !self.zones_down.contains(&record.zone);
            if selected {
                views.push(record.view(version, self.date_at(record.launched)));
            }
        }
        let next = candidates.peek().and(last);
        drop(candidates);
        self.records_touched += touched;
        Page { views, next }
    }
}

/// Returns the existences that can contain a match of the filter.
fn existences(filter: &InstanceFilter) -> Vec<Existence> {
    let mut existences = Vec::new();
    if CloudInstanceState::ALL
        .into_iter()
        .any(|s| !s.is_final() && filter.selects_state(s))
    {
        existences.push(Existence::Existing);
    }
    if filter.selects_state(CloudInstanceState::Terminated) {
        existences.push(Existence::Terminated);
    }
    existences
}
