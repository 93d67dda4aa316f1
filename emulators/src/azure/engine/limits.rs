//! Capacity and quota: how many machines there are, and how many a subscription may use.
//!
//! Capacity counts allocated machines; quota counts all existing ones, allocated or not. The knobs
//! decide whether a violation is refused immediately or fails the operation.
//!
//! | limit | immediately | in the operation |
//! | --- | --- | --- |
//! | quota | 409 `OperationNotAllowed` (default) | `OperationNotAllowed` |
//! | capacity | 409 `SkuNotAvailable` | `AllocationFailed` and its variants (default) |

use super::Engine;
use crate::{
    azure::{
        catalog::{SizeSpec, same},
        error::Refusal,
        knobs::{LimitCheck, Market},
    },
    cloud::fault::Failure,
};

/// A new or resized virtual machine, as the limits see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestedVm<'a> {
    /// The size.
    pub(super) size: &'a SizeSpec,
    /// The location.
    pub(super) location: &'a str,
    /// The availability zone.
    pub(super) zone: Option<&'a str>,
    /// Regular or spot.
    pub(super) market: Market,
}

impl Engine {
    /// Checks quota, then capacity. Returns the failure of the operation if the knobs report the
    /// problem there.
    ///
    /// # Errors
    ///
    /// The refusal, if the knobs report the problem immediately.
    pub(super) fn limits(&self, wanted: RequestedVm<'_>) -> Result<Option<Failure>, Refusal> {
        if let Some(message) = self.quota_violation(wanted) {
            match self.core.knobs.quota_check {
                LimitCheck::Immediate => return Err(Refusal::not_allowed(message)),
                LimitCheck::InOperation => {
                    return Ok(Some(Failure::new("OperationNotAllowed", message)));
                }
            }
        }
        if self.has_capacity(wanted) {
            return Ok(None);
        }
        match self.core.knobs.capacity_check {
            LimitCheck::Immediate => Err(Refusal::sku_not_available(
                &wanted.size.name,
                wanted.location,
            )),
            LimitCheck::InOperation => Ok(Some(allocation_failure(wanted))),
        }
    }

    /// Refuses a machine that exceeds a quota with 409 `OperationNotAllowed`, whatever the knobs
    /// say.
    pub(super) fn quota(&self, wanted: RequestedVm<'_>) -> Result<(), Refusal> {
        self.quota_violation(wanted)
            .map_or(Ok(()), |message| Err(Refusal::not_allowed(message)))
    }

    /// Whether there is a free machine.
    pub(super) fn has_capacity(&self, wanted: RequestedVm<'_>) -> bool {
        let zone = wanted.zone.unwrap_or_default().to_owned();
        let kind = (wanted.size.name.clone(), zone, wanted.market);
        self.core.usage.free(&self.core.knobs.capacity, &kind) > 0
    }

    /// Returns the message for the first quota that a machine would exceed: the number of machines,
    /// then vCPUs of the spot market, or of the family and of the location.
    fn quota_violation(&self, wanted: RequestedVm<'_>) -> Option<String> {
        let more = u64::from(wanted.size.cores);
        let place = wanted.location;
        if let Some(limit) = self.core.knobs.vm_quota {
            let used = self.vms_in(place);
            if used + 1 > limit {
                return Some(quota_text("virtualMachines", place, limit, used, 1));
            }
        }
        match wanted.market {
            Market::Spot => {
                let limit = self.core.knobs.spot_vcpu_quota?;
                let used = self.cores_of(place, |_, market| market == Market::Spot);
                (used + more > limit)
                    .then(|| quota_text("LowPriorityCores", place, limit, used, more))
            }
            Market::OnDemand => self.regular_quota_violation(wanted, more),
        }
    }

    /// Returns the message for the first quota of regular machines that would be exceeded.
    fn regular_quota_violation(&self, wanted: RequestedVm<'_>, more: u64) -> Option<String> {
        let (place, family) = (wanted.location, &wanted.size.family);
        if let Some(limit) = self.core.knobs.family_quota.get(family).copied() {
            let used = self.cores_of_family(place, family);
            if used + more > limit {
                return Some(quota_text(
                    &format!("{family} Cores"),
                    place,
                    limit,
                    used,
                    more,
                ));
            }
        }
        let limit = self.core.knobs.vcpu_quota?;
        let used = self.cores_of(place, |_, market| market == Market::OnDemand);
        (used + more > limit).then(|| quota_text("Total Regional Cores", place, limit, used, more))
    }

    /// Returns how many virtual machines exist in a location.
    pub(crate) fn vms_in(&self, location: &str) -> u64 {
        let existing = self.existing.get(location);
        existing.map_or(0, |machines| {
            machines.in_use().map(|(_, count)| count).sum()
        })
    }

    /// Returns how many vCPUs of regular machines of a family exist in a location.
    pub(crate) fn cores_of_family(&self, location: &str, family: &str) -> u64 {
        self.cores_of(location, |size, market| {
            let mut sizes = self.core.knobs.sizes.iter();
            let spec = sizes.find(|spec| same(&spec.name, size));
            market == Market::OnDemand && spec.is_some_and(|spec| spec.family == family)
        })
    }

    /// Returns how many vCPUs of a market exist in a location.
    pub(crate) fn cores_in(&self, location: &str, counted: Market) -> u64 {
        self.cores_of(location, |_, market| market == counted)
    }
}

/// Returns the failure for missing capacity. The code depends on the request: `AllocationFailed`,
/// `ZonalAllocationFailed`, `OverconstrainedAllocationRequest` (spot) or
/// `OverconstrainedZonalAllocationRequest` (spot in a zone).
pub(super) fn allocation_failure(wanted: RequestedVm<'_>) -> Failure {
    let code = match (wanted.zone, wanted.market) {
        (None, Market::OnDemand) => "AllocationFailed",
        (Some(_), Market::OnDemand) => "ZonalAllocationFailed",
        (None, Market::Spot) => "OverconstrainedAllocationRequest",
        (Some(_), Market::Spot) => "OverconstrainedZonalAllocationRequest",
    };
    let (size, place) = (&wanted.size.name, wanted.location);
    let place = wanted.zone.map_or_else(
        || place.to_owned(),
        |zone| format!("zone {zone} of {place}"),
    );
    let message = format!(
        "Allocation failed. We do not have sufficient capacity for the requested VM size {size} in {place}."
    );
    Failure::new(code, message)
}

/// Returns the message for an exceeded quota. Clients parse the kind of quota and the numbers from
/// it.
pub(crate) fn quota_text(kind: &str, place: &str, limit: u64, used: u64, more: u64) -> String {
    format!(
        "Operation could not be completed as it results in exceeding approved {kind} quota. Additional details - \
         Deployment Model: Resource Manager, Location: {place}, Current Limit: {limit}, Current Usage: {used}, \
         Additional Required: {more}, (Minimum) New Limit Required: {}.",
        used + more
    )
}
