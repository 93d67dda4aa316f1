//! Capacity and quota: how many machines there are, and how many this account may use.
//!
//! Quotas count running machines: instances, and vCPUs by market. Capacity is per instance type,
//! zone and market. Pending and stopping instances use a machine, stopped ones do not, so that a
//! start can be refused.

use super::{
    Engine, Seq,
    launch::LaunchRequest,
    plan::Plan,
    record::{Instance, Reason},
};
use crate::{
    cloud::address_pool::AddressPool,
    ec2::{
        catalog::{Subnet, TypeSpec},
        error::Refusal,
        knobs::Market,
    },
};

/// How many of the first and the last addresses of a subnet EC2 reserves.
const RESERVED: (u32, u32) = (4, 1);

impl Engine {
    /// Returns the subnet of a launch and the number of instances: as many as possible, and at
    /// least the requested minimum.
    ///
    /// Of the possible subnets it takes the one with the most room; the first one wins a tie.
    ///
    /// # Errors
    ///
    /// The refusal of a quota, `InsufficientFreeAddressesInSubnet` if only addresses are missing,
    /// or `InsufficientInstanceCapacity`.
    pub(super) fn choose_subnet(
        &mut self,
        request: &LaunchRequest,
        plan: &Plan,
    ) -> Result<(Subnet, u32), Refusal> {
        let (min, max) = (u64::from(request.min), u64::from(request.max));
        let max = self.limit_to_quota(&plan.spec, request.market, min, max)?;
        let mut best: Option<(u64, &Subnet)> = None;
        for subnet in &plan.subnets {
            let machines = self.free_machines(&plan.spec.name, &subnet.zone, request.market);
            let count = machines.min(self.pool(subnet).free()).min(max);
            if best.is_none_or(|(best_count, _)| count > best_count) {
                best = Some((count, subnet));
            }
        }
        let Some((count, subnet)) = best else {
            return Err(Refusal::internal());
        };
        if count >= min {
            return Ok((subnet.clone(), u32::try_from(count).unwrap_or(request.max)));
        }
        let machines = self.free_machines(&plan.spec.name, &subnet.zone, request.market);
        if machines >= min {
            let message = format!(
                "There are not enough free addresses in subnet '{}' to satisfy the requested number of instances.",
                subnet.id
            );
            return Err(Refusal::client(
                "InsufficientFreeAddressesInSubnet",
                message,
            ));
        }
        Err(Refusal::capacity(&plan.spec.name, &subnet.zone))
    }

    /// Returns how many of `max` instances the quotas allow.
    ///
    /// # Errors
    ///
    /// `InstanceLimitExceeded`, `VcpuLimitExceeded` or `MaxSpotInstanceCountExceeded`, if a quota
    /// allows fewer than `min`.
    fn limit_to_quota(
        &self,
        spec: &TypeSpec,
        market: Market,
        min: u64,
        max: u64,
    ) -> Result<u64, Refusal> {
        let mut count = max;
        if let Some(limit) = self.core.knobs.instance_quota {
            count = count
                .min(limit.saturating_sub(self.core.usage.in_use().map(|(_, count)| count).sum()));
            if count < min {
                let message = format!(
                    "Your quota allows for {limit} running instance(s). You requested at least {min}."
                );
                return Err(Refusal::client("InstanceLimitExceeded", message));
            }
        }
        let quota = match market {
            Market::OnDemand => self.core.knobs.vcpu_quota,
            Market::Spot => self.core.knobs.spot_vcpu_quota,
        };
        if let Some(limit) = quota {
            let left = limit.saturating_sub(self.vcpus(market));
            count = count.min(left / u64::from(spec.vcpus.max(1)));
            if count < min {
                return Err(match market {
                    Market::OnDemand => Refusal::vcpu_quota(limit),
                    Market::Spot => Refusal::client(
                        "MaxSpotInstanceCountExceeded",
                        "Max spot instance count exceeded",
                    ),
                });
            }
        }
        Ok(count)
    }

    /// Returns the vCPUs in use on a market. A type that the knobs no longer have counts as one
    /// vCPU.
    fn vcpus(&self, market: Market) -> u64 {
        let find_type = |name: &str| self.core.knobs.types.iter().find(|spec| spec.name == name);
        let used = self
            .core
            .usage
            .in_use()
            .filter(|((_, _, used_market), _)| *used_market == market);
        used.map(|((name, _, _), count)| {
            count * find_type(name).map_or(1, |spec| u64::from(spec.vcpus))
        })
        .sum()
    }

    /// Returns how many machines of a kind the knob `capacity` has left.
    fn free_machines(&self, instance_type: &str, zone: &str, market: Market) -> u64 {
        let kind = (instance_type.to_owned(), zone.to_owned(), market);
        self.core.usage.free(&self.core.knobs.capacity, &kind)
    }

    /// Refuses the start of a stopped instance if there is no machine for it.
    ///
    /// # Errors
    ///
    /// The refusal of a quota, or `InsufficientInstanceCapacity`.
    pub(super) fn check_machine(&self, seq: Seq) -> Result<(), Refusal> {
        let Some(instance) = self.instances.get(&seq) else {
            return Ok(());
        };
        let (fixed, name) = (&instance.fixed, &instance.current().instance_type);
        let spec = self.spec(name)?;
        self.limit_to_quota(spec, fixed.market, 1, 1)?;
        if self.free_machines(name, &fixed.zone, fixed.market) == 0 {
            return Err(Refusal::capacity(name, &fixed.zone));
        }
        Ok(())
    }

    /// Reserves a machine for an instance, unless it has one.
    pub(super) fn take_machine(&mut self, seq: Seq) {
        self.set_machine_held(seq, true);
    }

    /// Releases the machine of an instance, if it has one.
    pub(super) fn release_machine(&mut self, seq: Seq) {
        self.set_machine_held(seq, false);
    }

    /// Reserves or releases the machine of an instance, if that changes anything.
    fn set_machine_held(&mut self, seq: Seq, held: bool) {
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        if instance.holds_machine == held {
            return;
        }
        instance.holds_machine = held;
        let kind = (
            instance.current().instance_type.clone(),
            instance.fixed.zone.clone(),
            instance.fixed.market,
        );
        if held {
            self.core.usage.reserve(kind);
        } else {
            self.core.usage.release(&kind);
        }
    }

    /// Returns whether so many additional volumes exceed the volume quota.
    pub(super) fn volume_quota_exceeded(&self, additional: usize) -> bool {
        let quota = self.core.knobs.volume_quota;
        quota.is_some_and(|quota| self.volumes.len() as u64 + additional as u64 > quota)
    }

    /// Returns why a launch fails late, if a rule of the knobs matches its type and zone.
    pub(super) fn late_failure(&self, instance: &Instance) -> Option<Reason> {
        let (name, zone) = (&instance.current().instance_type, &instance.fixed.zone);
        let mut rules = self.core.knobs.late_failures.iter();
        let rule = rules.find(|rule| rule.matches(name, zone))?;
        Some(Reason::new(&rule.code, &rule.message))
    }

    /// Returns the addresses of a subnet.
    pub(super) fn pool(&mut self, subnet: &Subnet) -> &mut AddressPool {
        let pools = &mut self.subnet_pools;
        pools
            .entry(subnet.id.clone())
            .or_insert_with(|| AddressPool::subnet(subnet.cidr, RESERVED))
    }

    /// Returns how many addresses of a subnet are free.
    pub(crate) fn free_addresses(&mut self, subnet: &Subnet) -> u64 {
        self.pool(subnet).free()
    }
}

#[cfg(test)]
impl Engine {
    /// Returns the machines in use, by type, zone and market.
    pub(super) fn machines_in_use(
        &self,
    ) -> std::collections::BTreeMap<crate::cloud::capacity::Kind, u64> {
        let used = self.core.usage.in_use();
        used.map(|(kind, count)| (kind.clone(), count)).collect()
    }
}
