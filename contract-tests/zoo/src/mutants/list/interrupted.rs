//! Lists and streams that are wrong beside a gap, or after an error.

use async_trait::async_trait;
use fleetwright::{
    BoxStream, Call, ErrorKind, InstanceFilter, InstanceInfo, ListItem, Operation, Result,
};
use fleetwright_provider_support::collect_complete;
use futures_util::{StreamExt as _, stream};

use super::pages::page_size;
use crate::{CallContext, Override};

/// Changes the items of a stream after they were read.
fn changed<'a>(
    items: BoxStream<'a, Result<ListItem>>,
    change: impl FnOnce(&mut Vec<Result<ListItem>>) + Send + 'a,
) -> BoxStream<'a, Result<ListItem>> {
    let read = async move {
        let mut items = items.collect::<Vec<_>>().await;
        change(&mut items);
        stream::iter(items)
    };
    stream::once(read).flatten().boxed()
}

/// Returns the list that a stream makes.
async fn collect(items: BoxStream<'_, Result<ListItem>>) -> Result<Vec<InstanceInfo>> {
    let call = Call::new("memory", Operation::ListInstances);
    let listed = collect_complete(&call, items).await;
    listed.map_err(|error| error.with_operation(Operation::ListInstances))
}

fn is_gap(item: &Result<ListItem>) -> bool {
    matches!(item, Ok(ListItem::Gap { .. }))
}

/// Reports the gap with every page.
#[derive(Default)]
pub(super) struct RepeatsGaps;

impl Override for RepeatsGaps {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        changed(at.inner.stream_instances(filter), move |items| {
            let gap = items.iter().find(|item| is_gap(item)).cloned();
            if items.len() > page_size(at) {
                items.extend(gap);
            }
        })
    }
}

/// Reads one page of the other parts.
#[derive(Default)]
pub(super) struct EndsAtGaps;

impl Override for EndsAtGaps {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        changed(at.inner.stream_instances(filter), move |items| {
            let (gaps, mut instances): (Vec<_>, Vec<_>) = items.drain(..).partition(is_gap);
            if !gaps.is_empty() {
                instances.truncate(page_size(at));
            }
            items.extend(gaps);
            items.extend(instances);
        })
    }
}

/// Takes a part in which it found nothing that matches for empty.
#[derive(Default)]
pub(super) struct HidesGapsWithoutMatch;

#[async_trait]
impl Override for HidesGapsWithoutMatch {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        collect(self.stream_instances(at, filter)).await
    }
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        changed(at.inner.stream_instances(filter), |items| {
            if filter.tags.get("kit-mark").is_some() {
                items.retain(|item| !is_gap(item));
            }
        })
    }
}

/// Begins again after a page that failed.
#[derive(Default)]
pub(super) struct ContinuesAfterErrors;

impl Override for ContinuesAfterErrors {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        changed(at.inner.stream_instances(filter), |items| {
            if items.last().is_some_and(Result::is_err) {
                let again: Vec<_> = items.iter().filter(|item| item.is_ok()).cloned().collect();
                items.extend(again);
            }
        })
    }
}

/// Asks for the same page again and again, and returns each error.
#[derive(Default)]
pub(super) struct FailsForever;

impl Override for FailsForever {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let items = at.inner.stream_instances(filter);
        let repeated = |item: Result<ListItem>| match item {
            Ok(item) => stream::iter([Ok(item)]).boxed(),
            Err(error) => stream::repeat_with(move || Err(error.clone())).boxed(),
        };
        items.flat_map(repeated).boxed()
    }
}

/// Takes an error of a later page for the end.
async fn until_refused(
    at: CallContext<'_>,
    filter: &InstanceFilter,
    kind: ErrorKind,
) -> Result<Vec<InstanceInfo>> {
    let items = changed(at.inner.stream_instances(filter), |items| {
        if items.len() > 1 {
            items.retain(|item| item.as_ref().err().is_none_or(|error| error.kind() != kind));
        }
    });
    collect(items).await
}

#[derive(Default)]
pub(super) struct EndsWhereForbidden;

#[async_trait]
impl Override for EndsWhereForbidden {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        until_refused(at, filter, ErrorKind::Forbidden).await
    }
}

#[derive(Default)]
pub(super) struct EndsWhereMalformed;

#[async_trait]
impl Override for EndsWhereMalformed {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        until_refused(at, filter, ErrorKind::Unexpected).await
    }
}
