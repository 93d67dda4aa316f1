//! Lists that are wrong for some combinations of tags and states, or while others list.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState::{self, Pending, Stopping, Terminating},
    InstanceFilter, InstanceInfo, Result, Tags,
};
use tokio::sync::OnceCell;

use super::Relist;
use crate::CallContext;

/// Uses the kit's own tags only if the filter has no states.
#[derive(Default)]
pub(super) struct IgnoresTagsBesideStates;

#[async_trait]
impl Relist for IgnoresTagsBesideStates {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut used = filter.clone();
        if !filter.states.is_empty() {
            let kept = filter.tags.iter().filter(|(key, _)| *key != "kit-size");
            let kept = kept.map(|(key, value)| (key.to_owned(), value.to_owned()));
            used.tags = Tags::from_observed(kept);
        }
        at.inner.list_instances(&used).await
    }
}

fn selects_only(filter: &InstanceFilter, state: CloudInstanceState) -> bool {
    filter.states == BTreeSet::from([state])
}

/// The cloud's filter has one word for both states.
#[derive(Default)]
pub(super) struct ListsStoppingAsPending;

#[async_trait]
impl Relist for ListsStoppingAsPending {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut used = filter.clone();
        if selects_only(filter, Pending) {
            used.states.insert(Stopping);
        }
        at.inner.list_instances(&used).await
    }
}

/// The cloud's filter does not know the state.
#[derive(Default)]
pub(super) struct ListsNoTerminatingAlone;

#[async_trait]
impl Relist for ListsNoTerminatingAlone {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        if selects_only(filter, Terminating) {
            return Ok(Vec::new());
        }
        at.inner.list_instances(filter).await
    }
}

/// Joins a list that is under way, whatever its filter.
#[derive(Default)]
pub(super) struct SharesLists(Mutex<Option<Arc<OnceCell<Vec<InstanceInfo>>>>>);

#[async_trait]
impl Relist for SharesLists {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let under_way = {
            let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(shared.get_or_insert_default())
        };
        let listed = under_way
            .get_or_try_init(|| at.inner.list_instances(filter))
            .await
            .cloned();
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shared
            .as_ref()
            .is_some_and(|one| Arc::ptr_eq(one, &under_way))
        {
            *shared = None;
        }
        listed
    }
}
