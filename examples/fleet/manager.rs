//! A small fleet manager: it keeps a number of slots filled with running instances.
//!
//! It keeps no state. Each slot has a launch token made of the fleet and the slot, so a launch that is
//! repeated, by a retry or by a restarted manager, is the same launch. Each instance carries its slot
//! as a tag, so one list returns the whole fleet.

use std::{collections::BTreeMap, error::Error, sync::Arc};

use fleetwright::{Result, prelude::*};

const FLEET_TAG: &str = "fleet-id";
const SLOT_TAG: &str = "slot";

/// How many times a slot may lose its instance while the cloud keeps its tokens.
const MAX_ATTEMPTS: u32 = 100;

/// Keeps `size` slots of one fleet filled.
pub(crate) struct FleetManager {
    provisioner: Arc<dyn InstanceProvisioner>,
    fleet: String,
    size: u32,
    filter: InstanceFilter,
}

/// The result of one round of the control loop.
pub(crate) struct Tick {
    /// The instance of each filled slot.
    pub(crate) members: BTreeMap<u32, InstanceInfo>,
    /// The instances that were launched for empty slots.
    pub(crate) launched: Vec<InstanceInfo>,
}

impl Tick {
    /// Returns the running members.
    pub(crate) fn ready(&self) -> Vec<&InstanceInfo> {
        let running = |info: &&InstanceInfo| info.state == CloudInstanceState::Running;
        self.members.values().filter(running).collect()
    }
}

impl FleetManager {
    pub(crate) fn new(
        provisioner: Arc<dyn InstanceProvisioner>,
        fleet: &str,
        size: u32,
    ) -> Result<Self, InvalidValue> {
        let filter = InstanceFilter::tagged(FLEET_TAG, fleet)?;
        Ok(Self {
            provisioner,
            fleet: fleet.to_owned(),
            size,
            filter,
        })
    }

    /// Runs one round of the control loop: one list, then a launch for each empty slot.
    pub(crate) async fn tick(&self) -> Result<Tick, Box<dyn Error>> {
        let members = self.members().await?;
        let mut launched = Vec::new();
        for slot in (0..self.size).filter(|slot| !members.contains_key(slot)) {
            launched.push(self.fill(slot).await?);
        }
        Ok(Tick { members, launched })
    }

    /// Returns the current members by slot, without those that are terminating.
    pub(crate) async fn members(&self) -> Result<BTreeMap<u32, InstanceInfo>> {
        let list = self.provisioner.list_instances(&self.filter).await?;
        let is_kept = |info: &InstanceInfo| info.state != CloudInstanceState::Terminating;
        let slot = |info: &InstanceInfo| info.tags.get(SLOT_TAG)?.parse().ok();
        Ok(list
            .into_iter()
            .filter(is_kept)
            .filter_map(|info| Some((slot(&info)?, info)))
            .collect())
    }

    /// Launches the instance of a slot, or returns the existing one. The tokens of earlier attempts
    /// are spent for as long as the cloud keeps them (`token_after_terminate`); a manager whose
    /// slots live longer stores the attempt of each slot and starts there.
    pub(crate) async fn fill(&self, slot: u32) -> Result<InstanceInfo, Box<dyn Error>> {
        let config = self.config(slot)?;
        let launched = self
            .provisioner
            .launch_next_attempt(&config, 1..=MAX_ATTEMPTS)
            .await?;
        Ok(launched.instance)
    }

    /// Terminates the whole fleet and waits until it is terminated.
    pub(crate) async fn terminate_all(&self, policy: &WaitPolicy) -> Result<Vec<InstanceId>> {
        self.provisioner
            .terminate_matching(&self.filter, policy)
            .await
    }

    fn config(&self, slot: u32) -> Result<InstanceConfig, InvalidValue> {
        InstanceConfig::builder("runner-image-7", "small")
            .tag("ManagedBy", "fleet-example")
            .tag(FLEET_TAG, &self.fleet)
            .tag(SLOT_TAG, slot.to_string())
            .user_data("#!/bin/sh\nexec runner --register\n")
            .disk_size_gb(20)
            .launch_token(format!("{}/slot-{slot}", self.fleet))
            .build()
    }
}
