//! Counts the machines in use, and how many are free under the capacity rules.

use std::collections::BTreeMap;

use super::knobs::{Capacity, Market, is_or_any};

/// The type, the zone and the market of a machine.
pub(crate) type Kind = (String, String, Market);

/// The number of machines in use, by kind.
#[derive(Debug, Default)]
pub(crate) struct CapacityUsage(BTreeMap<Kind, u64>);

impl CapacityUsage {
    /// Counts a machine as in use.
    pub(crate) fn reserve(&mut self, kind: Kind) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// Counts a machine as free again.
    pub(crate) fn release(&mut self, kind: &Kind) {
        if let Some(count) = self.0.get_mut(kind) {
            *count = count.saturating_sub(1);
        }
    }

    /// Returns the kinds that are in use, with their numbers.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (&Kind, u64)> {
        let used = self.0.iter().filter(|(_, count)| **count > 0);
        used.map(|(kind, count)| (kind, *count))
    }

    /// Returns how many machines of a kind are free: the minimum over all rules that match the
    /// kind.
    pub(crate) fn free(&self, rules: &[Capacity], kind: &Kind) -> u64 {
        let left = rules.iter().filter(|rule| matches(rule, kind)).map(|rule| {
            let counted = self.in_use().filter(|(kind, _)| matches(rule, kind));
            let used = counted.map(|(_, count)| count).sum();
            rule.machines.saturating_sub(used)
        });
        left.min().unwrap_or(u64::MAX)
    }
}

/// Whether a rule counts machines of this kind.
fn matches(rule: &Capacity, (name, zone, market): &Kind) -> bool {
    is_or_any(rule.instance_type.as_deref(), name)
        && is_or_any(rule.zone.as_deref(), zone)
        && rule.market.is_none_or(|only| only == *market)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, zone: &str) -> Kind {
        (name.to_owned(), zone.to_owned(), Market::OnDemand)
    }

    #[test]
    fn tightest_rule_applies() {
        let mut machines = CapacityUsage::default();
        machines.reserve(kind("large", "a"));
        machines.reserve(kind("small", "a"));
        let mut large = Capacity::of(5);
        large.instance_type = Some("large".to_owned());
        let mut zone = Capacity::of(3);
        zone.zone = Some("a".to_owned());
        let mut spot = Capacity::of(0);
        spot.market = Some(Market::Spot);
        let rules = [large, zone, spot];
        assert_eq!(machines.free(&rules, &kind("large", "a")), 1);
        assert_eq!(machines.free(&rules, &kind("large", "b")), 4);
        assert_eq!(machines.free(&rules, &kind("small", "b")), u64::MAX);
        machines.release(&kind("small", "a"));
        machines.release(&kind("never", "a"));
        assert_eq!(machines.free(&rules, &kind("small", "a")), 2);
        assert_eq!(machines.in_use().count(), 1);
    }
}
