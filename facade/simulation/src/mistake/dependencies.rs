//! A dependency checker that does not check.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use fleetwright_identity::Principal;
use fleetwright_region::server::{DependencyChecker, DependencyError, Field, ServerPlacement};
use fleetwright_store::Check;

use super::Mistake;

/// Passes requests on to a real checker, except for those that the mistake skips.
#[derive(Debug)]
pub struct MistakenDependencies {
    /// The real checker.
    pub inner: Arc<dyn DependencyChecker>,
    /// What it does wrong.
    pub mistake: Mistake,
}

#[async_trait]
impl DependencyChecker for MistakenDependencies {
    async fn check(
        &self,
        principal: &Principal,
        placement: &ServerPlacement<'_>,
    ) -> Result<Vec<Check>, DependencyError> {
        let network = BTreeSet::from([Field::Network]);
        if self.mistake == Mistake::NetworkNotChecked && placement.changed == network {
            return Ok(Vec::new());
        }
        self.inner.check(principal, placement).await
    }
}
