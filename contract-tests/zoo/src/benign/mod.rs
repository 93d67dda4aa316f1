//! Benign backends: slow, forgetful, limited or otherwise unusual ones that keep every promise.
//!
//! If one of them fails a clause, the clause requires more than the contract promises.

mod odd;
mod patient;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use fleetwright::{BatchLaunch, OptionalVerb, PlacementField, Tags};
use fleetwright_memory::{MemoryCloudBuilder, Timing};
use futures_util::FutureExt as _;

pub(super) use patient::{End, launch_and_wait, refusal};

use super::{Factory, MemoryHarness, OverrideHarness};
use fleetwright_contract_tests::ExternalActor as _;

/// A backend that is unusual and correct.
pub struct Benign {
    /// What is unusual about it, in a few words.
    pub name: &'static str,
    /// Creates its factory.
    pub make: fn() -> Factory,
}

impl std::fmt::Debug for Benign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Returns every benign backend.
pub const fn all() -> &'static [Benign] {
    ALL
}

/// Returns a factory of memory clouds with other knobs.
fn knobs(turn: fn(MemoryCloudBuilder) -> MemoryCloudBuilder) -> Factory {
    Arc::new(move || Arc::new(MemoryHarness::with(turn)))
}

const ALL: &[Benign] = &[
    Benign {
        name: "reads lag up to the declared window",
        make: || knobs(|cloud| cloud.read_lag(Duration::from_secs(5))),
    },
    Benign {
        name: "transitions take minutes",
        make: || knobs(|cloud| cloud.timing(Timing::all(Duration::from_secs(90)))),
    },
    Benign {
        name: "transitions take no time",
        make: || knobs(|cloud| cloud.timing(Timing::all(Duration::ZERO))),
    },
    Benign {
        name: "calls take seconds",
        make: || knobs(|cloud| cloud.latency(Duration::from_secs(4))),
    },
    Benign {
        name: "pages of one item",
        make: || knobs(|cloud| cloud.page_size(NonZeroUsize::MIN)),
    },
    Benign {
        name: "batches of one item",
        make: || knobs(|cloud| cloud.batch_size(NonZeroUsize::MIN)),
    },
    Benign {
        name: "batch launches in parts",
        make: || knobs(|cloud| cloud.batch_launch(BatchLaunch::Partial)),
    },
    Benign {
        name: "keeps no record of terminated instances",
        make: || knobs(|cloud| cloud.terminated_visible(Duration::ZERO)),
    },
    Benign {
        name: "forgets tokens with their instances",
        make: || knobs(|cloud| cloud.token_after_terminate(Duration::ZERO)),
    },
    Benign {
        name: "reads lag, and neither records nor tokens are kept after a terminate",
        make: || {
            knobs(|cloud| {
                let cloud = cloud.seed(3).read_lag(Duration::from_secs(5));
                cloud
                    .terminated_visible(Duration::ZERO)
                    .token_after_terminate(Duration::ZERO)
            })
        },
    },
    Benign {
        name: "reads lag for longer than terminated instances are visible",
        make: || {
            knobs(|cloud| {
                let cloud = cloud.seed(4).read_lag(Duration::from_secs(5));
                cloud.terminated_visible(Duration::from_secs(3))
            })
        },
    },
    Benign {
        name: "reads lag, pages have two items and transitions are slow",
        make: || {
            knobs(|cloud| {
                let cloud = cloud.seed(5).read_lag(Duration::from_secs(20));
                let cloud = cloud.timing(Timing::all(Duration::from_secs(30)));
                cloud.page_size(NonZeroUsize::MIN.saturating_add(1))
            })
        },
    },
    Benign {
        name: "transitions take no time and terminated instances are forgotten at once",
        make: || {
            knobs(|cloud| {
                let cloud = cloud
                    .timing(Timing::all(Duration::ZERO))
                    .latency(Duration::ZERO);
                cloud.terminated_visible(Duration::ZERO)
            })
        },
    },
    Benign {
        name: "offers no optional verb",
        make: || {
            knobs(|cloud| {
                OptionalVerb::ALL
                    .into_iter()
                    .fold(cloud, MemoryCloudBuilder::without_verb)
            })
        },
    },
    Benign {
        name: "offers no placement",
        make: || {
            knobs(|cloud| {
                let fields = PlacementField::ALL.into_iter();
                fields.fold(cloud, MemoryCloudBuilder::without_placement)
            })
        },
    },
    Benign {
        name: "lists in another order each time",
        make: OverrideHarness::factory::<odd::ShufflesLists>,
    },
    Benign {
        name: "throttles the first of every two calls",
        make: OverrideHarness::factory::<odd::Throttles>,
    },
    Benign {
        name: "gives no public addresses",
        make: || knobs(MemoryCloudBuilder::public_addresses_on_request),
    },
    Benign {
        name: "reports no reasons and no native states of running instances",
        make: OverrideHarness::factory::<odd::NoReasons>,
    },
    Benign {
        name: "a start waits until a stop is complete",
        make: OverrideHarness::factory::<odd::WaitsForStop>,
    },
    Benign {
        name: "a launch waits for its outcome",
        make: OverrideHarness::factory::<patient::WaitsForOutcome>,
    },
    Benign {
        name: "a stream returns each item after a pause",
        make: OverrideHarness::factory::<odd::SlowStream>,
    },
    Benign {
        name: "resends a launch with a token whose response was lost",
        make: OverrideHarness::factory::<odd::ResendsWithToken>,
    },
    Benign {
        name: "refuses tags with symbols and in other alphabets",
        make: OverrideHarness::factory::<odd::PlainTags>,
    },
    Benign {
        name: "images can be launched and deleted only some time after the snapshot",
        make: OverrideHarness::factory::<odd::SlowImages>,
    },
    Benign {
        name: "describes terminated instances but never lists them",
        make: OverrideHarness::factory::<odd::NeverListsTerminated>,
    },
    Benign {
        name: "refuses to stop an instance that does not run yet",
        make: OverrideHarness::factory::<odd::StopsOnlyRunning>,
    },
    Benign {
        name: "decides about optional verbs by stale reads",
        make: OverrideHarness::factory::<odd::DecidesByStaleReads>,
    },
    Benign {
        name: "refuses concurrent launches with one token as a conflict",
        make: OverrideHarness::factory::<odd::OneLaunchPerToken>,
    },
    Benign {
        name: "the account has instances of others",
        make: || Arc::new(|| Arc::new(with_foreign_instances())),
    },
];

/// Returns an account in which others have instances with similar tags.
fn with_foreign_instances() -> MemoryHarness {
    let harness = MemoryHarness::new();
    for scope in ["x", "X", "launched by the contract kit"] {
        let tags = Tags::new().with(fleetwright_contract_tests::SCOPE_TAG, scope);
        // The external actor acts at once, so the future is ready at its first poll.
        let _ = harness.launch(tags.unwrap_or_default()).now_or_never();
    }
    harness
}
