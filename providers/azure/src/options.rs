//! How a provisioner behaves, beside what it launches.

use std::{num::NonZeroU32, num::NonZeroUsize, time::Duration};

use fleetwright::{BatchLaunch, Capabilities, InvalidValue, OptionalVerb, PlacementField, Problem};

use crate::tags;

/// The most that a machine's custom data may be, before it is encoded.
const MAX_USER_DATA_BYTES: usize = 65_535;

/// How many instances are described by one read of everything, which costs the same for any number.
const DESCRIBED_AT_ONCE: usize = 1000;

/// For how long the end of an instance is told: its id alone is enough for it.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The longest time that means anything here.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How a provisioner behaves. The defaults are Azure's public cloud as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AzureOptions {
    /// Where the Resource Manager is; a sovereign cloud or an emulator has its own.
    pub endpoint: String,
    /// What a token is asked for. It does not follow from the endpoint where that is an emulator.
    pub scope: String,
    /// For how long after a change Azure may still show what was before it.
    pub consistency_window: Duration,
    /// The shortest sensible time between two polls.
    pub poll_interval: Duration,
    /// For how long a launch or a start waits for its operation to fail: only there Azure says that it has
    /// no machine. Zero answers at once, and a failure is seen later.
    pub launch_patience: Duration,
    /// How long one call may take.
    pub patience: Duration,
    /// How many machines Azure shows on a page, which no caller chooses.
    pub page_size: NonZeroUsize,
    /// How many calls of one batch are under way at a time.
    pub concurrency: NonZeroU32,
    /// Whether a background task deletes the remains of creations that fail after their launch has
    /// returned; see [`AzureCleanup`](crate::AzureCleanup). Default: `true`. If it is `false`, the
    /// provisioner starts no task, and a failed machine remains, listed as terminating, until
    /// `terminate_instance` or a replay of its launch token deletes it.
    pub background_cleanup: bool,
}

impl Default for AzureOptions {
    fn default() -> Self {
        Self {
            endpoint: "https://management.azure.com".to_owned(),
            scope: "https://management.azure.com/.default".to_owned(),
            consistency_window: Duration::from_secs(20),
            poll_interval: Duration::from_secs(3),
            launch_patience: Duration::from_secs(5),
            patience: Duration::from_secs(60),
            page_size: size(500),
            concurrency: NonZeroU32::MIN.saturating_add(15),
            background_cleanup: true,
        }
    }
}

const fn size(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(size) => size,
        None => NonZeroUsize::MIN,
    }
}

impl AzureOptions {
    /// Whether one can work so; the error says what is odd. Nobody waits for more than a day, and nobody asks again
    /// without waiting.
    pub(crate) fn check(&self) -> Result<(), InvalidValue> {
        let some = Duration::from_millis(1)..=DAY;
        let any = Duration::ZERO..=DAY;
        let each = [
            ("poll_interval", self.poll_interval, &some),
            ("patience", self.patience, &some),
            ("launch_patience", self.launch_patience, &any),
            ("consistency_window", self.consistency_window, &any),
        ];
        for (field, value, range) in each {
            if !range.contains(&value) {
                let expected =
                    "a time of at most a day; ticks and patience of a millisecond or more";
                return Err(InvalidValue::new(field, Problem::Malformed { expected }));
            }
        }
        Ok(())
    }

    /// What a provisioner with these options declares, where `own` tags are set on everything.
    pub(crate) fn capabilities(&self, own: usize) -> Capabilities {
        let mut declared = Capabilities::new("azure", tags::limits(own), MAX_USER_DATA_BYTES);
        declared.consistency_window = self.consistency_window;
        declared.token_after_terminate = Duration::ZERO;
        declared.terminated_visible = YEAR;
        declared.page_size = self.page_size;
        declared.batch_size = size(DESCRIBED_AT_ONCE);
        declared.batch_launch = BatchLaunch::Partial;
        declared.poll_interval = self.poll_interval;
        declared.placement = PlacementField::ALL.into_iter().collect();
        declared.verbs = [
            OptionalVerb::UpdateTags,
            OptionalVerb::RebootInstance,
            OptionalVerb::ResizeInstance,
            OptionalVerb::ConsoleOutput,
            OptionalVerb::SnapshotImage,
        ]
        .into();
        declared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_which_nothing_works_are_named() {
        assert_eq!(AzureOptions::default().check(), Ok(()));
        let odd = |change: fn(&mut AzureOptions)| {
            let mut options = AzureOptions::default();
            change(&mut options);
            options.check().unwrap_err().field().to_owned()
        };
        assert_eq!(odd(|it| it.poll_interval = Duration::ZERO), "poll_interval");
        assert_eq!(odd(|it| it.poll_interval = Duration::MAX), "poll_interval");
        assert_eq!(odd(|it| it.patience = Duration::ZERO), "patience");
        let window = odd(|it| it.consistency_window = Duration::MAX);
        assert_eq!(window, "consistency_window");
        let patience = odd(|it| it.launch_patience = Duration::MAX);
        assert_eq!(patience, "launch_patience");
    }
}
