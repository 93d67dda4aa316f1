//! The settings of the monitor.

use std::time::Duration;

use fleetwright::Capabilities;

use crate::setting::{InvalidSetting, check_positive};

/// The shortest delay of a description, whatever the policy and the provider say.
const SHORTEST: Duration = Duration::from_millis(100);

/// How often a monitor scans, and what it does about orphans.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The time between two scans. The provider's poll interval is used if that is longer. Default: 15 seconds.
    pub tick: Duration,
    /// How long a machine may be in a transitional state before it counts as stuck. Default: 15 minutes.
    pub stuck_after: Duration,
    /// How old a machine must be to count as an orphan: older than any pending launch. Default: 1 hour.
    pub orphan_age: Duration,
    /// What the monitor does about orphans. Default: they are reported.
    pub orphans: OrphanPolicy,
    /// How many absent machines and how many orphans one scan may find and still be trusted. Default: 5, or 10 percent of the servers.
    pub limit: Limit,
    /// How long machines must be absent to be declared missing, if they are more than [a few](Limit::at_once) or all of the region.
    /// Default: 5 minutes.
    pub confirm_after: Duration,
    /// How long after a change a machine is described for the first time, and how often at most machines are described between two scans.
    /// The provider's poll interval is used if that is longer. Default: 200 milliseconds.
    pub first_look: Duration,
    /// How long after that it is described again. The delay doubles up to a tick. The provider's poll interval is used if that is longer.
    /// Default: 1 second.
    pub follow_after: Duration,
}

/// What the monitor does about orphans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrphanPolicy {
    /// Report them.
    Report,
    /// Report them, and terminate those that a record proves to be superseded: this system launched them, and their server has another
    /// machine. The others are [kept](super::OrphanOutcome::Kept).
    Terminate,
}

/// The highest plausible count: `least`, or `percent` of the region's servers if that is more.
///
/// ```
/// use fleetwright_region::monitor::Limit;
///
/// let limit = Limit::new(5, 10);
/// assert_eq!((limit.among(20), limit.among(1000)), (5, 100));
/// assert_eq!((limit.at_once(20), limit.at_once(1000)), (2, 100));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// A count up to this is always plausible.
    pub least: u64,
    /// A count up to this percentage of the servers is plausible.
    pub percent: u64,
}

impl Limit {
    /// Creates a limit.
    pub const fn new(least: u64, percent: u64) -> Self {
        Self { least, percent }
    }

    /// Returns the highest plausible count for this number of servers.
    pub fn among(&self, servers: u64) -> u64 {
        self.least.max(self.share(servers))
    }

    /// Returns how many absences are believed at once: the percentage, and at least one. It is the same share of a small and of a large
    /// region.
    pub fn at_once(&self, servers: u64) -> u64 {
        self.share(servers).max(1).min(self.among(servers))
    }

    fn share(&self, servers: u64) -> u64 {
        servers.saturating_mul(self.percent) / 100
    }
}

impl Default for Policy {
    /// Scans every 15 seconds, reports orphans older than an hour, and freezes above 5 and 10 percent of the servers.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            tick: seconds(15),
            stuck_after: seconds(900),
            orphan_age: seconds(3600),
            orphans: OrphanPolicy::Report,
            limit: Limit::new(5, 10),
            confirm_after: seconds(300),
            first_look: Duration::from_millis(200),
            follow_after: seconds(1),
        }
    }
}

impl Policy {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// A time is zero, or the limit is more than all servers.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        check_positive(&[
            ("tick", self.tick),
            ("stuck_after", self.stuck_after),
            ("confirm_after", self.confirm_after),
        ])?;
        if self.orphans == OrphanPolicy::Terminate {
            // A machine whose launch is not recorded yet would be terminated.
            check_positive(&[("orphan_age", self.orphan_age)])?;
        }
        if self.limit.percent > 100 {
            let problem = "is more than 100 percent of the servers: set 0 to 100";
            return Err(InvalidSetting::new("limit.percent", problem));
        }
        Ok(())
    }

    /// Returns the delay before a machine that is changing is described for the first time with a provider.
    pub fn first_look_with(&self, capabilities: &Capabilities) -> Duration {
        let least = capabilities.poll_interval.max(SHORTEST);
        self.first_look.max(least)
    }

    /// Returns the delay between the first two descriptions of a machine that is changing with a provider.
    pub fn follow_after_with(&self, capabilities: &Capabilities) -> Duration {
        let least = capabilities.poll_interval.max(SHORTEST);
        self.follow_after.max(least)
    }

    /// Returns the time between two scans with a provider.
    pub fn tick_with(&self, capabilities: &Capabilities) -> Duration {
        self.tick.max(capabilities.poll_interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::TagLimits;

    #[test]
    fn limit_is_the_larger_of_count_and_share() {
        let limit = Limit::new(5, 10);
        let cases = [(0, 5), (50, 5), (51, 5), (60, 6), (1000, 100)];
        for (servers, believed) in cases {
            assert_eq!(limit.among(servers), believed);
        }
        let cases = [(0, 1), (1, 1), (19, 1), (20, 2), (1000, 100)];
        for (servers, believed) in cases {
            assert_eq!(limit.at_once(servers), believed);
        }
        assert_eq!(Limit::new(0, 0).at_once(9), 0, "nothing is believed");
    }

    #[test]
    fn tick_is_at_least_the_providers_poll_interval() {
        let mut declared = Capabilities::new("x", TagLimits::new(1, 1, 1), 1);
        declared.poll_interval = Duration::from_secs(60);
        assert_eq!(
            Policy::default().tick_with(&declared),
            Duration::from_secs(60)
        );
        declared.poll_interval = Duration::from_secs(1);
        assert_eq!(
            Policy::default().tick_with(&declared),
            Duration::from_secs(15)
        );
    }
}
