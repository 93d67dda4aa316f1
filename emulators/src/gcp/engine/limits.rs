//! Capacity, quota and addresses: how much there is, and how much a project may use.

use std::net::Ipv4Addr;

use super::{Engine, record::Instance, spec::InstanceSpec};
use crate::{
    cloud::{address_pool::AddressPool, fault::Failure, index::Seq, knobs::Market},
    gcp::{
        catalog::{MachineType, region_of},
        error::Refusal,
        knobs::LimitCheck,
    },
};

/// The first and the last addresses of a subnetwork that Compute Engine keeps.
const RESERVED: (u32, u32) = (2, 2);

/// An exhausted limit.
struct ExhaustedLimit {
    refused: LimitCheck,
    code: String,
    refusal: Refusal,
}

impl Engine {
    /// Refuses an insert beyond a limit, or returns why its operation fails.
    pub(super) fn check_limits(&mut self, spec: &InstanceSpec) -> Result<Vec<Failure>, Refusal> {
        self.check_limits_with_pending(spec, 0)
    }

    /// The same, with so many more like it already on their way.
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

    /// Refuses a start without a machine or quota, or returns why its operation fails.
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

    fn late_failure(&self, machine_type: &str, zone: &str) -> Option<Failure> {
        let mut rules = self.core.knobs.late_failures.iter();
        let rule = rules.find(|rule| rule.matches(machine_type, zone))?;
        Some(Failure::new(&rule.code, &rule.message))
    }

    fn instance_quota_reached(&self, region: &str, more: u64) -> Option<ExhaustedLimit> {
        let limit = self.core.knobs.instance_quota?;
        let count = self.instances_in(region);
        (count + more >= limit).then(|| self.quota("INSTANCES", limit, region))
    }

    /// How much of each quota of a region is used: vCPUs, vCPUs of spot instances, instances.
    pub(crate) fn quota_usage(&self, region: &str) -> [(&'static str, u64); 3] {
        [
            ("CPUS", self.cpus_in_use(region, Market::OnDemand)),
            ("PREEMPTIBLE_CPUS", self.cpus_in_use(region, Market::Spot)),
            ("INSTANCES", self.instances_in(region)),
        ]
    }

    fn instances_in(&self, region: &str) -> u64 {
        let here = |instance: &&Instance| region_of(&instance.fixed.zone) == region;
        let alive = self
            .instances
            .values()
            .filter(|instance| !instance.is_gone());
        alive.filter(here).count() as u64
    }

    fn cpus_in_use(&self, region: &str, market: Market) -> u64 {
        let used = self.core.usage.in_use();
        let here = used.filter(|((_, zone, on), _)| *on == market && region_of(zone) == region);
        here.map(|((name, _, _), count)| count * self.cpus(name))
            .sum()
    }

    fn cpus(&self, machine_type: &str) -> u64 {
        let spec = self.machine_type(machine_type);
        spec.map_or(1, |spec| u64::from(spec.cpus))
    }

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

    fn quota(&self, metric: &str, limit: u64, region: &str) -> ExhaustedLimit {
        ExhaustedLimit {
            refused: self.core.knobs.quota_check,
            code: "QUOTA_EXCEEDED".to_owned(),
            refusal: Refusal::quota(metric, limit, region),
        }
    }

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

    pub(super) fn take_machine(&mut self, seq: Seq) {
        if let Some(instance) = self.instances.get_mut(&seq) {
            if !std::mem::replace(&mut instance.holds_machine, true) {
                self.core.usage.reserve(instance.machine());
            }
        }
    }

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

    /// Takes an address for a new instance, unless none is free.
    pub(super) fn take_internal_ip(&mut self, region: &str, subnetwork: &str) -> Option<Ipv4Addr> {
        self.internal_pool(region, subnetwork).take()
    }

    /// The addresses of a subnetwork.
    pub(super) fn internal_pool(&mut self, region: &str, name: &str) -> &mut AddressPool {
        let of =
            |known: &&crate::gcp::catalog::Subnetwork| known.region == region && known.name == name;
        let cidr = self.core.knobs.subnetworks.iter().find(of);
        let cidr = cidr.map_or_else(ipnet::Ipv4Net::default, |known| known.cidr);
        self.pools
            .entry((region.to_owned(), name.to_owned()))
            .or_insert_with(|| AddressPool::subnet(cidr, RESERVED))
    }
}

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
