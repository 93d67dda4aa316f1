//! A fleet manager in one page: it keeps a number of slots filled with running instances.
//!
//! It remembers nothing that matters. Each slot's launch has a token made of the fleet, the slot and
//! the attempt, so a launch that is repeated, by a retry or by a restarted manager, is the same
//! launch; and each instance carries its slot as a tag, so one list tells everything.

use std::{collections::BTreeMap, error::Error, sync::Arc};

use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceProvisioner, InstanceProvisionerExt, InvalidValue, Result, wait::WaitPolicy,
};

const FLEET_TAG: &str = "fleet-id";
const SLOT_TAG: &str = "slot";

/// Keeps `size` slots of one fleet filled.
pub(crate) struct FleetManager {
    provisioner: Arc<dyn InstanceProvisioner>,
    fleet: String,
    size: u32,
    filter: InstanceFilter,
}

/// What one look at the fleet showed, and what was done about it.
pub(crate) struct Tick {
    /// The instances of each filled slot.
    pub(crate) members: BTreeMap<u32, InstanceInfo>,
    /// What was launched because a slot was empty.
    pub(crate) launched: Vec<InstanceInfo>,
}

impl Tick {
    /// Those that run.
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

    /// One round of the control loop: one list, then a launch for each empty slot.
    pub(crate) async fn tick(&self) -> Result<Tick, Box<dyn Error>> {
        let members = self.members().await?;
        let mut launched = Vec::new();
        for slot in (0..self.size).filter(|slot| !members.contains_key(slot)) {
            launched.push(self.fill(slot).await?);
        }
        Ok(Tick { members, launched })
    }

    /// The fleet as it is, by slot. Instances that are going away do not count.
    pub(crate) async fn members(&self) -> Result<BTreeMap<u32, InstanceInfo>> {
        let list = self.provisioner.list_instances(&self.filter).await?;
        let stays = |info: &InstanceInfo| info.state != CloudInstanceState::Terminating;
        let slot = |info: &InstanceInfo| info.tags.get(SLOT_TAG)?.parse().ok();
        Ok(list
            .into_iter()
            .filter(stays)
            .filter_map(|info| Some((slot(&info)?, info)))
            .collect())
    }

    /// Launches the instance of a slot. The tokens of earlier attempts are spent, so the first one
    /// that is not names the launch that is wanted now. That holds for as long as the cloud
    /// remembers spent tokens (`token_after_terminate`); a manager that must not forget sooner
    /// stores the attempt of each slot.
    pub(crate) async fn fill(&self, slot: u32) -> Result<InstanceInfo, Box<dyn Error>> {
        let mut attempt = 1;
        loop {
            let config = self.config(slot, attempt)?;
            match self.provisioner.launch_instance(&config).await {
                Err(error) if error.kind() == ErrorKind::TokenSpent => attempt += 1,
                answer => return Ok(answer?),
            }
        }
    }

    /// Terminates the whole fleet and waits until it is gone.
    pub(crate) async fn terminate_all(&self, policy: &WaitPolicy) -> Result<Vec<InstanceId>> {
        self.provisioner
            .terminate_matching(&self.filter, policy)
            .await
    }

    fn config(&self, slot: u32, attempt: u32) -> Result<InstanceConfig, InvalidValue> {
        InstanceConfig::builder("runner-image-7", "small")
            .tag("ManagedBy", "fleet-example")
            .tag(FLEET_TAG, &self.fleet)
            .tag(SLOT_TAG, slot.to_string())
            .user_data("#!/bin/sh\nexec runner --register\n")
            .disk_size_gb(20)
            .launch_token(format!("{}/slot-{slot}/attempt-{attempt}", self.fleet))
            .build()
    }
}
