//! Capacity, quota and addresses: how much there is, and how much a project may use.
//!
//! The checks run in this order: organization policies, late failures of the knobs, the quotas `INSTANCES` and `CPUS` or
//! `PREEMPTIBLE_CPUS`, capacity, internal addresses. Quotas are per region, capacity is per
//! machine type, zone and market. The knobs `policy_check`, `quota_check` and `stockout_check` decide
//! whether a limit is reported by the call or by its operation.

use std::net::Ipv4Addr;

use super::{Engine, record::Instance, spec::InstanceSpec};
use crate::{
    cloud::{address_pool::AddressPool, fault::Failure, index::Seq, knobs::Market},
    gcp::{
        catalog::{MachineType, region_of},
        error::{EXTERNAL_ACCESS, Refusal},
        knobs::LimitCheck,
    },
};

/// How many of the first and of the last addresses of a subnetwork Compute Engine reserves.
const RESERVED: (u32, u32) = (2, 2);

/// A limit that a request would exceed.
struct ExhaustedLimit {
    /// Whether the call or its operation reports it.
    refused: LimitCheck,
    /// The error code in the operation.
    code: String,
    /// The error of the call; the operation uses its message.
    refusal: Refusal,
}

impl Engine {
    /// Checks the limits of an insert.
    ///
    /// Returns the errors with which its operation will fail; empty means that it succeeds.
    ///
    /// # Errors
    ///
    /// The refusal of a limit that the knobs report immediately.
    pub(super) fn check_limits(&mut self, spec: &InstanceSpec) -> Result<Vec<Failure>, Refusal> {
        self.check_limits_with_pending(spec, 0)
    }

    /// Checks the limits of an insert as if `more` instances of the same spec had been created
    /// before.
    ///
    /// Returns the errors with which its operation will fail; empty means that it succeeds.
    ///
    /// # Errors
    ///
    /// The refusal of a limit that the knobs report immediately.
    pub(super) fn check_limits_with_pending(
        &mut self,
        spec: &InstanceSpec,
        more: u64,
    ) -> Result<Vec<Failure>, Refusal> {
        let kind = (
            spec.machine_type.clone(),
            spec.zone.clone(),
            spec.scheduling.market(),
        );
        let region = region_of(&spec.zone).to_owned();
        if let Some(violated) = self.violated_policy(spec) {
            return limit_result(violated);
        }
        if let Some(failure) = self.late_failure(&kind.0, &spec.zone) {
            return Ok(vec![failure]);
        }
        let exhausted = self
            .instance_quota_reached(&region, more)
            .or_else(|| self.cpu_quota_reached(&kind.0, &region, kind.2, more))
            .or_else(|| self.stockout(&kind, &spec.project, more));
        if let Some(exhausted) = exhausted {
            return limit_result(exhausted);
        }
        if self.internal_pool(&region, &spec.subnetwork).free() <= more {
            let message = format!(
                "IP space of 'projects/{}/regions/{region}/subnetworks/{}' is exhausted.",
                spec.project, spec.subnetwork
            );
            return Ok(vec![Failure::new("IP_SPACE_EXHAUSTED", message)]);
        }
        Ok(Vec::new())
    }

    /// Checks the limits of a start or resume: vCPU quota and capacity. The instance keeps its
    /// address and is already counted in `INSTANCES`.
    ///
    /// Returns the errors with which its operation will fail; empty means that it succeeds.
    ///
    /// # Errors
    ///
    /// The refusal of a limit that the knobs report immediately.
    pub(super) fn check_start(&self, instance: &Instance) -> Result<Vec<Failure>, Refusal> {
        let kind = instance.machine();
        if let Some(failure) = self.late_failure(&kind.0, &kind.1) {
            return Ok(vec![failure]);
        }
        let region = region_of(&kind.1);
        let exhausted = self
            .cpu_quota_reached(&kind.0, region, kind.2, 0)
            .or_else(|| self.stockout(&kind, &instance.fixed.project, 0));
        exhausted.map_or(Ok(Vec::new()), limit_result)
    }

    /// Returns the first organization policy that a new instance violates.
    fn violated_policy(&self, spec: &InstanceSpec) -> Option<ExhaustedLimit> {
        let knobs = &self.core.knobs;
        let violates =
            |constraint: &&String| *constraint != EXTERNAL_ACCESS || spec.access.is_some();
        let constraint = knobs.organization_policies.iter().find(violates)?;
        Some(ExhaustedLimit {
            refused: knobs.policy_check,
            code: "CONDITION_NOT_MET".to_owned(),
            refusal: Refusal::policy(constraint, &spec.project, &spec.path()),
        })
    }

    /// Returns the first late failure of the knobs that matches machine type and zone.
    fn late_failure(&self, machine_type: &str, zone: &str) -> Option<Failure> {
        let mut rules = self.core.knobs.late_failures.iter();
        let rule = rules.find(|rule| rule.matches(machine_type, zone))?;
        Some(Failure::new(&rule.code, &rule.message))
    }

    /// Returns the quota of instances, if `more` and one further instance exceed it. Stopped
    /// instances count.
    fn instance_quota_reached(&self, region: &str, more: u64) -> Option<ExhaustedLimit> {
        let limit = self.core.knobs.instance_quota?;
        let count = self.instances_in(region);
        (count + more >= limit).then(|| self.quota("INSTANCES", limit, region))
    }

    /// Returns how much of each quota of a region is used: vCPUs, vCPUs of spot instances,
    /// instances.
    pub(crate) fn quota_usage(&self, region: &str) -> [(&'static str, u64); 3] {
        [
            ("CPUS", self.cpus_in_use(region, Market::OnDemand)),
            ("PREEMPTIBLE_CPUS", self.cpus_in_use(region, Market::Spot)),
            ("INSTANCES", self.instances_in(region)),
        ]
    }

    /// Counts the instances of a region in every project, running or not.
    fn instances_in(&self, region: &str) -> u64 {
        let in_region = |instance: &&Instance| region_of(&instance.fixed.zone) == region;
        let alive = self
            .instances
            .values()
            .filter(|instance| !instance.is_gone());
        alive.filter(in_region).count() as u64
    }

    /// Counts the vCPUs of the machines in use on a market of a region.
    fn cpus_in_use(&self, region: &str, market: Market) -> u64 {
        let used = self.core.usage.in_use();
        let in_region =
            used.filter(|((_, zone, on), _)| *on == market && region_of(zone) == region);
        in_region
            .map(|((name, _, _), count)| count * self.cpus(name))
            .sum()
    }

    /// Returns the vCPUs of a machine type; 1 if the knobs no longer have it.
    fn cpus(&self, machine_type: &str) -> u64 {
        let spec = self.machine_type(machine_type);
        spec.map_or(1, |spec| u64::from(spec.cpus))
    }

    /// Returns the vCPU quota of the market, if `more` and one further instance exceed it.
    fn cpu_quota_reached(
        &self,
        machine_type: &str,
        region: &str,
        market: Market,
        more: u64,
    ) -> Option<ExhaustedLimit> {
        let (limit, metric) = match market {
            Market::OnDemand => (self.core.knobs.cpu_quota?, "CPUS"),
            Market::Spot => (self.core.knobs.spot_cpu_quota?, "PREEMPTIBLE_CPUS"),
        };
        let used = self.cpus_in_use(region, market);
        let needed = self.cpus(machine_type) * (more + 1);
        (used + needed > limit).then(|| self.quota(metric, limit, region))
    }

    /// Creates the error of an exhausted quota.
    fn quota(&self, metric: &str, limit: u64, region: &str) -> ExhaustedLimit {
        ExhaustedLimit {
            refused: self.core.knobs.quota_check,
            code: "QUOTA_EXCEEDED".to_owned(),
            refusal: Refusal::quota(metric, limit, region),
        }
    }

    /// Returns the missing capacity, if no machine is left after `more` instances.
    fn stockout(
        &self,
        kind: &(String, String, Market),
        project: &str,
        more: u64,
    ) -> Option<ExhaustedLimit> {
        (self.core.usage.free(&self.core.knobs.capacity, kind) <= more).then(|| {
            let zone = format!("projects/{project}/zones/{}", kind.1);
            ExhaustedLimit {
                refused: self.core.knobs.stockout_check,
                code: self.core.knobs.stockout_code.clone(),
                refusal: Refusal::stockout(&zone),
            }
        })
    }

    /// Reserves a machine for an instance, unless it has one.
    pub(super) fn take_machine(&mut self, seq: Seq) {
        if let Some(instance) = self.instances.get_mut(&seq) {
            if !std::mem::replace(&mut instance.holds_machine, true) {
                self.core.usage.reserve(instance.machine());
            }
        }
    }

    /// Releases the machine of an instance, if it has one.
    pub(super) fn release_machine(&mut self, seq: Seq) {
        if let Some(instance) = self.instances.get_mut(&seq) {
            if std::mem::replace(&mut instance.holds_machine, false) {
                self.core.usage.release(&instance.machine());
            }
        }
    }

    /// Returns a machine type by its name.
    pub(crate) fn machine_type(&self, name: &str) -> Option<&MachineType> {
        self.core
            .knobs
            .machine_types
            .iter()
            .find(|spec| spec.name == name)
    }

    /// Takes an address for a new instance; `None` if none is free.
    pub(super) fn take_internal_ip(&mut self, region: &str, subnetwork: &str) -> Option<Ipv4Addr> {
        self.internal_pool(region, subnetwork).take()
    }

    /// Returns the addresses of a subnetwork, of which an unknown one has none.
    pub(super) fn internal_pool(&mut self, region: &str, name: &str) -> &mut AddressPool {
        let is_named =
            |known: &&crate::gcp::catalog::Subnetwork| known.region == region && known.name == name;
        let cidr = self.core.knobs.subnetworks.iter().find(is_named);
        let cidr = cidr.map_or_else(ipnet::Ipv4Net::default, |known| known.cidr);
        self.pools
            .entry((region.to_owned(), name.to_owned()))
            .or_insert_with(|| AddressPool::subnet(cidr, RESERVED))
    }
}

/// Reports an exhausted limit by the call or by its operation.
fn limit_result(exhausted: ExhaustedLimit) -> Result<Vec<Failure>, Refusal> {
    match exhausted.refused {
        LimitCheck::Immediate => Err(exhausted.refusal),
        LimitCheck::InOperation => Ok(vec![Failure::new(
            exhausted.code,
            exhausted.refusal.message,
        )]),
    }
}

#[cfg(test)]
impl Engine {
    /// How many machines are in use.
    pub(crate) fn machines_in_use(&self) -> u64 {
        self.core.usage.in_use().map(|(_, count)| count).sum()
    }
}
