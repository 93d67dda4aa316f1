//! What an operator may set about a monitor.

use std::time::Duration;

use fleetwright::Capabilities;

/// How often a monitor looks, and what it may do about what it sees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// How often it looks; never more often than the provider declares.
    pub tick: Duration,
    /// How long a machine may be in a passing state before it counts as stuck.
    pub stuck_after: Duration,
    /// How old a machine must be before it can be an orphan: older than any launch that is under way.
    pub orphan_age: Duration,
    /// What is done about orphans.
    pub sweep: Sweep,
    /// How many machines may be found absent, and how many to be orphans, in one look before it is believed less than the
    /// records.
    pub limit: Limit,
}

/// What is done about orphans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// They are reported.
    Report,
    /// They are reported and destroyed.
    Destroy,
}

/// A count that is too high to be true: above `least`, and above `percent` of the region's servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// Up to here any count is believed.
    pub least: u64,
    /// Up to this part of the region's servers a count is believed.
    pub percent: u64,
}

impl Limit {
    /// Believes `least` in any case, and `percent` of the servers.
    pub const fn new(least: u64, percent: u64) -> Self {
        Self { least, percent }
    }

    /// The highest count that is believed among `servers`.
    pub fn among(&self, servers: u64) -> u64 {
        let part = servers.saturating_mul(self.percent) / 100;
        self.least.max(part)
    }
}

impl Default for Policy {
    /// Looks every fifteen seconds; reports orphans of an hour; freezes above five and a tenth of the servers.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            tick: seconds(15),
            stuck_after: seconds(900),
            orphan_age: seconds(3600),
            sweep: Sweep::Report,
            limit: Limit::new(5, 10),
        }
    }
}

impl Policy {
    /// How often it is looked with a provider.
    pub fn tick_with(&self, capabilities: &Capabilities) -> Duration {
        self.tick.max(capabilities.poll_interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::TagLimits;

    #[test]
    fn a_limit_is_the_larger_of_its_two() {
        let limit = Limit::new(5, 10);
        let cases = [(0, 5), (50, 5), (51, 5), (60, 6), (1000, 100)];
        for (servers, believed) in cases {
            assert_eq!(limit.among(servers), believed);
        }
    }

    #[test]
    fn the_tick_is_not_smaller_than_the_provider_declares() {
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
