//! Lists and streams that are wrong at the boundaries of pages.

use std::{future::ready, num::NonZeroUsize};

use async_trait::async_trait;
use fleetwright::{
    BoxStream, Call, ErrorKind, InstanceFilter, InstanceInfo, ListItem, Operation, Result, Tags,
};
use fleetwright_provider_support::collect_complete;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::Relist;
use crate::{CallContext, MemoryHarness, Override};

pub(super) fn pages_of_twenty() -> MemoryHarness {
    MemoryHarness::with(|cloud| cloud.page_size(NonZeroUsize::MIN.saturating_add(19)))
}

pub(super) fn pages_of_three() -> MemoryHarness {
    MemoryHarness::with(|cloud| cloud.page_size(NonZeroUsize::MIN.saturating_add(2)))
}

pub(super) fn page_size(at: CallContext<'_>) -> usize {
    at.inner.capabilities().page_size.get()
}

#[derive(Default)]
pub(super) struct ReadsPages<const PAGES: usize>;

#[async_trait]
impl<const PAGES: usize> Relist for ReadsPages<PAGES> {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        list.truncate(page_size(at) * PAGES);
        Ok(list)
    }
}

/// Treats the first item of a page as a repetition of the last item before it.
#[derive(Default)]
pub(super) struct LosesAtBoundary;

#[async_trait]
impl Relist for LosesAtBoundary {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        if list.len() > page_size(at) {
            list.remove(page_size(at));
        }
        Ok(list)
    }
}

/// Begins each page with the last item of the page before.
#[derive(Default)]
pub(super) struct DoublesAtTheBoundary;

#[async_trait]
impl Relist for DoublesAtTheBoundary {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        if list.len() > page_size(at) {
            list.insert(page_size(at), list[page_size(at) - 1].clone());
        }
        Ok(list)
    }
}

/// Filters each page itself and ends the list at a page without a match.
#[derive(Default)]
pub(super) struct RepeatsTheLast;

#[async_trait]
impl Relist for RepeatsTheLast {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        let last = list.last().cloned();
        list.extend(last.filter(|_| !filter.states.is_empty()));
        Ok(list)
    }
}

#[derive(Default)]
pub(super) struct EndsAtAnEmptyPage;

#[async_trait]
impl Relist for EndsAtAnEmptyPage {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut everything = filter.clone();
        everything.tags = Tags::new();
        let all = at.inner.list_instances(&everything).await?;
        let pages = all.chunks(page_size(at)).map(|page| {
            let fits = page.iter().filter(|info| filter.matches(info));
            fits.cloned().collect::<Vec<_>>()
        });
        Ok(pages
            .take_while(|page| !page.is_empty())
            .flatten()
            .collect())
    }
}

/// Requests the next page by the number of items so far instead of by the last item.
#[derive(Default)]
pub(super) struct PagesByOffset;

#[async_trait]
impl Relist for PagesByOffset {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut items_so_far = Vec::new();
        loop {
            let now = at.inner.list_instances(filter).await?;
            let page = now.into_iter().skip(items_so_far.len()).take(page_size(at));
            let before = items_so_far.len();
            items_so_far.extend(page);
            if items_so_far.len() == before {
                return Ok(items_so_far);
            }
        }
    }
}

/// Returns the items before an error. The error is returned only if there are none.
fn until_error<'a>(items: BoxStream<'a, Result<ListItem>>) -> BoxStream<'a, Result<ListItem>> {
    let numbered = items.enumerate();
    let kept = numbered.take_while(|(number, item)| ready(*number == 0 || item.is_ok()));
    kept.map(|(_, item)| item).boxed()
}

#[derive(Default)]
pub(super) struct SwallowsLaterErrors;

#[async_trait]
impl Override for SwallowsLaterErrors {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let call = Call::new("memory", Operation::ListInstances);
        let items = at.inner.stream_instances(filter);
        collect_complete(&call, until_error(items)).await
    }
}

fn without_gaps<'a>(items: BoxStream<'a, Result<ListItem>>) -> BoxStream<'a, Result<ListItem>> {
    let instances = items.try_filter(|item| ready(matches!(item, ListItem::Instance(_))));
    instances.boxed()
}

#[derive(Default)]
pub(super) struct HidesGaps;

#[async_trait]
impl Override for HidesGaps {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let call = Call::new("memory", Operation::ListInstances);
        let items = at.inner.stream_instances(filter);
        collect_complete(&call, without_gaps(items)).await
    }
}

#[derive(Default)]
pub(super) struct UnnamedGaps;

#[async_trait]
impl Override for UnnamedGaps {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let call = Call::new("memory", Operation::ListInstances);
        let result = at.inner.list_instances(filter).await;
        result.map_err(|error| {
            if error.kind() == ErrorKind::Incomplete {
                return call.incomplete([]);
            }
            error
        })
    }
}

#[derive(Default)]
pub(super) struct StreamsWithoutGaps;

impl Override for StreamsWithoutGaps {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        without_gaps(at.inner.stream_instances(filter))
    }
}

#[derive(Default)]
pub(super) struct StreamsGapsOnly;

#[async_trait]
impl Override for StreamsGapsOnly {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let all = at.inner.stream_instances(filter).collect::<Vec<_>>();
        let shown = |mut items: Vec<Result<ListItem>>| {
            let is_gap = |item: &Result<ListItem>| matches!(item, Ok(ListItem::Gap { .. }));
            if items.iter().any(is_gap) {
                items.retain(is_gap);
            }
            stream::iter(items)
        };
        stream::once(all).flat_map(shown).boxed()
    }
}

#[derive(Default)]
pub(super) struct StreamsAllStates;

impl Override for StreamsAllStates {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        stream::once(in_all_states(at, filter))
            .flat_map(stream::iter)
            .boxed()
    }
}

/// Lists by the filter's tags and ignores its states.
async fn in_all_states(at: CallContext<'_>, filter: &InstanceFilter) -> Vec<Result<ListItem>> {
    let mut by_tags = filter.clone();
    by_tags.states.clear();
    at.inner.stream_instances(&by_tags).collect().await
}

#[derive(Default)]
pub(super) struct StreamsOnePage;

impl Override for StreamsOnePage {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let page = page_size(at);
        at.inner.stream_instances(filter).take(page).boxed()
    }
}
