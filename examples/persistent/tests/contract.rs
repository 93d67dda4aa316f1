//! The whole contract for the shelf, and killed processes: all that an author has to write.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{io, path::PathBuf, sync::Arc};

use fleetwright::{
    ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, Operation, async_trait,
};
use fleetwright_contract_tests::{killed::*, *};
use persistent::{Machine, NoFaults, Records, Shelf, Steps};
use tempfile::TempDir;

struct ShelfHarness {
    folder: PathBuf,
    faults: FaultTable,
    _owned: Option<TempDir>,
}

impl ShelfHarness {
    fn new() -> Self {
        let owned = TempDir::new().unwrap();
        let folder = owned.path().to_str().unwrap().to_owned();
        Self {
            _owned: Some(owned),
            ..Self::at(&folder)
        }
    }
    fn at(folder: &str) -> Self {
        use WireFault::{Forbidden, StaleRead, UnknownState};
        let also = |fault: &_| matches!(fault, Forbidden | StaleRead | UnknownState(_));
        Self {
            folder: folder.into(),
            faults: FaultTable::new().also(also),
            _owned: None,
        }
    }
}

#[async_trait]
impl Harness for ShelfHarness {
    fn name(&self) -> String {
        "shelf".to_owned()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        let seam = Arc::new(Seam(self.faults.seam()));
        Arc::new(Shelf::open(&self.folder, seam))
    }
    fn config(&self) -> InstanceConfig {
        InstanceConfig::builder("debian", "blade").build().unwrap()
    }
    fn unknown_id(&self) -> InstanceId {
        InstanceId::new("machine-999999").unwrap()
    }
    fn unknown_image(&self) -> Option<ImageId> {
        ImageId::new("no-such-image").ok()
    }
    fn unknown_type(&self) -> Option<InstanceType> {
        InstanceType::new("no-such-type").ok()
    }
    fn not_applicable(&self) -> Vec<NotApplicable> {
        use NotApplicable::{Capacity, Credentials, LateFailures, Quota, Throttling};
        vec![Throttling, Credentials, Quota, Capacity, LateFailures]
    }
    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        let folder = self.folder.clone();
        let truths = move || {
            let all = Records::read(&folder).unwrap().machines.into_iter();
            all.map(|one| Truth::of(one.info(), &one.config)).collect()
        };
        Some(Arc::new(TruthOracle::new(self.faults.clone(), truths)))
    }
    fn faults(&self) -> Option<Arc<dyn Faults>> {
        Some(Arc::new(self.faults.clone()))
    }
    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        let handle = Arc::new(Shelf::open(&self.folder, Arc::new(NoFaults)));
        Some(Arc::new(OtherHandle::new(handle, self.config())))
    }
}

struct Seam(FaultSeam);

#[async_trait]
impl Steps for Seam {
    async fn before(&self, operation: Operation) -> io::Result<()> {
        Ok(self.0.before(operation.into()).await?)
    }
    async fn after(&self, operation: Operation) -> io::Result<()> {
        Ok(self.0.after(operation.into()).await?)
    }
    fn read(&self, operation: Operation, mut machine: Machine) -> Machine {
        if let Some(WireFault::UnknownState(word)) = self.0.content(operation.into()) {
            machine.target = word;
        }
        machine
    }
}

contract_tests!(ShelfHarness::new);

#[test]
fn killed_processes_lose_nothing() {
    let attach = Attach {
        new: ShelfHarness::new,
        location: |harness| harness.folder.display().to_string(),
        at: ShelfHarness::at,
    };
    let test = concat!(module_path!(), "::killed_processes_lose_nothing");
    test_killed_processes(test, &attach);
}
