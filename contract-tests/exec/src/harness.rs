//! The kit's harness on an account of the backend.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, Placement, Zone,
};
use fleetwright_contract_tests::{
    ExternalActor, Faults, Harness, NotApplicable, OnMissing, Oracle, Time, waiver::Peer,
};

use crate::{
    account::Account, backend::Backend, handle::Handle, hello::Hello, parts::Parts,
    problems::Problems,
};

/// A fresh account of the backend.
#[derive(Debug)]
pub(crate) struct PipeHarness(Arc<Account>);

impl PipeHarness {
    pub(crate) fn new(backend: &Arc<Backend>, label: &str, problems: &Problems) -> Self {
        Self(Arc::new(Account::new(backend, label, problems)))
    }

    fn hello(&self) -> &Hello {
        &self.0.backend().hello
    }

    fn parts(&self) -> Arc<Parts> {
        Arc::new(Parts(Arc::clone(&self.0)))
    }
}

#[async_trait]
impl Harness for PipeHarness {
    fn name(&self) -> String {
        self.hello().name.clone()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(Handle::open(Arc::clone(&self.0), "default").await)
    }
    async fn open_with_other_options(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(Handle::open(Arc::clone(&self.0), "other").await)
    }
    fn config(&self) -> InstanceConfig {
        self.hello().config.clone()
    }
    fn unknown_id(&self) -> InstanceId {
        self.hello().unknown_id.clone()
    }
    fn time(&self) -> Time {
        self.hello().time
    }
    fn budget(&self) -> Duration {
        self.hello().budget
    }
    fn unknown_image(&self) -> Option<ImageId> {
        self.hello().unknown_image.clone()
    }
    fn unknown_type(&self) -> Option<InstanceType> {
        self.hello().unknown_type.clone()
    }
    fn other_image(&self) -> Option<ImageId> {
        self.hello().other_image.clone()
    }
    fn other_type(&self) -> Option<InstanceType> {
        self.hello().other_type.clone()
    }
    fn zone(&self) -> Option<Zone> {
        self.hello().zone.clone()
    }
    fn not_applicable(&self) -> Vec<NotApplicable> {
        self.hello().not_applicable.clone()
    }
    fn policy_tag_keys(&self) -> Vec<String> {
        self.hello().policy_tag_keys.clone()
    }
    fn placement(&self) -> Placement {
        self.hello().placement.clone().unwrap_or_else(|| {
            let mut placement = Placement::default();
            placement.zone = self.zone();
            placement
        })
    }
    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        let parts = self.hello().oracle.then(|| self.parts());
        parts.map(|parts| parts as Arc<dyn Oracle>)
    }
    fn faults(&self) -> Option<Arc<dyn Faults>> {
        let parts = (!self.hello().faults.is_empty()).then(|| self.parts());
        parts.map(|parts| parts as Arc<dyn Faults>)
    }
    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        let parts = self.hello().external_actor.then(|| self.parts());
        parts.map(|parts| parts as Arc<dyn ExternalActor>)
    }
    fn peer(&self) -> Option<Peer> {
        self.hello().peer.clone()
    }
    fn on_missing(&self) -> OnMissing {
        OnMissing::ReportNotRun
    }
}
