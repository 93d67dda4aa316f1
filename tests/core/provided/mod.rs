//! The default implementations of the trait's methods, on a backend that overrides none of them.

mod batches;
mod launches;
mod unsupported;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use fleetwright::{
    Capabilities, CloudInstanceState, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceProvisioner, InstanceStatus, LaunchRecord, LaunchToken, ProvisionError, Result,
    TagLimits, async_trait,
};
use tokio::time::sleep;

use crate::fake::{id, secs};

/// A backend with the required methods and nothing else.
#[derive(Debug)]
struct Plain {
    capabilities: Capabilities,
    /// The error of every call on one of these instances. A list returns the first of the errors.
    refused: BTreeMap<InstanceId, ProvisionError>,
    /// The configs of all launch calls.
    requested: Mutex<Vec<InstanceConfig>>,
    /// The index of the first refused launch, and the error that it and every later launch return.
    refused_from: Option<(usize, ProvisionError)>,
    /// The number of calls that have not returned yet.
    in_flight: AtomicUsize,
    /// The largest value of `in_flight` so far.
    max_in_flight: AtomicUsize,
}

impl Plain {
    fn new() -> Self {
        Self {
            capabilities: Capabilities::new("plain", TagLimits::new(9, 9, 9), 9),
            refused: BTreeMap::new(),
            requested: Mutex::default(),
            refused_from: None,
            in_flight: AtomicUsize::new(0),
            max_in_flight: AtomicUsize::new(0),
        }
    }

    /// Does nothing for as many seconds as the id has characters, and then returns the error in `refused`, if
    /// there is one for the id.
    async fn change(&self, id: &InstanceId) -> Result<()> {
        let now = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.max_in_flight.fetch_max(now, Ordering::Relaxed);
        let length = id.as_str().len() as u64;
        sleep(secs(length)).await;
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.refused.get(id).cloned().map_or(Ok(()), Err)
    }

    /// Returns the largest number of concurrent calls since this was last read, and resets it.
    fn max_in_flight(&self) -> usize {
        self.max_in_flight.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl InstanceProvisioner for Plain {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let mut requested = self.requested.lock().unwrap();
        let index = requested.len();
        requested.push(config.clone());
        match &self.refused_from {
            Some((from, error)) if index >= *from => Err(error.clone()),
            Some(_) | None => {
                let id = id(&format!("i-{index}"));
                Ok(InstanceInfo::new(id, CloudInstanceState::Pending))
            }
        }
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.change(id).await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.change(id).await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.change(id).await?;
        Ok(InstanceInfo::new(id.clone(), CloudInstanceState::Pending))
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.change(id).await?;
        Ok(InstanceStatus::new(id.clone(), CloudInstanceState::Stopped))
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let all = ["i-2", "i-1", "i-3"]
            .map(|name| InstanceInfo::new(id(name), CloudInstanceState::Running));
        match self.refused.values().next() {
            Some(error) => Err(error.clone()),
            None => Ok(all
                .into_iter()
                .filter(|info| filter.matches(info))
                .collect()),
        }
    }

    async fn find_launch(&self, _: &LaunchToken) -> Result<LaunchRecord> {
        Ok(LaunchRecord::NotFound)
    }
}
