//! What an instance is charged for.

use fleetwright::PublicAddress;
use fleetwright_identity::{Allocation, Amounts, QuotaKind};
use fleetwright_store::RecordId;

use super::Instances;
use crate::{
    ComputeError,
    instance::{Instance, InstanceSpec},
};

impl Instances {
    /// One server, the graphics processors of its flavor, and its public address. By the flavor's record alone: what a retired
    /// flavor cost is what it costs.
    pub(super) fn price(&self, spec: &InstanceSpec) -> Result<Amounts, ComputeError> {
        let flavor = self.catalog.flavor(&self.service, &spec.flavor);
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

    /// What its allocation pays for.
    pub(super) fn paid(&self, instance: &Instance) -> Result<RecordId, ComputeError> {
        Ok(self.table.id(&instance.id.key()?))
    }

    /// The whole payment.
    pub(super) fn payment(&self, instance: &Instance) -> Result<Allocation, ComputeError> {
        Ok(Allocation::new(
            self.paid(instance)?,
            instance.organization,
            instance.project,
            self.price(&instance.spec)?,
        ))
    }
}
