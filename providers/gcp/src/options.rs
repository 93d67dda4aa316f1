//! Options of a provisioner, and the capabilities that follow from them.
//!
//! Owns every default value. It sends nothing.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use fleetwright::{BatchLaunch, Capabilities, OptionalVerb, PlacementField, TagLimits};

use crate::{metadata::MAX_USER_DATA_BYTES, native_costs::native_costs};

/// The largest number of labels of an instance.
pub(crate) const MAX_LABELS: usize = 64;

/// How many names one filter contains. This keeps the URL below 6,000 bytes.
const NAMES_PER_FILTER: usize = 170;

/// How a provisioner behaves, independent of what it launches. The defaults fit Compute Engine
/// itself; change them for an emulator.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_gcp::GcpOptions;
///
/// let mut options = GcpOptions::default();
/// options.launch_wait = Duration::from_secs(10);  // launches return failures of the first ten seconds
/// options.remember_spent_tokens = true;  // one list of operations more per launch with a token
/// options.discard_local_ssds = true;     // instances with local SSDs can be stopped
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GcpOptions {
    /// How long after a change Compute Engine's reads may return older data. Default: 20 seconds.
    pub consistency_window: Duration,
    /// The shortest useful time between two polls. Default: 2 seconds.
    pub poll_interval: Duration,
    /// How long Compute Engine keeps finished operations at least. Only they know deleted instances.
    /// Default: one hour, which Google promises; it keeps them for up to two weeks. Declared as
    /// `terminated_visible`.
    pub operations_kept: Duration,
    /// Whether a launch token stays spent for `operations_kept` after its instance was deleted. Each
    /// launch with a token and each `find_launch` then lists operations, which Compute Engine charges
    /// against a quota that cannot be raised, for every operation of the project. Otherwise a token is
    /// free as soon as its instance is gone. Default: `false`. Declared as `token_after_terminate`.
    pub remember_spent_tokens: bool,
    /// How long a launch or a start waits for its operation to fail, because Compute Engine reports
    /// missing capacity only there. Zero returns at once, and a later read shows the failure. Each wait
    /// costs one more call. Default: zero, because the failures that were measured come after 6 to 100
    /// seconds.
    pub launch_wait: Duration,
    /// How long after a launch returned Compute Engine may still report missing capacity or quota.
    /// Declared as `late_failures`: the fallback layer follows a launch for this time. Zero: it does not.
    /// Default: 2 minutes; about 100 seconds were seen.
    pub late_failures: Duration,
    /// The timeout of one native call. Default: 60 seconds.
    pub call_timeout: Duration,
    /// How many instances a page of a list holds, 500 at most. Default: 500.
    pub page_size: NonZeroUsize,
    /// How many native calls of one batch are sent at the same time. Default: 16.
    pub concurrency: NonZeroU32,
    /// Whether a stop may discard the content of local SSDs. Without it, Compute Engine refuses to
    /// stop an instance that has some. Default: `false`.
    pub discard_local_ssds: bool,
}

impl Default for GcpOptions {
    fn default() -> Self {
        Self {
            consistency_window: Duration::from_secs(20),
            poll_interval: Duration::from_secs(2),
            operations_kept: Duration::from_secs(60 * 60),
            remember_spent_tokens: false,
            launch_wait: Duration::ZERO,
            late_failures: Duration::from_secs(120),
            call_timeout: Duration::from_secs(60),
            page_size: size(500),
            concurrency: NonZeroU32::MIN.saturating_add(15),
            discard_local_ssds: false,
        }
    }
}

pub(crate) const fn size(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(size) => size,
        None => NonZeroUsize::MIN,
    }
}

impl GcpOptions {
    /// Returns the capabilities of a provisioner with these options. Its launch config sets
    /// `labels` labels on every instance, which leaves fewer to callers.
    pub(crate) fn capabilities(&self, labels: usize) -> Capabilities {
        let tags = TagLimits::new(MAX_LABELS.saturating_sub(labels), 128, 256);
        let mut declared = Capabilities::new("gcp", tags, MAX_USER_DATA_BYTES);
        declared.consistency_window = self.consistency_window;
        if self.remember_spent_tokens {
            declared.token_after_terminate = self.operations_kept;
        }
        declared.terminated_visible = self.operations_kept;
        declared.page_size = self.page_size;
        declared.batch_size = size(NAMES_PER_FILTER);
        declared.native_costs = native_costs(self.remember_spent_tokens);
        declared.batch_launch = BatchLaunch::Partial;
        declared.poll_interval = self.poll_interval;
        declared.late_failures = self.late_failures;
        declared.placement = PlacementField::ALL.into_iter().collect();
        declared.verbs = [
            OptionalVerb::UpdateTags,
            OptionalVerb::RebootInstance,
            OptionalVerb::ResizeInstance,
            OptionalVerb::ConsoleOutput,
            OptionalVerb::ConsoleSession,
            OptionalVerb::SnapshotImage,
            OptionalVerb::DeleteImage,
        ]
        .into();
        declared
    }
}
