//! How a provisioner behaves, beside what it launches.

use std::{num::NonZeroUsize, time::Duration};

use fleetwright::{BatchLaunch, Capabilities, OptionalVerb, PlacementField, TagLimits};

/// The largest user data that EC2 takes, before base64.
const MAX_USER_DATA_BYTES: usize = 16_384;

/// How a provisioner behaves. The defaults are EC2's as it is; change them for an emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ec2Options {
    /// For how long after a change EC2 may still show what was before it.
    pub consistency_window: Duration,
    /// The shortest sensible time between two polls.
    pub poll_interval: Duration,
    /// For how long terminated instances, and with them their tokens, are remembered at least.
    pub terminated_visible: Duration,
    /// How long one call may take.
    pub patience: Duration,
    /// How many instances a page of a list holds; EC2 takes 5 to 1,000.
    pub page_size: NonZeroUsize,
}

impl Default for Ec2Options {
    fn default() -> Self {
        Self {
            consistency_window: Duration::from_secs(20),
            poll_interval: Duration::from_secs(2),
            terminated_visible: Duration::from_secs(20 * 60),
            patience: Duration::from_secs(60),
            page_size: thousand(),
        }
    }
}

const fn thousand() -> NonZeroUsize {
    match NonZeroUsize::new(1_000) {
        Some(size) => size,
        None => NonZeroUsize::MIN,
    }
}

impl Ec2Options {
    /// What a provisioner with these options declares.
    pub(crate) fn capabilities(&self) -> Capabilities {
        // Fifty, of which one is ours.
        let mut tags = TagLimits::new(49, 128, 256);
        tags.reserved_prefixes = vec!["aws:".to_owned()];
        let mut declared = Capabilities::new("ec2", tags, MAX_USER_DATA_BYTES);
        declared.consistency_window = self.consistency_window;
        declared.token_after_terminate = self.terminated_visible;
        declared.terminated_visible = self.terminated_visible;
        declared.terminated_listed = true;
        declared.page_size = self.page_size;
        declared.batch_size = thousand();
        declared.batch_launch = BatchLaunch::AllOrNothing;
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
