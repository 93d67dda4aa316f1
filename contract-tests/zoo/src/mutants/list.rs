//! Backends that break the family list.

mod filters;
mod pages;

use async_trait::async_trait;
use fleetwright::{BoxStream, ErrorKind, InstanceFilter, InstanceInfo, ListItem, Result};
use futures_util::{StreamExt as _, stream};

use super::{Mutant, Twist};
use crate::{At, TwistedHarness};

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
        dies_of: "LIST-01",
        make: TwistedHarness::factory::<Lists<TakesFourTags>>,
    },
    Mutant {
        name: "a filter by a key that nobody has is ignored",
        dies_of: "LIST-02",
        make: TwistedHarness::factory::<Lists<IgnoresUnknownKeys>>,
    },
    Mutant {
        name: "a filter that finds nothing shows everything",
        dies_of: "LIST-02",
        make: TwistedHarness::factory::<Lists<AllForNothing>>,
    },
    Mutant {
        name: "list returns page one only",
        dies_of: "LIST-03",
        make: || TwistedHarness::factory_on::<Lists<ReadsPages<1>>>(pages_of_twenty),
    },
    Mutant {
        name: "list returns three pages at most",
        dies_of: "LIST-03",
        make: || TwistedHarness::factory_on::<Lists<ReadsPages<3>>>(pages_of_twenty),
    },
    Mutant {
        name: "item lost at a page boundary",
        dies_of: "LIST-03",
        make: || TwistedHarness::factory_on::<Lists<LosesAtTheBoundary>>(pages_of_twenty),
    },
    Mutant {
        name: "item doubled at a boundary",
        dies_of: "LIST-03",
        make: || TwistedHarness::factory_on::<Lists<DoublesAtTheBoundary>>(pages_of_twenty),
    },
    Mutant {
        name: "empty middle page ends the list",
        dies_of: "LIST-03",
        make: || TwistedHarness::factory_on::<Lists<EndsAtAnEmptyPage>>(pages_of_twenty),
    },
    Mutant {
        name: "filters ORed",
        dies_of: "LIST-04",
        make: TwistedHarness::factory::<Lists<OrsTags>>,
    },
    Mutant {
        name: "filter by prefix",
        dies_of: "LIST-05",
        make: TwistedHarness::factory::<Lists<MatchesPrefixes>>,
    },
    Mutant {
        name: "filter case-insensitive",
        dies_of: "LIST-05",
        make: TwistedHarness::factory::<Lists<FoldsCase>>,
    },
    Mutant {
        name: "keys of a filter case-insensitive",
        dies_of: "LIST-05",
        make: TwistedHarness::factory::<Lists<FoldsCaseOfKeys>>,
    },
    Mutant {
        name: "a tag that looks like a pattern is an outage",
        dies_of: "LIST-05",
        make: TwistedHarness::factory::<TripsOverPatterns>,
    },
    Mutant {
        name: "filter by pattern",
        dies_of: "LIST-05",
        make: TwistedHarness::factory::<Lists<MatchesPatterns>>,
    },
    Mutant {
        name: "only the last of a filter's states counts",
        dies_of: "LIST-06",
        make: TwistedHarness::factory::<Lists<CountsTheLastState>>,
    },
    Mutant {
        name: "a filter takes two states at most",
        dies_of: "LIST-06",
        make: TwistedHarness::factory::<Lists<CountsTwoStates>>,
    },
    Mutant {
        name: "terminated ones are never listed",
        dies_of: "LIST-07",
        make: TwistedHarness::factory::<Lists<HidesTerminated>>,
    },
    Mutant {
        name: "stopped omitted from list",
        dies_of: "LIST-08",
        make: TwistedHarness::factory::<Lists<OmitsStopped>>,
    },
    Mutant {
        name: "stopped omitted beside running ones",
        dies_of: "LIST-08",
        make: TwistedHarness::factory::<Lists<ShowsOnePowerState>>,
    },
    Mutant {
        name: "error on page two gives a partial Ok",
        dies_of: "LIST-09",
        make: || TwistedHarness::factory_on::<SwallowsLaterErrors>(pages_of_three),
    },
    Mutant {
        name: "an unreachable part is left out silently",
        dies_of: "LIST-10",
        make: TwistedHarness::factory::<HidesGaps>,
    },
    Mutant {
        name: "an incomplete list names nothing",
        dies_of: "LIST-10",
        make: TwistedHarness::factory::<UnnamedGaps>,
    },
    Mutant {
        name: "the stream has no gap for an unreachable part",
        dies_of: "LIST-10",
        make: TwistedHarness::factory::<StreamsWithoutGaps>,
    },
    Mutant {
        name: "the stream ends at an unreachable part",
        dies_of: "LIST-10",
        make: TwistedHarness::factory::<StreamsGapsOnly>,
    },
    Mutant {
        name: "untagged instances match every filter",
        dies_of: "LIST-11",
        make: TwistedHarness::factory::<Lists<MatchesUntagged>>,
    },
    Mutant {
        name: "no launch time in the list",
        dies_of: "LIST-12",
        make: TwistedHarness::factory::<Lists<HidesLaunchTimes>>,
    },
    Mutant {
        name: "the stream ignores the filter's states",
        dies_of: "LIST-13",
        make: TwistedHarness::factory::<StreamsAllStates>,
    },
    Mutant {
        name: "the stream ends after a page",
        dies_of: "LIST-13",
        make: || TwistedHarness::factory_on::<StreamsOnePage>(pages_of_three),
    },
    Mutant {
        name: "pages by offset",
        dies_of: "LIST-14",
        make: || TwistedHarness::factory_on::<Lists<PagesByOffset>>(pages_of_three),
    },
    Mutant {
        name: "a list by state shows its last twice",
        dies_of: "LIST-14",
        make: TwistedHarness::factory::<Lists<DoublesTheLast>>,
    },
];

/// A list that is broken; [`Lists`] makes a twist of it.
#[async_trait]
pub(super) trait Relist: Default + Send + Sync {
    async fn relist(&self, at: At<'_>, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>>;
}

/// Breaks list and stream in the same way, so that both still agree.
#[derive(Default)]
pub(super) struct Lists<T>(T);

#[async_trait]
impl<T: Relist> Twist for Lists<T> {
    async fn list_instances(
        &self,
        at: At<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        self.0.relist(at, filter).await
    }
    fn stream_instances<'a>(
        &'a self,
        at: At<'a>,
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
