//! Options of a provisioner, and the capabilities that follow from them.
//!
//! Owns every default value. It sends nothing.

use std::{num::NonZeroU32, num::NonZeroUsize, time::Duration};

use fleetwright::{BatchLaunch, Capabilities, InvalidValue, OptionalVerb, PlacementField, Problem};

use crate::{AzureCloud, native_costs::native_costs, tags};

/// The largest custom data of a machine in bytes, before it is encoded.
const MAX_USER_DATA_BYTES: usize = 65_535;

/// How many instances one list describes. The list costs the same for any number.
const DESCRIBE_BATCH: usize = 1000;

/// How long a terminated instance is reported. Its id alone is enough for that.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The longest duration that an option accepts.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How a provisioner behaves, independent of what it launches. The defaults fit Azure's public
/// cloud.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_azure::{AzureCloud, AzureOptions};
///
/// // A sovereign cloud has its own endpoint and scope.
/// let mut options = AzureOptions::for_cloud(AzureCloud::UsGovernment);
/// options.launch_wait = Duration::ZERO; // launches return as soon as Azure accepts them
/// options.background_cleanup = false;   // this process starts no background task
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AzureOptions {
    /// The URL of the Resource Manager: `https`, or `http` on this machine. A sovereign cloud or an
    /// emulator has its own. Default: `https://management.azure.com`.
    pub endpoint: String,
    /// The scope that tokens are requested for. It does not follow from the endpoint if that is an
    /// emulator. Default: `https://management.azure.com/.default`.
    pub scope: String,
    /// How long after a change Azure's reads may return older data. A day at most. Default: 20
    /// seconds. Reads that do not find a machine are repeated for so long before it counts as
    /// terminated, unless this handle has deleted it.
    pub consistency_window: Duration,
    /// The shortest useful time between two polls, from a millisecond to a day. Default: 5 seconds,
    /// because Azure allows 12 reads per machine and minute, and 36 at once (Microsoft, "Compute
    /// throttling limits").
    pub poll_interval: Duration,
    /// How long a launch or a start waits for its operation to fail, because Azure reports missing
    /// capacity only there. Zero returns at once, and a later read shows the failure. A day at
    /// most. Default: 5 seconds.
    pub launch_wait: Duration,
    /// How long after a launch returned Azure may still report missing capacity or quota. Declared as
    /// `late_failures`: the fallback layer follows a launch for this time. Zero: it does not. A day at
    /// most. Default: 2 minutes.
    pub late_failures: Duration,
    /// The timeout of one native call, from a millisecond to a day. Default: 60 seconds.
    pub call_timeout: Duration,
    /// How many machines Azure returns on a page. Callers cannot choose it; it is only declared in
    /// the capabilities. Default: 500.
    pub page_size: NonZeroUsize,
    /// How many native calls of one batch are sent at the same time. Default: 16.
    pub concurrency: NonZeroU32,
    /// Whether a background task deletes the remains of creations that fail after their launch has
    /// returned; see [`AzureCleanup`](crate::AzureCleanup). If it is `false`, the provisioner
    /// starts no task, and a failed machine remains, listed as terminating, until
    /// `terminate_instance` or a replay of its launch token deletes it. Default: `true`.
    pub background_cleanup: bool,
}

impl Default for AzureOptions {
    fn default() -> Self {
        Self::for_cloud(AzureCloud::Public)
    }
}

impl AzureOptions {
    /// Returns the default options for one of Microsoft's clouds.
    pub fn for_cloud(cloud: AzureCloud) -> Self {
        Self {
            endpoint: cloud.endpoint().to_owned(),
            scope: cloud.scope().to_owned(),
            consistency_window: Duration::from_secs(20),
            poll_interval: Duration::from_secs(5),
            launch_wait: Duration::from_secs(5),
            late_failures: Duration::from_secs(120),
            call_timeout: Duration::from_secs(60),
            page_size: size(500),
            concurrency: NonZeroU32::MIN.saturating_add(15),
            background_cleanup: true,
        }
    }

    /// Checks the durations.
    ///
    /// # Errors
    ///
    /// The first one that is longer than a day, or zero where polls need a pause.
    pub(crate) fn check(&self) -> Result<(), InvalidValue> {
        let some = Duration::from_millis(1)..=DAY;
        let any = Duration::ZERO..=DAY;
        let each = [
            ("poll_interval", self.poll_interval, &some),
            ("call_timeout", self.call_timeout, &some),
            ("launch_wait", self.launch_wait, &any),
            ("late_failures", self.late_failures, &any),
            ("consistency_window", self.consistency_window, &any),
        ];
        for (field, value, range) in each {
            if !range.contains(&value) {
                let expected = "a duration of at most a day; poll_interval and call_timeout of at least a millisecond";
                return Err(InvalidValue::new(field, Problem::Malformed { expected }));
            }
        }
        Ok(())
    }

    /// Returns the capabilities of a provisioner with these options. Its launch config sets `own`
    /// tags on every machine, which leaves fewer to callers.
    pub(crate) fn capabilities(&self, own: usize) -> Capabilities {
        let mut declared = Capabilities::new("azure", tags::limits(own), MAX_USER_DATA_BYTES);
        declared.consistency_window = self.consistency_window;
        declared.token_after_terminate = Duration::ZERO;
        declared.terminated_visible = YEAR;
        declared.page_size = self.page_size;
        declared.batch_size = size(DESCRIBE_BATCH);
        declared.native_costs = native_costs();
        declared.batch_launch = BatchLaunch::Partial;
        declared.poll_interval = self.poll_interval;
        declared.late_failures = self.late_failures;
        declared.placement = PlacementField::ALL.into_iter().collect();
        declared.verbs = [
            OptionalVerb::UpdateTags,
            OptionalVerb::RebootInstance,
            OptionalVerb::ResizeInstance,
            OptionalVerb::ConsoleOutput,
            OptionalVerb::SnapshotImage,
            OptionalVerb::DeleteImage,
        ]
        .into();
        declared
    }
}

const fn size(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(size) => size,
        None => NonZeroUsize::MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_polls_stay_within_the_reads_that_azure_allows_for_a_machine() {
        let polls = 60 / AzureOptions::default().poll_interval.as_secs();
        assert!(polls <= 12, "{polls} reads a minute");
    }

    #[test]
    fn check_names_the_first_invalid_duration() {
        assert_eq!(AzureOptions::default().check(), Ok(()));
        let invalid_field = |change: fn(&mut AzureOptions)| {
            let mut options = AzureOptions::default();
            change(&mut options);
            options.check().unwrap_err().field().to_owned()
        };
        assert_eq!(
            invalid_field(|it| it.poll_interval = Duration::ZERO),
            "poll_interval"
        );
        assert_eq!(
            invalid_field(|it| it.poll_interval = Duration::MAX),
            "poll_interval"
        );
        assert_eq!(
            invalid_field(|it| it.call_timeout = Duration::ZERO),
            "call_timeout"
        );
        let window = invalid_field(|it| it.consistency_window = Duration::MAX);
        assert_eq!(window, "consistency_window");
        let wait = invalid_field(|it| it.launch_wait = Duration::MAX);
        assert_eq!(wait, "launch_wait");
    }
}
