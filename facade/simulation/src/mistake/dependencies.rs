//! A dependency checker that does not check.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use fleetwright_identity::Principal;
use fleetwright_region::server::{Field, Ground, GroundError, Site};
use fleetwright_store::Check;

use super::Mistake;

/// Passes requests on to a real checker, except for those that the mistake skips.
#[derive(Debug)]
pub struct MistakenDependencies {
    /// The real checker.
    pub inner: Arc<dyn Ground>,
    /// What it does wrong.
    pub mistake: Mistake,
}

#[async_trait]
impl Ground for MistakenDependencies {
    async fn check(&self, who: &Principal, site: &Site<'_>) -> Result<Vec<Check>, GroundError> {
        let network = BTreeSet::from([Field::Network]);
        if self.mistake == Mistake::NetworkNotChecked && site.changed == network {
            return Ok(Vec::new());
        }
        self.inner.check(who, site).await
    }
}
