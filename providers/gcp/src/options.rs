//! How a provisioner behaves, beside what it launches.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use fleetwright::{BatchLaunch, Capabilities, OptionalVerb, PlacementField, TagLimits};

use crate::metadata::MAX_USER_DATA_BYTES;

/// The most labels of an instance.
pub(crate) const MAX_LABELS: usize = 64;

/// How many instances one list is asked for by name: what keeps the URL below six thousand bytes.
const NAMES_IN_A_LIST: usize = 170;

/// How a provisioner behaves. The defaults are Compute Engine's as it is; change them for an emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GcpOptions {
    /// For how long after a change Compute Engine may still show what was before it.
    pub consistency_window: Duration,
    /// The shortest sensible time between two polls.
    pub poll_interval: Duration,
    /// For how long finished operations are kept at least. They alone tell of deleted instances and of
    /// what a token launched. Zero means that they are not asked for tokens, which saves a call for
    /// each launch; a token is then forgotten as soon as its instance is deleted.
    pub operations_kept: Duration,
    /// For how long a launch or a start waits for its operation to fail: only there Compute Engine says
    /// that it has no machine. Zero answers at once, and a failure is seen later.
    pub launch_patience: Duration,
    /// How long one call may take.
    pub patience: Duration,
    /// How many instances a page of a list holds; Compute Engine takes up to 500.
    pub page_size: NonZeroUsize,
    /// How many calls of one batch are under way at a time.
    pub concurrency: NonZeroU32,
    /// Whether a stop may lose the content of local SSDs. Without it, instances that have some refuse to
    /// be stopped.
    pub discard_local_ssds: bool,
}

impl Default for GcpOptions {
    fn default() -> Self {
        Self {
            consistency_window: Duration::from_secs(20),
            poll_interval: Duration::from_secs(2),
            operations_kept: Duration::from_secs(24 * 60 * 60),
            launch_patience: Duration::from_secs(5),
            patience: Duration::from_secs(60),
            page_size: size(500),
            concurrency: NonZeroU32::MIN.saturating_add(15),
            discard_local_ssds: false,
        }
    }
}

const fn size(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(size) => size,
        None => NonZeroUsize::MIN,
    }
}

impl GcpOptions {
    /// What a provisioner with these options declares, where `labels` are set on everything.
    pub(crate) fn capabilities(&self, labels: usize) -> Capabilities {
        let tags = TagLimits::new(MAX_LABELS.saturating_sub(labels), 128, 256);
        let mut declared = Capabilities::new("gcp", tags, MAX_USER_DATA_BYTES);
        declared.consistency_window = self.consistency_window;
        declared.token_after_terminate = self.operations_kept;
        declared.terminated_visible = self.operations_kept;
        declared.page_size = self.page_size;
        declared.batch_size = size(NAMES_IN_A_LIST);
        declared.batch_launch = BatchLaunch::Partial;
        declared.poll_interval = self.poll_interval;
        declared.placement = PlacementField::ALL.into_iter().collect();
        declared.verbs = [
            OptionalVerb::UpdateTags,
            OptionalVerb::RebootInstance,
            OptionalVerb::ResizeInstance,
            OptionalVerb::ConsoleOutput,
            OptionalVerb::ConsoleSession,
            OptionalVerb::SnapshotImage,
        ]
        .into();
        declared
    }
}
