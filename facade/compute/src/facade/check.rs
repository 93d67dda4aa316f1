//! Checks of the parts of a façade that would otherwise be ignored in silence.

use std::{collections::BTreeMap, sync::Arc};

use fleetwright::InstanceProvisioner;
use fleetwright_region::{
    controller as servers,
    ids::RegionId,
    mapping::{Provider, RegionMapping},
    monitor,
    setting::InvalidSetting,
    snapshot::{ImageDeleter, SnapshotPolicy},
};

use super::FacadeError;
use crate::controller::ControllerPolicy;

/// Refuses a policy that makes a loop busy or a protection void.
pub(super) fn check_policies(
    instances: &ControllerPolicy,
    servers: &servers::ControllerPolicy,
    monitor: &monitor::Policy,
    snapshots: &SnapshotPolicy,
) -> Result<(), FacadeError> {
    let named =
        |policy: &'static str| move |source: InvalidSetting| FacadeError::Policy { policy, source };
    instances.check().map_err(named("instance_policy"))?;
    servers.check().map_err(named("server_policy"))?;
    monitor.check().map_err(named("monitor_policy"))?;
    snapshots.check().map_err(named("snapshot_policy"))
}

/// Refuses a mapping for another provider than that of the region's provisioner. A provisioner that is none of ours can have any.
pub(super) fn check_provider(
    mapping: &RegionMapping,
    provisioner: &dyn InstanceProvisioner,
) -> Result<(), FacadeError> {
    let found = provisioner.capabilities().provider.as_str();
    let is_known = Provider::ALL.iter().any(|known| known.as_str() == found);
    if !is_known || mapping.provider.as_str() == found {
        return Ok(());
    }
    Err(FacadeError::OtherProvider {
        region: mapping.region.clone(),
        mapping: mapping.provider,
        provisioner: found.to_owned(),
    })
}

/// Refuses an image deleter for a region that the façade does not have.
pub(super) fn check_deleters(
    deleters: &BTreeMap<RegionId, Arc<dyn ImageDeleter>>,
    regions: &[&RegionId],
) -> Result<(), FacadeError> {
    match deleters.keys().find(|region| !regions.contains(region)) {
        Some(region) => Err(FacadeError::NoRegionForDeleter(region.clone())),
        None => Ok(()),
    }
}
