//! Capacity and quota: how many machines there are, and how many this account may use.

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
const KEPT: (u32, u32) = (4, 1);

impl Engine {
    /// Returns the subnet of a launch and the number of instances: as many as possible, and at
    /// least the requested minimum.
    pub(super) fn place(
        &mut self,
        request: &LaunchRequest,
        plan: &Plan,
    ) -> Result<(Subnet, u32), Refusal> {
        let (least, most) = (u64::from(request.min), u64::from(request.max));
        let most = self.within_quota(&plan.spec, request.market, least, most)?;
        let mut best: Option<(u64, &Subnet)> = None;
        for subnet in &plan.places {
            let machines = self.free_machines(&plan.spec.name, &subnet.zone, request.market);
            let fits = machines.min(self.pool(subnet).free()).min(most);
            if best.is_none_or(|(most_so_far, _)| fits > most_so_far) {
                best = Some((fits, subnet));
            }
        }
        let Some((fits, subnet)) = best else {
            return Err(Refusal::internal());
        };
        if fits >= least {
            return Ok((subnet.clone(), u32::try_from(fits).unwrap_or(request.max)));
        }
        let machines = self.free_machines(&plan.spec.name, &subnet.zone, request.market);
        if machines >= least {
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

    /// Returns how many of `most` the quotas allow, or the quota that allows fewer than `least`.
    fn within_quota(
        &self,
        spec: &TypeSpec,
        market: Market,
        least: u64,
        most: u64,
    ) -> Result<u64, Refusal> {
        let mut fits = most;
        if let Some(limit) = self.core.knobs.instance_quota {
            fits = fits
                .min(limit.saturating_sub(self.core.usage.in_use().map(|(_, count)| count).sum()));
            if fits < least {
                let message = format!(
                    "Your quota allows for {limit} running instance(s). You requested at least {least}."
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
            fits = fits.min(left / u64::from(spec.vcpus.max(1)));
            if fits < least {
                return Err(match market {
                    Market::OnDemand => Refusal::vcpu_quota(limit),
                    Market::Spot => Refusal::client(
                        "MaxSpotInstanceCountExceeded",
                        "Max spot instance count exceeded",
                    ),
                });
            }
        }
        Ok(fits)
    }

    /// Returns the vCPUs in use on a market.
    fn vcpus(&self, market: Market) -> u64 {
        let of = |name: &str| self.core.knobs.types.iter().find(|spec| spec.name == name);
        let used = self
            .core
            .usage
            .in_use()
            .filter(|((_, _, on), _)| *on == market);
        used.map(|((name, _, _), count)| count * of(name).map_or(1, |spec| u64::from(spec.vcpus)))
            .sum()
    }

    /// Returns how many machines of a kind are free.
    fn free_machines(&self, instance_type: &str, zone: &str, market: Market) -> u64 {
        let kind = (instance_type.to_owned(), zone.to_owned(), market);
        self.core.usage.free(&self.core.knobs.capacity, &kind)
    }

    /// Refuses the start of a stopped instance if there is no machine for it.
    pub(super) fn check_machine(&self, seq: Seq) -> Result<(), Refusal> {
        let Some(instance) = self.instances.get(&seq) else {
            return Ok(());
        };
        let (fixed, name) = (&instance.fixed, &instance.current().instance_type);
        let spec = self.spec(name)?;
        self.within_quota(spec, fixed.market, 1, 1)?;
        if self.free_machines(name, &fixed.zone, fixed.market) == 0 {
            return Err(Refusal::capacity(name, &fixed.zone));
        }
        Ok(())
    }

    pub(super) fn take_machine(&mut self, seq: Seq) {
        self.hold(seq, true);
    }

    pub(super) fn release_machine(&mut self, seq: Seq) {
        self.hold(seq, false);
    }

    fn hold(&mut self, seq: Seq, hold: bool) {
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        if instance.holds_machine == hold {
            return;
        }
        instance.holds_machine = hold;
        let kind = (
            instance.current().instance_type.clone(),
            instance.fixed.zone.clone(),
            instance.fixed.market,
        );
        if hold {
            self.core.usage.reserve(kind);
        } else {
            self.core.usage.release(&kind);
        }
    }

    pub(super) fn volume_quota_exceeded(&self, more: usize) -> bool {
        let quota = self.core.knobs.volume_quota;
        quota.is_some_and(|quota| self.volumes.len() as u64 + more as u64 > quota)
    }

    /// Returns why a launch fails late, if the knobs say so.
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
            .or_insert_with(|| AddressPool::subnet(subnet.cidr, KEPT))
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
