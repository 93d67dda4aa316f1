//! The quota that an instance uses.

use fleetwright::PublicAddress;
use fleetwright_identity::{Allocation, Amounts, LedgerError, Principal, QuotaKind};
use fleetwright_store::RecordId;

use super::Instances;
use crate::{
    ComputeError,
    instance::{Instance, InstanceSpec},
};

impl Instances {
    /// The amounts that a spec uses: one server, the GPUs of its flavor, and its public address. A retired flavor counts as before.
    pub(super) async fn cost(&self, spec: &InstanceSpec) -> Result<Amounts, ComputeError> {
        let flavor = self
            .catalog
            .known_flavor(&self.service, &spec.flavor)
            .await?;
        let flavor = flavor.ok_or_else(|| ComputeError::FlavorMissing(spec.flavor.clone()))?;
        let addresses = match spec.networking.public_ip {
            PublicAddress::Assigned => 1,
            PublicAddress::Absent => 0,
        };
        Ok(Amounts::new()
            .with(QuotaKind::servers(), 1)
            .with(QuotaKind::gpus(), flavor.gpus().into())
            .with(QuotaKind::public_ips(), addresses))
    }

    /// What an instance is charged while a change is pending: for each kind the larger of what it is charged now and what the new spec
    /// costs. The controller releases the rest once the machine has the new spec.
    pub(super) async fn charge_until_applied(
        &self,
        charged: &RecordId,
        amounts: &Amounts,
    ) -> Result<Amounts, ComputeError> {
        let held = self.ledger.allocation(charged).await?;
        let held = held.map(|allocation| allocation.amounts);
        Ok(held.unwrap_or_default().max(amounts))
    }

    /// The record that an instance's allocation is for.
    pub(super) fn charged_record(&self, instance: &Instance) -> Result<RecordId, ComputeError> {
        Ok(self.table.id(&instance.id.key()?))
    }

    /// The allocation of an instance.
    pub(super) async fn allocation(&self, instance: &Instance) -> Result<Allocation, ComputeError> {
        Ok(Allocation::new(
            self.charged_record(instance)?,
            instance.organization,
            instance.project,
            self.cost(&instance.spec).await?,
        ))
    }
}

/// Returns what the caller may know of an exceeded quota: a member of a project does not learn what the other projects of its
/// organization use.
pub(super) fn quota_error(principal: &Principal, error: ComputeError) -> ComputeError {
    let ComputeError::Ledger(LedgerError::Exceeded(exceeded)) = &error else {
        return error;
    };
    if exceeded.is_visible_to(principal) {
        return error;
    }
    ComputeError::OrganizationQuota(exceeded.kind.clone())
}
