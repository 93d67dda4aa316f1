//! The states of machines: of all with one list, or of some one by one.
//!
//! Owns the choice between them. Azure offers the list of states only for a whole subscription. A
//! caller whose rights cover one resource group is refused, and reads machines one by one instead.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::Instant;

use super::{AzureClient, CallResult, Pages, machines};
use crate::{
    address::{lowercase, machine_path},
    error::{AzureFailure as _, Failure},
    list::Statuses,
};

/// How long a refusal of the list is remembered, before the list is tried again.
const REFUSAL_VALID_FOR: Duration = Duration::from_secs(60 * 60);

/// Whether the caller may list the whole subscription. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct SubscriptionRights {
    refused: Arc<Mutex<Option<Instant>>>,
}

impl SubscriptionRights {
    /// Whether the list was refused less than an hour ago.
    fn are_missing(&self) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.is_some_and(|since| since.elapsed() < REFUSAL_VALID_FOR)
    }

    /// Records a refusal.
    fn refused(&self) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl AzureClient {
    /// Lists the states of the machines of the group, by resource id in lower case. Returns `None` if
    /// the caller has no right to list the subscription.
    pub(crate) async fn statuses(&self) -> CallResult<Option<Statuses>> {
        if self.rights.are_missing() {
            return Ok(None);
        }
        match self.list_statuses().await {
            Ok(statuses) => Ok(Some(statuses)),
            Err(failure) if failure.is_forbidden() => {
                self.rights.refused();
                tracing::debug!(
                    code = failure.code,
                    "the subscription cannot be listed; machines are read one by one"
                );
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Reads the states of machines of the group, with the list if there may be one, else one by one,
    /// `concurrency` at a time. Leaves out machines that no read shows.
    pub(crate) async fn statuses_of(
        &self,
        names: &[String],
        concurrency: usize,
    ) -> CallResult<Statuses> {
        match self.statuses().await? {
            Some(statuses) => Ok(statuses),
            None => self.get_all(names, concurrency).await,
        }
    }

    /// Reads machines one by one, `concurrency` at a time. Leaves out those that are not found.
    pub(crate) async fn get_all(
        &self,
        names: &[String],
        concurrency: usize,
    ) -> CallResult<Statuses> {
        let reads: Vec<_> = names
            .iter()
            .map(|name| async move {
                match self.get(name).await {
                    Ok(machine) => Ok(Some((lowercase(&machine.path), machine))),
                    Err(failure) if failure.is_not_found() => Ok(None),
                    Err(failure) => Err::<_, Failure>(failure),
                }
            })
            .collect();
        let reads = stream::iter(reads).buffer_unordered(concurrency);
        reads
            .try_filter_map(|read| async move { Ok(read) })
            .try_collect()
            .await
    }

    /// Lists the states of the subscription, and keeps those of the group.
    async fn list_statuses(&self) -> CallResult<Statuses> {
        let call = self.machines.list_all(&self.subscription);
        let mut pages = Pages::new(call.status_only("true").into_stream(), self.timeout);
        let ours = lowercase(&machine_path(&self.subscription, &self.group, ""));
        let mut all = Statuses::new();
        while let Some(page) = pages.next_with(machines::status).await? {
            let each = page.into_iter().map(|one| (lowercase(&one.path), one));
            all.extend(each.filter(|(path, _)| path.starts_with(&ours)));
        }
        Ok(all)
    }
}
