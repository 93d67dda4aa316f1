//! Backends that break the family list.

mod combined;
mod filters;
mod interrupted;
mod pages;

use async_trait::async_trait;
use fleetwright::{BoxStream, ErrorKind, InstanceFilter, InstanceInfo, ListItem, Result};
use futures_util::{StreamExt as _, stream};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

use self::{
    combined::{
        IgnoresTagsBesideStates, ListsNoTerminatingAlone, ListsStoppingAsPending, SharesLists,
    },
    filters::{
        FailsForPatterns, FoldsCase, FoldsCaseOfKeys, HidesLaunchTimes, HidesTerminated,
        IgnoresUnknownKeys, ListsStoppedOnlyAlone, MatchesPatterns, MatchesPrefixes,
        MatchesUntagged, OmitsStopped, OrsTags, ReturnsAllForNone, UsesFourTags, UsesLastState,
        UsesTwoStates,
    },
    interrupted::{
        ContinuesAfterErrors, EndsAtGaps, EndsWhereForbidden, EndsWhereMalformed, FailsForever,
        HidesGapsWithoutMatch, RepeatsGaps,
    },
    pages::{
        DoublesAtTheBoundary, EndsAtAnEmptyPage, HidesGaps, LosesAtBoundary, PagesByOffset,
        ReadsPages, RepeatsTheLast, StreamsAllStates, StreamsGapsOnly, StreamsOnePage,
        StreamsWithoutGaps, SwallowsLaterErrors, UnnamedGaps, pages_of_three, pages_of_twenty,
    },
};

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a filter by more than four tags selects nothing",
        violates: "LIST-01",
        make: OverrideHarness::factory::<Lists<UsesFourTags>>,
    },
    Mutant {
        name: "a filter by an unknown key is ignored",
        violates: "LIST-02",
        make: OverrideHarness::factory::<Lists<IgnoresUnknownKeys>>,
    },
    Mutant {
        name: "a filter that selects nothing returns everything",
        violates: "LIST-02",
        make: OverrideHarness::factory::<Lists<ReturnsAllForNone>>,
    },
    Mutant {
        name: "a list returns the first page only",
        violates: "LIST-03",
        make: || OverrideHarness::factory_on::<Lists<ReadsPages<1>>>(pages_of_twenty),
    },
    Mutant {
        name: "a list returns at most three pages",
        violates: "LIST-03",
        make: || OverrideHarness::factory_on::<Lists<ReadsPages<3>>>(pages_of_twenty),
    },
    Mutant {
        name: "an item at a page boundary is lost",
        violates: "LIST-03",
        make: || OverrideHarness::factory_on::<Lists<LosesAtBoundary>>(pages_of_twenty),
    },
    Mutant {
        name: "an item at a page boundary is returned twice",
        violates: "LIST-03",
        make: || OverrideHarness::factory_on::<Lists<DoublesAtTheBoundary>>(pages_of_twenty),
    },
    Mutant {
        name: "an empty page ends the list",
        violates: "LIST-03",
        make: || OverrideHarness::factory_on::<Lists<EndsAtAnEmptyPage>>(pages_of_twenty),
    },
    Mutant {
        name: "the tags of a filter are combined with OR",
        violates: "LIST-04",
        make: OverrideHarness::factory::<Lists<OrsTags>>,
    },
    Mutant {
        name: "tag values are compared by prefix",
        violates: "LIST-05",
        make: OverrideHarness::factory::<Lists<MatchesPrefixes>>,
    },
    Mutant {
        name: "tag values are compared without case",
        violates: "LIST-05",
        make: OverrideHarness::factory::<Lists<FoldsCase>>,
    },
    Mutant {
        name: "tag keys are compared without case",
        violates: "LIST-05",
        make: OverrideHarness::factory::<Lists<FoldsCaseOfKeys>>,
    },
    Mutant {
        name: "a filter by a value with a pattern character fails as unavailable",
        violates: "LIST-05",
        make: OverrideHarness::factory::<FailsForPatterns>,
    },
    Mutant {
        name: "tag values are compared as patterns",
        violates: "LIST-05",
        make: OverrideHarness::factory::<Lists<MatchesPatterns>>,
    },
    Mutant {
        name: "only the last of a filter's states is used",
        violates: "LIST-06",
        make: OverrideHarness::factory::<Lists<UsesLastState>>,
    },
    Mutant {
        name: "only two of a filter's states are used",
        violates: "LIST-06",
        make: OverrideHarness::factory::<Lists<UsesTwoStates>>,
    },
    Mutant {
        name: "terminated instances are never listed",
        violates: "LIST-07",
        make: OverrideHarness::factory::<Lists<HidesTerminated>>,
    },
    Mutant {
        name: "stopped instances are not listed",
        violates: "LIST-08",
        make: OverrideHarness::factory::<Lists<OmitsStopped>>,
    },
    Mutant {
        name: "stopped instances are not listed if there are running ones",
        violates: "LIST-08",
        make: OverrideHarness::factory::<Lists<ListsStoppedOnlyAlone>>,
    },
    Mutant {
        name: "an error on the second page returns a part of the list as success",
        violates: "LIST-09",
        make: || OverrideHarness::factory_on::<SwallowsLaterErrors>(pages_of_three),
    },
    Mutant {
        name: "an unreachable part is left out silently",
        violates: "LIST-10",
        make: OverrideHarness::factory::<HidesGaps>,
    },
    Mutant {
        name: "an incomplete list does not name the missing part",
        violates: "LIST-10",
        make: OverrideHarness::factory::<UnnamedGaps>,
    },
    Mutant {
        name: "the stream has no gap for an unreachable part",
        violates: "LIST-10",
        make: OverrideHarness::factory::<StreamsWithoutGaps>,
    },
    Mutant {
        name: "the stream ends at an unreachable part",
        violates: "LIST-10",
        make: OverrideHarness::factory::<StreamsGapsOnly>,
    },
    Mutant {
        name: "untagged instances match every filter",
        violates: "LIST-11",
        make: OverrideHarness::factory::<Lists<MatchesUntagged>>,
    },
    Mutant {
        name: "a list has no launch times",
        violates: "LIST-12",
        make: OverrideHarness::factory::<Lists<HidesLaunchTimes>>,
    },
    Mutant {
        name: "the stream ignores the filter's states",
        violates: "LIST-13",
        make: OverrideHarness::factory::<StreamsAllStates>,
    },
    Mutant {
        name: "the stream ends after the first page",
        violates: "LIST-13",
        make: || OverrideHarness::factory_on::<StreamsOnePage>(pages_of_three),
    },
    Mutant {
        name: "pages are requested by offset",
        violates: "LIST-14",
        make: || OverrideHarness::factory_on::<Lists<PagesByOffset>>(pages_of_three),
    },
    Mutant {
        name: "a list by state returns its last item twice",
        violates: "LIST-14",
        make: OverrideHarness::factory::<Lists<RepeatsTheLast>>,
    },
    Mutant {
        name: "a tag of a filter with states is ignored",
        violates: "LIST-15",
        make: OverrideHarness::factory::<Lists<IgnoresTagsBesideStates>>,
    },
    Mutant {
        name: "a list of pending instances has stopping ones",
        violates: "LIST-15",
        make: OverrideHarness::factory::<Lists<ListsStoppingAsPending>>,
    },
    Mutant {
        name: "a list of terminating instances is empty",
        violates: "LIST-15",
        make: OverrideHarness::factory::<Lists<ListsNoTerminatingAlone>>,
    },
    Mutant {
        name: "the stream repeats a gap after several pages",
        violates: "LIST-16",
        make: || OverrideHarness::factory_on::<RepeatsGaps>(pages_of_three),
    },
    Mutant {
        name: "the stream returns one page beside a gap",
        violates: "LIST-16",
        make: || OverrideHarness::factory_on::<EndsAtGaps>(pages_of_three),
    },
    Mutant {
        name: "a gap is hidden if nothing in it seems to match",
        violates: "LIST-16",
        make: || OverrideHarness::factory_on::<HidesGapsWithoutMatch>(pages_of_three),
    },
    Mutant {
        name: "the stream begins again after an error",
        violates: "LIST-17",
        make: || OverrideHarness::factory_on::<ContinuesAfterErrors>(pages_of_three),
    },
    Mutant {
        name: "the stream returns an error forever",
        violates: "LIST-17",
        make: || OverrideHarness::factory_on::<FailsForever>(pages_of_three),
    },
    Mutant {
        name: "concurrent lists get the result of the first one",
        violates: "LIST-18",
        make: OverrideHarness::factory::<Lists<SharesLists>>,
    },
    Mutant {
        name: "missing permissions for a later page end the list",
        violates: "LIST-19",
        make: || OverrideHarness::factory_on::<EndsWhereForbidden>(pages_of_three),
    },
    Mutant {
        name: "a later page that cannot be parsed ends the list",
        violates: "LIST-19",
        make: || OverrideHarness::factory_on::<EndsWhereMalformed>(pages_of_three),
    },
];

/// A broken list. [`Lists`] makes a backend of it.
#[async_trait]
pub(super) trait Relist: Default + Send + Sync {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>>;
}

/// Breaks list and stream in the same way, so that both still agree.
#[derive(Default)]
pub(super) struct Lists<T>(T);

#[async_trait]
impl<T: Relist> Override for Lists<T> {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        self.0.relist(at, filter).await
    }
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let result = stream::once(self.0.relist(at, filter));
        let items = move |result: Result<Vec<InstanceInfo>>| match result {
            Ok(list) => stream::iter(list)
                .map(|info| Ok(ListItem::from(info)))
                .boxed(),
            Err(error) if error.kind() == ErrorKind::Incomplete => {
                at.inner.stream_instances(filter)
            }
            Err(error) => stream::iter([Err(error)]).boxed(),
        };
        result.flat_map(items).boxed()
    }
}
