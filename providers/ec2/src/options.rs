//! Behaviour of a provisioner, apart from what it launches.
//!
//! Owns the limits of EC2 that callers see as [`Capabilities`]. All durations are real time.

use std::{num::NonZeroUsize, time::Duration};

use fleetwright::{BatchLaunch, Capabilities, OptionalVerb, PlacementField, TagLimits};

use crate::native_costs::native_costs;

/// EC2's limit for user data, in bytes before base64.
const MAX_USER_DATA_BYTES: usize = 16_384;

/// Behaviour of a provisioner. The defaults fit EC2; an emulator may be faster.
///
/// No value is checked: `page_size` outside of EC2's range is refused by EC2 with each list, as an
/// invalid value.
///
/// ```
/// use std::time::Duration;
///
/// use fleetwright_ec2::Ec2Options;
///
/// let mut options = Ec2Options::default();
/// assert_eq!(options.call_timeout, Duration::from_secs(60));
/// options.call_timeout = Duration::from_secs(15);
/// // A local emulator has consistent reads.
/// options.consistency_window = Duration::ZERO;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ec2Options {
    /// How long after a change EC2's reads may still be stale, at most. Absence is proved only after it.
    /// Default: 5 minutes. AWS promises no bound, and advises to repeat reads for "a few minutes", or five
    /// ("Eventual consistency in the Amazon EC2 API").
    ///
    /// `NotFound` of an instance that this handle did not launch within this time is returned at once. Zero
    /// means that reads are consistent.
    pub consistency_window: Duration,
    /// How long a call repeats a read that may be stale, before it returns what the read shows. Default: 20
    /// seconds, within which EC2 nearly always shows a change.
    pub usual_lag: Duration,
    /// The shortest useful delay between two polls of one instance, for waiters and for reads that
    /// are repeated within the consistency window. Default: 2 seconds.
    pub poll_interval: Duration,
    /// How long EC2 shows a terminated instance at least, and thereby remembers its launch token. Default: 20
    /// minutes.
    pub terminated_visible: Duration,
    /// How long after a launch EC2 may still terminate it because it has no machine or no disk for it. Default: one
    /// minute, which is chosen: EC2 documents such launches, not when they fail. The fallback layer follows a
    /// launch for at most this time, and only while it is pending.
    pub late_failures: Duration,
    /// How long one native call may take. The connection must be established within 5 seconds or this
    /// time, whichever is shorter. Default: 60 seconds.
    pub call_timeout: Duration,
    /// How many instances a page of a list holds. EC2 allows 5 to 1,000. Default: 1,000, which costs
    /// the fewest calls.
    pub page_size: NonZeroUsize,
    /// Whether `account_id` reads the account from STS. Turn it off where STS cannot be reached: `account_id` is then
    /// `None`, and nothing notices that the credentials belong to another account. Default: `true`.
    pub report_account: bool,
}

impl Default for Ec2Options {
    fn default() -> Self {
        Self {
            consistency_window: Duration::from_secs(5 * 60),
            usual_lag: Duration::from_secs(20),
            poll_interval: Duration::from_secs(2),
            terminated_visible: Duration::from_secs(20 * 60),
            late_failures: Duration::from_secs(60),
            call_timeout: Duration::from_secs(60),
            page_size: thousand(),
            report_account: true,
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
    /// Returns the capabilities of a provisioner with these options: launches in batches are all or
    /// nothing, tokens work for as long as terminated instances are visible, and reimaging is the one
    /// verb that is not offered.
    pub(crate) fn capabilities(&self) -> Capabilities {
        // EC2 allows 50 tags. One of them holds our fingerprint.
        let mut tags = TagLimits::new(49, 128, 256);
        tags.reserved_prefixes = vec!["aws:".to_owned()];
        let mut capabilities = Capabilities::new("ec2", tags, MAX_USER_DATA_BYTES);
        capabilities.consistency_window = self.consistency_window;
        capabilities.usual_lag = Some(self.usual_lag);
        capabilities.token_after_terminate = self.terminated_visible;
        capabilities.terminated_visible = self.terminated_visible;
        capabilities.terminated_listed = true;
        capabilities.late_failures = self.late_failures;
        capabilities.page_size = self.page_size;
        capabilities.batch_size = thousand();
        capabilities.native_costs = native_costs(thousand());
        capabilities.batch_launch = BatchLaunch::AllOrNothing;
        capabilities.poll_interval = self.poll_interval;
        capabilities.placement = PlacementField::ALL.into_iter().collect();
        capabilities.verbs = [
            OptionalVerb::UpdateTags,
            OptionalVerb::RebootInstance,
            OptionalVerb::ResizeInstance,
            OptionalVerb::ConsoleOutput,
            OptionalVerb::ConsoleSession,
            OptionalVerb::SnapshotImage,
            OptionalVerb::DeleteImage,
        ]
        .into();
        capabilities
    }
}
