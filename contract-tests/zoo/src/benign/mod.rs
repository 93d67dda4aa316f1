//! Benign backends: slow, forgetful, limited or otherwise unusual ones that keep every promise.
//!
//! If one of them fails a clause, the clause requires more than the contract promises.

mod accounts;
mod limited;
mod odd;
mod patient;

use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use fleetwright::{BatchLaunch, OptionalVerb, PlacementField, TagLimits, Tags};
use fleetwright_memory::{MemoryCloudBuilder, Timing, WireCall};
use futures_util::FutureExt as _;

use accounts::{Edited, KeepsAddress, PolicyTags};
use limited::{Limited, NeverRefuses, NoZones};
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

/// Returns a factory of memory clouds with lower limits.
fn limited(limits: Limited) -> Factory {
    Arc::new(move || Arc::new(OverrideHarness::new(MemoryHarness::new(), limits)))
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
        name: "tags are labels: short, lower-case letters, digits, hyphens and underscores",
        make: || {
            limited(Limited {
                lower: |declared| declared.tags = TagLimits::new(50, 63, 63),
                allows: |c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c),
            })
        },
    },
    Benign {
        name: "tags without spaces",
        make: || {
            limited(Limited {
                lower: |_| {},
                allows: |c| !c.is_whitespace(),
            })
        },
    },
    Benign {
        name: "five tags",
        make: || {
            limited(Limited {
                lower: |declared| declared.tags.max_tags = 5,
                allows: |_| true,
            })
        },
    },
    Benign {
        name: "no user data",
        make: || {
            limited(Limited {
                lower: |declared| declared.max_user_data_bytes = 0,
                allows: |_| true,
            })
        },
    },
    Benign {
        name: "a poll interval of 30 seconds",
        make: || knobs(|cloud| cloud.poll_interval(Duration::from_secs(30))),
    },
    Benign {
        name: "describes are throttled to one in a second",
        make: || {
            knobs(|cloud| {
                let period = Duration::from_secs(1);
                cloud.throttle(WireCall::Describe, period, NonZeroU32::MIN)
            })
        },
    },
    Benign {
        name: "lists without pages",
        make: || knobs(|cloud| cloud.page_size(NonZeroUsize::MAX)),
    },
    Benign {
        name: "other zone names",
        make: || Arc::new(|| Arc::new(MemoryHarness::in_zones(["1", "Zone.2_north"]))),
    },
    Benign {
        name: "no zones, and a harness that names none",
        make: || {
            OverrideHarness::factory_on::<NoZones>(|| {
                MemoryHarness::with(|cloud| {
                    let fields = PlacementField::ALL.into_iter();
                    fields.fold(cloud, MemoryCloudBuilder::without_placement)
                })
            })
        },
    },
    Benign {
        name: "a cloud without throttling, credentials, permissions, quota, capacity and late failures",
        make: OverrideHarness::factory::<NeverRefuses>,
    },
    Benign {
        name: "a policy adds a tag to every instance",
        make: OverrideHarness::factory::<Edited<PolicyTags>>,
    },
    Benign {
        name: "an instance keeps its public address while it is stopped",
        make: OverrideHarness::factory::<Edited<KeepsAddress>>,
    },
    Benign {
        name: "the account has instances of others",
        make: || Arc::new(|| Arc::new(with_foreign_instances())),
    },
];

/// Returns an account in which others have instances with similar tags.
fn with_foreign_instances() -> MemoryHarness {
    let harness = MemoryHarness::new();
    for scope in ["x", "X", fleetwright_contract_tests::OWNER_VALUE] {
        let tags = Tags::new().with(fleetwright_contract_tests::SCOPE_TAG, scope);
        // The external actor acts at once, so the future is ready at its first poll.
        let _ = harness.launch(tags.unwrap_or_default()).now_or_never();
    }
    harness
}
