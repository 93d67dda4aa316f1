//! Benign backends: slow, forgetful, limited or otherwise unusual ones that keep every promise.
//!
//! If one of them fails a clause, the clause demands more than the contract says.

mod odd;
mod patient;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use fleetwright::{BatchLaunch, OptionalVerb, PlacementField, Tags};
use fleetwright_memory::{MemoryCloudBuilder, Timing};
use futures_util::FutureExt as _;

pub(super) use patient::{End, awaited, refusal};

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
        name: "keeps no record of what is terminated",
        make: || knobs(|cloud| cloud.terminated_visible(Duration::ZERO)),
    },
    Benign {
        name: "forgets tokens with their instances",
        make: || knobs(|cloud| cloud.token_after_terminate(Duration::ZERO)),
    },
    Benign {
        name: "reads lag and nothing is remembered",
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
        name: "reads lag for longer than what is terminated is remembered",
        make: || {
            knobs(|cloud| {
                let cloud = cloud.seed(4).read_lag(Duration::from_secs(5));
                cloud.terminated_visible(Duration::from_secs(3))
            })
        },
    },
    Benign {
        name: "reads lag over pages of two and slow transitions",
        make: || {
            knobs(|cloud| {
                let cloud = cloud.seed(5).read_lag(Duration::from_secs(20));
                let cloud = cloud.timing(Timing::all(Duration::from_secs(30)));
                cloud.page_size(NonZeroUsize::MIN.saturating_add(1))
            })
        },
    },
    Benign {
        name: "everything happens at once and is forgotten at once",
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
        make: OverrideHarness::factory::<odd::Shuffles>,
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
        name: "tells no reasons and no native states of what runs",
        make: OverrideHarness::factory::<odd::Silent>,
    },
    Benign {
        name: "waits out a stop before it starts",
        make: OverrideHarness::factory::<odd::PatientStart>,
    },
    Benign {
        name: "waits for the end of a launch",
        make: OverrideHarness::factory::<patient::PatientLaunch>,
    },
    Benign {
        name: "answers streams in drops",
        make: OverrideHarness::factory::<odd::Drops>,
    },
    Benign {
        name: "repeats a launch whose answer was lost",
        make: OverrideHarness::factory::<odd::Repeats>,
    },
    Benign {
        name: "refuses tags with symbols and in other alphabets",
        make: OverrideHarness::factory::<odd::PlainTags>,
    },
    Benign {
        name: "takes a while to make an image",
        make: OverrideHarness::factory::<odd::SlowImages>,
    },
    Benign {
        name: "describes what is terminated and lists it to nobody",
        make: OverrideHarness::factory::<odd::Discreet>,
    },
    Benign {
        name: "stops only what runs",
        make: OverrideHarness::factory::<odd::StopsWhatRuns>,
    },
    Benign {
        name: "judges optional verbs by reads that lag",
        make: OverrideHarness::factory::<odd::LateJudge>,
    },
    Benign {
        name: "one launch at a time with one token",
        make: OverrideHarness::factory::<odd::OneByOne>,
    },
    Benign {
        name: "full of foreign instances",
        make: || Arc::new(|| Arc::new(crowded())),
    },
];

/// An account that others use as well, with tags that look like ours.
fn crowded() -> MemoryHarness {
    let harness = MemoryHarness::new();
    for scope in ["x", "X", "launched by the contract kit"] {
        let tags = Tags::new().with(fleetwright_contract_tests::SCOPE_TAG, scope);
        // The operator acts at once, so the future is ready at its first poll.
        let _ = harness.launch(tags.unwrap_or_default()).now_or_never();
    }
    harness
}
