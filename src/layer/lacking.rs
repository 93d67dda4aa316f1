//! Which offerings lacked capacity lately.
//!
//! Owns how far a refusal reaches: as far as its cloud has said, and otherwise no further than what was
//! asked for. It decides nothing about what is launched instead.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{InstanceConfig, Market, ProvisionError, Scope};

/// The longest that anything is remembered, because no clock counts for ever: 136 years.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// What is not asked for now.
#[derive(Debug)]
pub(super) struct Lacking {
    remember: Duration,
    lacks: Mutex<Vec<Lack>>,
}

#[derive(Clone, Debug)]
struct Lack {
    scope: Scope,
    reach: Reach,
    until: Instant,
}

/// Which configs a scope is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// All that are within it, as its cloud has said.
    Within,
    /// Those that ask for the very same, where the cloud has named nothing that was asked for.
    Same,
}

impl Lacking {
    /// Remembers so long.
    pub(super) const fn new(remember: Duration) -> Self {
        let lacks = Mutex::new(Vec::new());
        Self { remember, lacks }
    }

    /// What is remembered now.
    pub(super) fn scopes(&self) -> Vec<Scope> {
        let mut lacks = self.lock();
        lacks.retain(|lack| lack.until > Instant::now());
        lacks.iter().map(|lack| lack.scope.clone()).collect()
    }

    /// Until when `config` is not asked for.
    pub(super) fn until(&self, config: &InstanceConfig) -> Option<Instant> {
        let (now, lacks) = (Instant::now(), self.lock());
        let of_it = lacks
            .iter()
            .filter(|lack| lack.until > now && lack.is_of(config));
        of_it.map(|lack| lack.until).max()
    }

    /// Remembers that `config` was refused with `error`.
    pub(super) fn note(&self, error: &ProvisionError, config: &InstanceConfig) {
        let now = Instant::now();
        let until = now + self.remember.min(LONGEST);
        let lack = |scope, reach| Lack {
            scope,
            reach,
            until,
        };
        let scopes = error.scopes().iter().cloned();
        let mut noted: Vec<_> = scopes.map(|scope| lack(scope, Reach::Within)).collect();
        if !noted.iter().any(|lack| lack.is_of(config)) {
            noted.push(lack(offering(config), Reach::Same));
        }
        let mut lacks = self.lock();
        let same = |old: &Lack, new: &Lack| old.scope == new.scope && old.reach == new.reach;
        lacks.retain(|old| old.until > now && !noted.iter().any(|new| same(old, new)));
        lacks.extend(noted);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Lack>> {
        // Nothing under the lock panics.
        self.lacks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lack {
    fn is_of(&self, config: &InstanceConfig) -> bool {
        match self.reach {
            Reach::Within => covers(&self.scope, config),
            Reach::Same => self.scope == offering(config),
        }
    }
}

/// The offering that `config` asks for.
pub(super) fn offering(config: &InstanceConfig) -> Scope {
    Scope::Offering {
        instance_type: Some(config.instance_type.clone()),
        zone: config.placement.zone.clone(),
        market: config.placement.market,
    }
}

/// Whether `config` asks for what `scope` is about.
fn covers(scope: &Scope, config: &InstanceConfig) -> bool {
    match scope {
        Scope::Offering {
            instance_type,
            zone,
            market,
        } => {
            let placement = &config.placement;
            instance_type
                .as_ref()
                .is_none_or(|of| *of == config.instance_type)
                && zone
                    .as_ref()
                    .is_none_or(|of| placement.zone.as_ref() == Some(of))
                && market.is_none_or(|of| placement.market.unwrap_or(Market::OnDemand) == of)
        }
        Scope::Network(network) => config.placement.network.as_ref() == Some(network),
        Scope::Region | Scope::Account => true,
        Scope::Instance(_) => false,
    }
}
