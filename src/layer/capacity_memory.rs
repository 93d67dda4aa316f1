//! The offerings that had no capacity recently.
//!
//! Owns which configs a capacity error applies to: those in the scopes that the cloud named, or only
//! configs with the same offering if the cloud named none of it. It never decides what to launch
//! instead.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{InstanceConfig, Market, ProvisionError, Scope};

/// The longest time that a shortage is remembered, 136 years, because an `Instant` can overflow.
const MAX_RETENTION: Duration = Duration::from_secs(1 << 32);

/// The shortages of the last `retention`.
#[derive(Debug)]
pub(super) struct CapacityMemory {
    retention: Duration,
    shortages: Mutex<Vec<Shortage>>,
}

/// A scope without capacity.
#[derive(Clone, Debug)]
struct Shortage {
    scope: Scope,
    applies_to: AppliesTo,
    until: Instant,
}

/// The configs that a shortage applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AppliesTo {
    /// All configs inside the scope, because the cloud named it.
    ConfigsInScope,
    /// Configs with exactly this offering, because the cloud named nothing that was requested.
    SameOffering,
}

impl CapacityMemory {
    /// Creates an empty memory that keeps a shortage for `retention`.
    pub(super) const fn new(retention: Duration) -> Self {
        let shortages = Mutex::new(Vec::new());
        Self {
            retention,
            shortages,
        }
    }

    /// Returns the scopes that have no capacity now, as far as this memory knows.
    pub(super) fn scopes(&self) -> Vec<Scope> {
        let mut shortages = self.lock();
        shortages.retain(|shortage| shortage.until > Instant::now());
        let scopes = shortages.iter().map(|shortage| shortage.scope.clone());
        scopes.collect()
    }

    /// Returns when the last shortage that applies to `config` ends, or `None` if there is none.
    pub(super) fn unavailable_until(&self, config: &InstanceConfig) -> Option<Instant> {
        let (now, shortages) = (Instant::now(), self.lock());
        let current = shortages
            .iter()
            .filter(|shortage| shortage.until > now && shortage.applies_to(config));
        current.map(|shortage| shortage.until).max()
    }

    /// Remembers that a launch of `config` failed with the capacity error `error`.
    pub(super) fn record(&self, error: &ProvisionError, config: &InstanceConfig) {
        let now = Instant::now();
        let until = now + self.retention.min(MAX_RETENTION);
        let shortage = |scope, applies_to| Shortage {
            scope,
            applies_to,
            until,
        };
        let scopes = error.scopes().iter().cloned();
        let mut added: Vec<_> = scopes
            .map(|scope| shortage(scope, AppliesTo::ConfigsInScope))
            .collect();
        if !added.iter().any(|shortage| shortage.applies_to(config)) {
            added.push(shortage(offering(config), AppliesTo::SameOffering));
        }
        let mut shortages = self.lock();
        let same = |old: &Shortage, new: &Shortage| {
            old.scope == new.scope && old.applies_to == new.applies_to
        };
        shortages.retain(|old| old.until > now && !added.iter().any(|new| same(old, new)));
        shortages.extend(added);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Shortage>> {
        // No code panics while it holds the lock.
        self.shortages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shortage {
    fn applies_to(&self, config: &InstanceConfig) -> bool {
        match self.applies_to {
            AppliesTo::ConfigsInScope => is_in_scope(config, &self.scope),
            AppliesTo::SameOffering => self.scope == offering(config),
        }
    }
}

/// Returns the offering that `config` requests.
pub(super) fn offering(config: &InstanceConfig) -> Scope {
    Scope::Offering {
        instance_type: Some(config.instance_type.clone()),
        zone: config.placement.zone.clone(),
        market: config.placement.market,
    }
}

/// Returns whether `config` requests something inside `scope`. A config without a market is on
/// demand; one without a zone is in no particular zone.
fn is_in_scope(config: &InstanceConfig, scope: &Scope) -> bool {
    match scope {
        Scope::Offering {
            instance_type,
            zone,
            market,
        } => {
            let placement = &config.placement;
            let requested_market = placement.market.unwrap_or(Market::OnDemand);
            let type_matches = |wanted: &_| *wanted == config.instance_type;
            let zone_matches = |wanted| placement.zone.as_ref() == Some(wanted);
            instance_type.as_ref().is_none_or(type_matches)
                && zone.as_ref().is_none_or(zone_matches)
                && market.is_none_or(|market| market == requested_market)
        }
        Scope::Network(network) => config.placement.network.as_ref() == Some(network),
        Scope::Region | Scope::Account => true,
        Scope::Instance(_) => false,
    }
}
