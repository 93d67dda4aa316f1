//! Parts of a harness that look the same for most backends without an emulator.
//!
//! Owns an oracle over a list of truths, and an external actor that uses a handle of its own. A
//! backend with disks, addresses or images of its own needs more, and implements the traits itself.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState::{Stopped, Terminated},
    InstanceConfig, InstanceId, InstanceProvisioner, Scope, Tags,
    wait::{self, WaitPolicy},
};

use crate::{ExternalActor, FaultTable, Oracle, Truth};

/// An oracle that reads the truth with a function. What is left are the instances that are not
/// terminated; the calls are those that a [`FaultTable`] has counted.
///
/// ```
/// use fleetwright::{CloudInstanceState, InstanceId, InstanceInfo, Tags};
/// use fleetwright_contract_tests::{FaultTable, Oracle as _, Truth, TruthOracle};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let oracle = TruthOracle::new(FaultTable::new(), || {
///     // A backend reads its own records here, without a call of the trait.
///     let id = InstanceId::new("i-1").unwrap();
///     let info = InstanceInfo::new(id, CloudInstanceState::Running);
///     vec![Truth { info, user_data: None, disk_size_gb: None, holds_machine: true, boots: None }]
/// });
/// assert_eq!(oracle.leftovers(&Tags::new()).await, ["instance i-1"]);
/// # }
/// ```
pub struct TruthOracle {
    read: Box<dyn Fn() -> Vec<Truth> + Send + Sync>,
    table: FaultTable,
}

impl TruthOracle {
    /// Creates an oracle. `read` returns every instance that the cloud has a record of.
    pub fn new(table: FaultTable, read: impl Fn() -> Vec<Truth> + Send + Sync + 'static) -> Self {
        let read = Box::new(read);
        Self { read, table }
    }
}

impl fmt::Debug for TruthOracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TruthOracle").finish_non_exhaustive()
    }
}

#[async_trait]
impl Oracle for TruthOracle {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        let mut all = (self.read)();
        all.retain(|truth| truth.info.tags.contains_all(tags));
        all
    }

    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        let all = self.instances(tags).await;
        let left = all.iter().filter(|truth| !truth.info.state.is_final());
        left.map(|truth| format!("instance {}", truth.info.id))
            .collect()
    }

    async fn calls(&self) -> u64 {
        self.table.calls()
    }
}

/// Somebody else who uses the same backend with a handle of its own. Give it a handle without faults.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright::{InstanceConfig, Tags};
/// use fleetwright_contract_tests::{ExternalActor as _, OtherHandle};
/// use fleetwright_memory::MemoryCloud;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let cloud = MemoryCloud::new();
/// let config = InstanceConfig::builder("image", "small").build().unwrap();
/// let actor = OtherHandle::new(Arc::new(cloud.provisioner()), config)
///     .limiting_capacity(|_count| false); // a backend with a knob sets it here
/// let id = actor.launch(Tags::new()).await;
/// actor.terminate(&id).await; // returns when the instance is terminated
/// # }
/// ```
pub struct OtherHandle {
    handle: Arc<dyn InstanceProvisioner>,
    config: InstanceConfig,
    limit: Box<dyn Fn(Option<u64>) -> bool + Send + Sync>,
}

impl OtherHandle {
    /// Launches with `config` and other tags, through `handle`. Capacity cannot be limited.
    pub fn new(handle: Arc<dyn InstanceProvisioner>, config: InstanceConfig) -> Self {
        Self {
            handle,
            config,
            limit: Box::new(|_| false),
        }
    }

    /// Limits the capacity with a function: to so many more instances, or not at all with `None`. It
    /// returns whether that is possible.
    #[must_use]
    pub fn limiting_capacity(
        mut self,
        limit: impl Fn(Option<u64>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.limit = Box::new(limit);
        self
    }

    /// Waits until the change is complete, because the clauses read it right after the call.
    async fn wait(&self, id: &InstanceId, goal: fleetwright::CloudInstanceState) {
        let policy = WaitPolicy::within(Duration::from_secs(60));
        // If it fails, the clause reads the wrong state and reports that.
        let _ = wait::for_state(&*self.handle, std::slice::from_ref(id), goal, &policy).await;
    }
}

impl fmt::Debug for OtherHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtherHandle").finish_non_exhaustive()
    }
}

#[async_trait]
impl ExternalActor for OtherHandle {
    #[expect(
        clippy::panic,
        reason = "without the foreign instance a clause would prove nothing"
    )]
    async fn launch(&self, tags: Tags) -> InstanceId {
        let mut config = self.config.clone();
        config.tags = tags;
        let launched = self.handle.launch_instance(&config).await;
        launched
            .unwrap_or_else(|error| panic!("the external actor cannot launch: {error}"))
            .id
    }

    async fn stop(&self, id: &InstanceId) {
        let _ = self.handle.stop_instance(id).await;
        self.wait(id, Stopped).await;
    }

    async fn terminate(&self, id: &InstanceId) {
        let _ = self.handle.terminate_instance(id).await;
        self.wait(id, Terminated).await;
    }

    async fn disconnect(&self, _: &InstanceId) -> Option<Scope> {
        None
    }

    async fn reconnect(&self) {
        (self.limit)(None);
    }

    async fn limit_capacity(&self, count: u64) -> bool {
        (self.limit)(Some(count))
    }
}
