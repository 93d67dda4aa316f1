//! Describing, and pages of a list, as a read sees them that may lag behind the truth.

use std::time::Duration;

use fleetwright::{CloudInstanceState, InstanceFilter, InstanceId};

use super::{Seq, View, World, index::Life};
use crate::{error::Refusal, state::normalize};

/// How far a read lags behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lag {
    /// By chance, up to the whole consistency window.
    Chance,
    /// By the whole consistency window.
    Whole,
}

/// A part of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) views: Vec<View>,
    /// Where the next page begins, if there may be one.
    pub(crate) next: Option<Seq>,
}

impl World {
    /// The moment that a read made now sees; nothing where that is before the beginning.
    pub(super) fn moment(&mut self, lag: Lag) -> Option<Duration> {
        let window = self.knobs.capabilities.consistency_window;
        let behind = match lag {
            Lag::Chance => self.lag_dice.up_to(window),
            Lag::Whole => window,
        };
        self.now.checked_sub(behind)
    }

    /// An instance as the read sees it.
    pub(crate) fn describe(&mut self, id: &InstanceId, lag: Lag) -> Result<View, Refusal> {
        let moment = self.moment(lag);
        let record = self.find(id)?;
        let (seq, version) = (record.seq, record.version_at(moment).cloned());
        let version = version.ok_or_else(|| Refusal::NoSuchInstance(id.clone()))?;
        let record = self
            .records
            .get(&seq)
            .ok_or_else(|| Refusal::NoSuchInstance(id.clone()))?;
        Ok(record.view(&version, self.date_at(record.launched)))
    }

    /// The next page of what `filter` selects, in the order of launch. Touches the instances that
    /// carry the filter's tags, and no others.
    pub(crate) fn page(&mut self, filter: &InstanceFilter, after: Option<Seq>, lag: Lag) -> Page {
        let moment = self.moment(lag);
        let most = self.knobs.capabilities.page_size.get();
        let mut views = Vec::new();
        let (mut last, mut touched) = (after, 0);
        let mut candidates = self
            .index
            .find(&lives(filter), &filter.tags, after)
            .peekable();
        while views.len() < most {
            let Some(seq) = candidates.next() else { break };
            last = Some(seq);
            touched += 1;
            let Some(record) = self.records.get(&seq) else {
                continue;
            };
            let Some(version) = record.version_at(moment) else {
                continue;
            };
            let selected = filter.selects_state(normalize(version.state.word()))
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

/// The lives in which a filter may find something.
fn lives(filter: &InstanceFilter) -> Vec<Life> {
    let mut lives = Vec::new();
    if CloudInstanceState::ALL
        .into_iter()
        .any(|s| !s.is_final() && filter.selects_state(s))
    {
        lives.push(Life::Going);
    }
    if filter.selects_state(CloudInstanceState::Terminated) {
        lives.push(Life::Over);
    }
    lives
}
