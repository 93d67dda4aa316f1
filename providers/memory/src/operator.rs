//! Changes from outside: what other people, other programs and the cloud itself do.

use std::{num::NonZeroU32, sync::Arc};

use fleetwright::{
    Call, InstanceConfig, InstanceId, InstanceInfo, Operation, Result, TagChange, Zone,
};

use crate::{
    Capacity, Refused,
    cloud::Shared,
    convert,
    engine::{Order, World},
    error::Refusal,
};

/// Acts on the account past every handle: no wire, no faults, no count of calls or of records
/// touched, and no zone is out of its reach.
#[derive(Clone, Debug)]
pub struct Operator {
    shared: Arc<Shared>,
}

impl Operator {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Launches an instance that no handle knows of: a foreign one, with tags of its own.
    pub fn launch(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let (count, doom) = (NonZeroU32::MIN, None);
        self.act(Operation::LaunchInstance, |world| {
            let launched = world.launch(&Order {
                config,
                count,
                doom,
            })?;
            let first = launched.views.into_iter().next();
            let view = first.ok_or_else(|| launched.refusal.unwrap_or(Refused::Capacity.into()))?;
            Ok(convert::info(view, None))
        })
    }

    /// Stops an instance, as somebody at the cloud's console would.
    pub fn stop(&self, id: &InstanceId) -> Result<()> {
        self.act(Operation::StopInstance, |world| {
            world.stop(id, "stopped from outside")
        })
    }

    /// Starts an instance.
    pub fn start(&self, id: &InstanceId) -> Result<()> {
        self.act(Operation::StartInstance, |world| world.start(id).map(drop))
    }

    /// Terminates an instance, as somebody at the cloud's console would, or the cloud that takes
    /// a spot machine back.
    pub fn terminate(&self, id: &InstanceId) -> Result<()> {
        self.act(Operation::TerminateInstance, |world| {
            world.terminate(id, "terminated from outside")
        })
    }

    /// Changes tags of an instance.
    pub fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.act(Operation::UpdateTags, |world| world.update_tags(id, change))
    }

    /// Makes a zone unreachable: calls to it fail, and lists have a gap there.
    pub fn cut_off(&self, zone: Zone) {
        self.shared.look(|world| world.set_zone_down(zone, true));
    }

    /// Makes a zone reachable again.
    pub fn reconnect(&self, zone: Zone) {
        self.shared.look(|world| world.set_zone_down(zone, false));
    }

    /// Replaces all limits on how many machines can run at once.
    pub fn set_capacity(&self, limits: Vec<Capacity>) {
        self.shared.look(|world| world.knobs.capacity = limits);
    }

    /// Sets the account's quota, or takes it away.
    pub fn set_quota(&self, instances: Option<u64>) {
        self.shared.look(|world| world.knobs.quota = instances);
    }

    fn act<T>(
        &self,
        operation: Operation,
        work: impl FnOnce(&mut World) -> Result<T, Refusal>,
    ) -> Result<T> {
        let call = Call::new("memory operator", operation);
        let answer = self.shared.look(|world| world.past_the_wire(work));
        answer.map_err(|refusal| refusal.into_error(&call, std::time::Duration::ZERO))
    }
}
