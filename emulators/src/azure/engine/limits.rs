//! Capacity and quota: how many machines there are, and how many a subscription may use.

use super::Engine;
use crate::{
    azure::{
        catalog::{SizeSpec, same},
        error::Refusal,
        knobs::{LimitCheck, Market},
    },
    cloud::fault::Failure,
};

/// What a new or a larger machine is.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestedVm<'a> {
    pub(super) size: &'a SizeSpec,
    pub(super) location: &'a str,
    pub(super) zone: Option<&'a str>,
    pub(super) market: Market,
}

impl Engine {
    /// Why a machine can not be had: refused at once, or going to fail in its operation.
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

    /// Refuses what a quota does not allow, whenever that is found.
    pub(super) fn quota(&self, wanted: RequestedVm<'_>) -> Result<(), Refusal> {
        self.quota_violation(wanted)
            .map_or(Ok(()), |message| Err(Refusal::not_allowed(message)))
    }

    /// Whether there is a machine left.
    pub(super) fn has_capacity(&self, wanted: RequestedVm<'_>) -> bool {
        let zone = wanted.zone.unwrap_or_default().to_owned();
        let kind = (wanted.size.name.clone(), zone, wanted.market);
        self.core.usage.free(&self.core.knobs.capacity, &kind) > 0
    }

    /// The words about the first quota that a machine would exceed.
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

    /// How many virtual machines a location has.
    pub(crate) fn vms_in(&self, location: &str) -> u64 {
        let existing = self.existing.get(location);
        existing.map_or(0, |machines| {
            machines.in_use().map(|(_, count)| count).sum()
        })
    }

    /// How many cores of a family a location has.
    pub(crate) fn cores_of_family(&self, location: &str, family: &str) -> u64 {
        self.cores_of(location, |size, market| {
            let mut sizes = self.core.knobs.sizes.iter();
            let spec = sizes.find(|spec| same(&spec.name, size));
            market == Market::OnDemand && spec.is_some_and(|spec| spec.family == family)
        })
    }

    /// How many cores of a market a location has.
    pub(crate) fn cores_in(&self, location: &str, counted: Market) -> u64 {
        self.cores_of(location, |_, market| market == counted)
    }
}

/// The words for a machine that is missing, by how narrow the wish is.
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

/// The words for a quota, in which clients look for the kind and the numbers.
pub(crate) fn quota_text(kind: &str, place: &str, limit: u64, used: u64, more: u64) -> String {
    format!(
        "Operation could not be completed as it results in exceeding approved {kind} quota. Additional details - \
         Deployment Model: Resource Manager, Location: {place}, Current Limit: {limit}, Current Usage: {used}, \
         Additional Required: {more}, (Minimum) New Limit Required: {}.",
        used + more
    )
}
