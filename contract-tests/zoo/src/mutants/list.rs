//! Backends that break the family list.

mod filters;
mod pages;

use async_trait::async_trait;
use fleetwright::{BoxStream, ErrorKind, InstanceFilter, InstanceInfo, ListItem, Result};
use futures_util::{StreamExt as _, stream};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

use self::{
    filters::{
        AllForNothing, CountsTheLastState, CountsTwoStates, FoldsCase, FoldsCaseOfKeys,
        HidesLaunchTimes, HidesTerminated, IgnoresUnknownKeys, MatchesPatterns, MatchesPrefixes,
        MatchesUntagged, OmitsStopped, OrsTags, ShowsOnePowerState, TakesFourTags,
        TripsOverPatterns,
    },
    pages::{
        DoublesAtTheBoundary, DoublesTheLast, EndsAtAnEmptyPage, HidesGaps, LosesAtTheBoundary,
        PagesByOffset, ReadsPages, StreamsAllStates, StreamsGapsOnly, StreamsOnePage,
        StreamsWithoutGaps, SwallowsLaterErrors, UnnamedGaps, pages_of_three, pages_of_twenty,
    },
};

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a filter by over four tags finds nothing",
        violates: "LIST-01",
        make: OverrideHarness::factory::<Lists<TakesFourTags>>,
    },
    Mutant {
        name: "a filter by a key that nobody has is ignored",
        violates: "LIST-02",
        make: OverrideHarness::factory::<Lists<IgnoresUnknownKeys>>,
    },
    Mutant {
        name: "a filter that finds nothing shows everything",
        violates: "LIST-02",
        make: OverrideHarness::factory::<Lists<AllForNothing>>,
    },
    Mutant {
        name: "list returns page one only",
        violates: "LIST-03",
        make: || OverrideHarness::factory_on::<Lists<ReadsPages<1>>>(pages_of_twenty),
    },
    Mutant {
        name: "list returns three pages at most",
        violates: "LIST-03",
        make: || OverrideHarness::factory_on::<Lists<ReadsPages<3>>>(pages_of_twenty),
    },
    Mutant {
        name: "item lost at a page boundary",
        violates: "LIST-03",
        make: || OverrideHarness::factory_on::<Lists<LosesAtTheBoundary>>(pages_of_twenty),
    },
    Mutant {
        name: "item doubled at a boundary",
        violates: "LIST-03",
        make: || OverrideHarness::factory_on::<Lists<DoublesAtTheBoundary>>(pages_of_twenty),
    },
    Mutant {
        name: "empty middle page ends the list",
        violates: "LIST-03",
        make: || OverrideHarness::factory_on::<Lists<EndsAtAnEmptyPage>>(pages_of_twenty),
    },
    Mutant {
        name: "filters ORed",
        violates: "LIST-04",
        make: OverrideHarness::factory::<Lists<OrsTags>>,
    },
    Mutant {
        name: "filter by prefix",
        violates: "LIST-05",
        make: OverrideHarness::factory::<Lists<MatchesPrefixes>>,
    },
    Mutant {
        name: "filter case-insensitive",
        violates: "LIST-05",
        make: OverrideHarness::factory::<Lists<FoldsCase>>,
    },
    Mutant {
        name: "keys of a filter case-insensitive",
        violates: "LIST-05",
        make: OverrideHarness::factory::<Lists<FoldsCaseOfKeys>>,
    },
    Mutant {
        name: "a tag that looks like a pattern is an outage",
        violates: "LIST-05",
        make: OverrideHarness::factory::<TripsOverPatterns>,
    },
    Mutant {
        name: "filter by pattern",
        violates: "LIST-05",
        make: OverrideHarness::factory::<Lists<MatchesPatterns>>,
    },
    Mutant {
        name: "only the last of a filter's states counts",
        violates: "LIST-06",
        make: OverrideHarness::factory::<Lists<CountsTheLastState>>,
    },
    Mutant {
        name: "a filter takes two states at most",
        violates: "LIST-06",
        make: OverrideHarness::factory::<Lists<CountsTwoStates>>,
    },
    Mutant {
        name: "terminated ones are never listed",
        violates: "LIST-07",
        make: OverrideHarness::factory::<Lists<HidesTerminated>>,
    },
    Mutant {
        name: "stopped omitted from list",
        violates: "LIST-08",
        make: OverrideHarness::factory::<Lists<OmitsStopped>>,
    },
    Mutant {
        name: "stopped omitted beside running ones",
        violates: "LIST-08",
        make: OverrideHarness::factory::<Lists<ShowsOnePowerState>>,
    },
    Mutant {
        name: "error on page two gives a partial Ok",
        violates: "LIST-09",
        make: || OverrideHarness::factory_on::<SwallowsLaterErrors>(pages_of_three),
    },
    Mutant {
        name: "an unreachable part is left out silently",
        violates: "LIST-10",
        make: OverrideHarness::factory::<HidesGaps>,
    },
    Mutant {
        name: "an incomplete list names nothing",
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
        name: "no launch time in the list",
        violates: "LIST-12",
        make: OverrideHarness::factory::<Lists<HidesLaunchTimes>>,
    },
    Mutant {
        name: "the stream ignores the filter's states",
        violates: "LIST-13",
        make: OverrideHarness::factory::<StreamsAllStates>,
    },
    Mutant {
        name: "the stream ends after a page",
        violates: "LIST-13",
        make: || OverrideHarness::factory_on::<StreamsOnePage>(pages_of_three),
    },
    Mutant {
        name: "pages by offset",
        violates: "LIST-14",
        make: || OverrideHarness::factory_on::<Lists<PagesByOffset>>(pages_of_three),
    },
    Mutant {
        name: "a list by state shows its last twice",
        violates: "LIST-14",
        make: OverrideHarness::factory::<Lists<DoublesTheLast>>,
    },
];

/// A list that is broken; [`Lists`] makes a overrides of it.
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
        let answer = stream::once(self.0.relist(at, filter));
        let items = move |answer: Result<Vec<InstanceInfo>>| match answer {
            Ok(list) => stream::iter(list)
                .map(|info| Ok(ListItem::from(info)))
                .boxed(),
            Err(error) if error.kind() == ErrorKind::Incomplete => {
                at.inner.stream_instances(filter)
            }
            Err(error) => stream::iter([Err(error)]).boxed(),
        };
        answer.flat_map(items).boxed()
    }
}
