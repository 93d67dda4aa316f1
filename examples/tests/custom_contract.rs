//! The contract tests of the backend of the example `custom`: all that an author has to write.

#[path = "../custom/rack.rs"]
mod rack;

use std::sync::Arc;

use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner, Tags, async_trait};
use fleetwright_contract_tests::{Harness, OnMissing, Oracle, Time, Truth, contract_tests};

use rack::Rack;

#[derive(Clone)]
struct RackHarness(Rack);

impl RackHarness {
    fn new() -> Self {
        Self(Rack::new())
    }
}

#[async_trait]
#[expect(clippy::unwrap_used, reason = "the names are valid constants")]
impl Harness for RackHarness {
    fn name(&self) -> String {
        "rack".to_owned()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(self.0.clone())
    }
    fn config(&self) -> InstanceConfig {
        InstanceConfig::builder("image-1", "blade").build().unwrap()
    }
    fn unknown_id(&self) -> InstanceId {
        InstanceId::new("machine-999999").unwrap()
    }
    fn time(&self) -> Time {
        Time::Virtual
    }
    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        Some(Arc::new(self.clone()))
    }
    fn on_missing(&self) -> OnMissing {
        OnMissing::ReportNotRun // the rack has no faults and no external actors
    }
}

#[async_trait]
impl Oracle for RackHarness {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        let ours = self
            .0
            .snapshot()
            .into_iter()
            .filter(|(info, _)| info.tags.contains_all(tags));
        ours.map(|(info, config)| Truth {
            holds_machine: !matches!(
                info.state,
                fleetwright::CloudInstanceState::Stopped
                    | fleetwright::CloudInstanceState::Terminated
            ),
            boots: None,
            user_data: config.user_data.map(|data| data.as_bytes().to_vec()),
            disk_size_gb: config.disk_size_gb.map(std::num::NonZeroU32::get),
            info,
        })
        .collect()
    }
    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        let all = self.instances(tags).await;
        let existing = all.into_iter().filter(|truth| !truth.info.state.is_final());
        existing.map(|truth| truth.info.id.to_string()).collect()
    }
    async fn calls(&self) -> u64 {
        0
    }
}

contract_tests!(RackHarness::new);
