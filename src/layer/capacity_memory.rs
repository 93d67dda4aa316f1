//! The offerings that had no capacity, or no quota, recently.
//!
//! Owns which configs a shortage applies to: those that a scope of its error
//! [covers](Scope::covers). If the scope names a zone or network that the failed config left to the
//! backend, it also applies to configs that leave the same to it. If no scope is about the failed config,
//! it applies to configs with the same request only. It never decides what to launch instead.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{InstanceConfig, InstanceType, Market, NetworkId, ProvisionError, Scope, Zone};

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
#[derive(Clone, Debug, PartialEq, Eq)]
enum AppliesTo {
    /// All configs inside the scope.
    Covered,
    /// Configs that request this zone and network, and are inside the scope once the backend has chosen
    /// what they leave open. The backend chooses the same for all of them.
    SameDefaults {
        zone: Option<Zone>,
        network: Option<NetworkId>,
    },
    /// Configs with the same request, because no scope is about the config that failed.
    SameRequest(Request),
}

/// What a config requests of a capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    instance_type: InstanceType,
    zone: Option<Zone>,
    network: Option<NetworkId>,
    market: Market,
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
        let mut scopes: Vec<Scope> = Vec::new();
        for shortage in shortages.iter() {
            if !scopes.contains(&shortage.scope) {
                scopes.push(shortage.scope.clone());
            }
        }
        scopes
    }

    /// Returns when the last shortage that applies to `config` ends, or `None` if there is none.
    pub(super) fn unavailable_until(&self, config: &InstanceConfig) -> Option<Instant> {
        let (now, shortages) = (Instant::now(), self.lock());
        let current = shortages.iter().filter(|shortage| {
            shortage.until > now && shortage.applies_to.includes(config, &shortage.scope)
        });
        current.map(|shortage| shortage.until).max()
    }

    /// Remembers that a launch of `config` failed with the capacity or quota error `error`.
    pub(super) fn record(&self, error: &ProvisionError, config: &InstanceConfig) {
        let now = Instant::now();
        let until = now + self.retention.min(MAX_RETENTION);
        let added: Vec<_> = shortages(error.scopes(), config)
            .into_iter()
            .map(|(scope, applies_to)| Shortage {
                scope,
                applies_to,
                until,
            })
            .collect();
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

/// Returns what an error with `scopes` says about `config` and others.
fn shortages(scopes: &[Scope], config: &InstanceConfig) -> Vec<(Scope, AppliesTo)> {
    let mut found: Vec<_> = scopes
        .iter()
        .map(|scope| (scope.clone(), AppliesTo::Covered))
        .collect();
    if scopes.iter().any(|scope| scope.covers(config)) {
        return found;
    }
    let same_defaults = AppliesTo::SameDefaults {
        zone: config.placement.zone.clone(),
        network: config.placement.network.clone(),
    };
    match scopes.iter().find(|scope| covers_choice(scope, config)) {
        Some(scope) => found.push((scope.clone(), same_defaults)),
        None => found.push((
            Scope::of(config),
            AppliesTo::SameRequest(Request::of(config)),
        )),
    }
    found
}

/// Returns whether `scope` covers `config` once the backend has chosen a zone and network inside the
/// scope, if the config leaves them to it.
fn covers_choice(scope: &Scope, config: &InstanceConfig) -> bool {
    let (mut scope, mut config) = (scope.clone(), config.clone());
    let placement = &mut config.placement;
    match &mut scope {
        Scope::Offering {
            zone: Some(zone), ..
        } => {
            placement.zone.get_or_insert_with(|| zone.clone());
        }
        Scope::Network(network) | Scope::OfferingInNetwork { network, .. } => {
            placement.network.get_or_insert_with(|| network.clone());
        }
        Scope::Family { zones, .. } if placement.zone.is_none() => *zones = None,
        Scope::Offering { zone: None, .. }
        | Scope::Family { .. }
        | Scope::Instance(_)
        | Scope::Region
        | Scope::Account => {}
    }
    scope.covers(&config)
}

impl AppliesTo {
    /// Returns whether a shortage of `scope` applies to `config`.
    fn includes(&self, config: &InstanceConfig, scope: &Scope) -> bool {
        match self {
            Self::Covered => scope.covers(config),
            Self::SameDefaults { zone, network } => {
                let placement = &config.placement;
                (&placement.zone, &placement.network) == (zone, network)
                    && covers_choice(scope, config)
            }
            Self::SameRequest(request) => *request == Request::of(config),
        }
    }
}

impl Request {
    fn of(config: &InstanceConfig) -> Self {
        let placement = &config.placement;
        Self {
            instance_type: config.instance_type.clone(),
            zone: placement.zone.clone(),
            network: placement.network.clone(),
            market: placement.market.unwrap_or(Market::OnDemand),
        }
    }
}
