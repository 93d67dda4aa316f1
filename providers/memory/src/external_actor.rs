//! The external actor: changes by other people, other programs and the cloud itself.
//!
//! Everything here bypasses the wire: it never waits, and no fault applies to it.

use std::{num::NonZeroU32, sync::Arc};

use fleetwright::{
    Call, InstanceConfig, InstanceId, InstanceInfo, Operation, Result, TagChange, Zone,
};

use crate::{
    Capacity, RefusalReason,
    cloud::Shared,
    convert,
    engine::{LaunchRequest, World},
    error::NativeError,
};

/// Changes the account as somebody else with access to it would.
///
/// Its actions bypass the wire: no latency, no faults, no effect on the counts of calls and of
/// records touched, and unreachable zones are reachable for it. Errors have the provider name
/// `memory external actor`.
///
/// # Example
///
/// ```
/// use fleetwright::{CloudInstanceState, InstanceConfig, InstanceProvisioner, Zone};
/// use fleetwright_memory::MemoryCloud;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cloud = MemoryCloud::new();
/// let provisioner = cloud.provisioner();
/// let config = InstanceConfig::builder("image-1", "small").build()?;
/// let instance = provisioner.launch_instance(&config).await?;
///
/// cloud.external_actor().terminate(&instance.id)?;
/// let status = provisioner.describe_instance(&instance.id).await?;
/// assert_eq!(status.state, CloudInstanceState::Terminating);
/// assert_eq!(status.state_reason.as_deref(), Some("terminated by an external actor"));
///
/// cloud.external_actor().disconnect(Zone::new("mem-a")?);
/// assert!(provisioner.describe_instance(&instance.id).await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ExternalActor {
    shared: Arc<Shared>,
}

impl ExternalActor {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Launches an instance that no handle has launched, for example one of another team.
    ///
    /// # Errors
    ///
    /// The same errors as for a launch by a handle, all without effect: invalid configs, spent
    /// tokens, quota and capacity.
    pub fn launch(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let (count, boot_failure) = (NonZeroU32::MIN, None);
        self.act(Operation::LaunchInstance, |world| {
            let launched = world.launch(&LaunchRequest {
                config,
                count,
                boot_failure,
            })?;
            let first = launched.views.into_iter().next();
            let view =
                first.ok_or_else(|| launched.error.unwrap_or(RefusalReason::Capacity.into()))?;
            Ok(convert::info(view, None))
        })
    }

    /// Stops an instance. Its state reason says that an external actor did.
    ///
    /// # Errors
    ///
    /// `NotFound` for an unknown id, `WrongState` if it is terminating or terminated.
    pub fn stop(&self, id: &InstanceId) -> Result<()> {
        self.act(Operation::StopInstance, |world| {
            world.stop(id, "stopped by an external actor")
        })
    }

    /// Starts an instance.
    ///
    /// # Errors
    ///
    /// As [`stop`](Self::stop); also `Conflict` while it is stopping, and `Capacity` or `Quota` if
    /// no machine or address is free.
    pub fn start(&self, id: &InstanceId) -> Result<()> {
        self.act(Operation::StartInstance, |world| world.start(id).map(drop))
    }

    /// Terminates an instance, as a person at the cloud's console would, or as the cloud does when it
    /// reclaims a spot machine.
    ///
    /// # Errors
    ///
    /// `NotFound` for an unknown id. Terminating it again succeeds.
    pub fn terminate(&self, id: &InstanceId) -> Result<()> {
        self.act(Operation::TerminateInstance, |world| {
            world.terminate(id, "terminated by an external actor")
        })
    }

    /// Changes the tags of an instance, all or nothing.
    ///
    /// # Errors
    ///
    /// As [`stop`](Self::stop); also `Invalid` if the result exceeds the tag limits.
    pub fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.act(Operation::UpdateTags, |world| world.update_tags(id, change))
    }

    /// Makes a zone unreachable: calls for its instances fail with
    /// [`ErrorKind::Unavailable`](fleetwright::ErrorKind::Unavailable), and lists have a gap. Its
    /// instances keep running.
    pub fn disconnect(&self, zone: Zone) {
        self.shared
            .with_world(|world| world.set_zone_down(zone, true));
    }

    /// Makes a zone reachable again.
    pub fn reconnect(&self, zone: Zone) {
        self.shared
            .with_world(|world| world.set_zone_down(zone, false));
    }

    /// Replaces all capacity limits. Machines beyond a new limit keep running.
    pub fn set_capacity(&self, limits: Vec<Capacity>) {
        self.shared
            .with_world(|world| world.knobs.capacity = limits);
    }

    /// Sets the account's quota of instances that are not terminated; `None` removes it. Instances
    /// beyond a new quota keep running.
    pub fn set_quota(&self, instances: Option<u64>) {
        self.shared
            .with_world(|world| world.knobs.quota = instances);
    }

    /// Runs `work` without the wire and converts its error.
    fn act<T>(
        &self,
        operation: Operation,
        work: impl FnOnce(&mut World) -> Result<T, NativeError>,
    ) -> Result<T> {
        let call = Call::new("memory external actor", operation);
        let result = self.shared.with_world(|world| world.out_of_band(work));
        result.map_err(|error| error.into_error(&call))
    }
}
