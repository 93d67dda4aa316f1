//! A call that is dropped, fails or loses its response at any call of the store leaves the instance with its allocation, or neither.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright::PublicAddress;
use fleetwright_compute::{
    ComputeError, Meaning,
    instance::{Instance, InstanceId},
    service::{Instances, UpdateInstance},
};
use fleetwright_facade_testkit::{
    TestFacade, flavor, memory_store, name, new_instance, project_user,
    stores::{FaultKind, InterceptedStore, OneFault},
    tenant,
};
use fleetwright_identity::{Amounts, QuotaKind};
use fleetwright_store::StoreError;

const FAULTS: [FaultKind; 4] = [
    FaultKind::HangsBefore,
    FaultKind::HangsAfter,
    FaultKind::Fails,
    FaultKind::ResponseLost,
];

/// The amounts that an instance uses.
fn cost(instance: &Instance) -> Amounts {
    let gpus = if instance.spec.flavor.as_str() == "gpu" {
        4
    } else {
        0
    };
    let addresses = match instance.spec.networking.public_ip {
        PublicAddress::Assigned => 1,
        PublicAddress::Absent => 0,
    };
    let amounts = Amounts::new()
        .with(QuotaKind::servers(), 1)
        .with(QuotaKind::gpus(), gpus)
        .with(QuotaKind::public_ips(), addresses);
    amounts.without_zeros()
}

/// Checks that each instance has one allocation of the right amounts, and returns the instance.
async fn check_allocation(facade: &TestFacade, id: InstanceId) -> Option<Instance> {
    let alice = project_user(tenant(1, 1));
    let found = facade.instances.read(&alice, id).await.ok();
    let instance = found.map(|view| view.instance);
    let allocated = facade.allocation(id).await.map(|found| found.amounts);
    assert_eq!(instance.as_ref().map(cost), allocated);
    instance
}

/// Repeats a call with one fault at each of its calls of the store, of each kind, every time on a new façade.
async fn with_each_fault(
    prepare: impl AsyncFn(&TestFacade) -> InstanceId,
    call: impl AsyncFn(&Instances, InstanceId) -> Result<(), ComputeError>,
    after: impl AsyncFn(&TestFacade, InstanceId, Result<(), ComputeError>, FaultKind),
) -> i64 {
    let mut calls = 0;
    for fault in FAULTS {
        for number in 0.. {
            let store = memory_store();
            let facade = TestFacade::builder()
                .store(store.clone())
                .server_quota(100)
                .build()
                .await;
            let id = prepare(&facade).await;
            let faulty = InterceptedStore::new(store, OneFault::new(number, fault));
            let cut = facade.reopen(faulty.clone()).await;
            let requested = call(&cut.instances, id);
            let result = tokio::time::timeout(Duration::from_secs(600), requested).await;
            let result = result.unwrap_or_else(|_| {
                // Dropped: the caller gets no response.
                let (reason, source) = ("dropped".to_owned(), None);
                Err(StoreError::UnknownOutcome { reason, source }.into())
            });
            after(&facade, id, result, fault).await;
            if !faulty.interceptor.was_reached() {
                break;
            }
            calls += 1;
        }
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn interrupted_create_leaves_instance_and_allocation_or_neither() {
    let alice = project_user(tenant(1, 1));
    let blue = std::cell::Cell::new(None);
    let prepare = async |facade: &TestFacade| {
        let network = facade.network("blue").await;
        blue.set(Some(network));
        InstanceId::derive(network, &name("web"))
    };
    let requested = || {
        let mut requested = new_instance(blue.get().unwrap(), "web");
        requested.spec.flavor = flavor("gpu");
        requested
    };
    let call = async |instances: &Instances, _| {
        instances.create(&alice, &requested()).await?;
        Ok(())
    };
    let after = async |facade: &TestFacade, id, result: Result<(), ComputeError>, fault| {
        let exists = check_allocation(facade, id).await.is_some();
        match &result {
            Ok(()) => assert!(exists, "{fault:?}"),
            Err(error) => {
                assert_eq!(error.meaning(), Meaning::Unavailable, "{error:?}");
                // The advice to retry says that nothing was changed.
                assert_eq!(error.retry_after().is_none(), error.may_be_done());
                assert!(error.may_be_done() || !exists, "{fault:?}: {error:?}");
                assert!(fault != FaultKind::Fails || !exists);
            }
        }
        // A caller without a response repeats the call and gets the id of the existing instance.
        let again = facade.instances.create(&alice, &requested()).await;
        match again {
            Ok(_) => assert!(!exists),
            Err(ComputeError::NameTaken { id: found, .. }) => {
                assert_eq!((found, exists), (id, true));
            }
            Err(other) => panic!("{other:?}"),
        }
        assert!(check_allocation(facade, id).await.is_some());
        assert_eq!(
            (
                facade.count("instance").await,
                facade.count("allocation").await
            ),
            (1, 1)
        );
    };
    let calls = with_each_fault(prepare, call, after).await;
    assert!(calls > 20, "{calls}");
}

#[tokio::test(start_paused = true)]
async fn interrupted_update_keeps_allocation_and_spec_equal() {
    let alice = project_user(tenant(1, 1));
    let prepare = async |facade: &TestFacade| {
        let network = facade.network("blue").await;
        facade.create(network, "web").await.instance.id
    };
    let wanted = |instance: &Instance| {
        let mut wanted = UpdateInstance::of(instance);
        wanted.spec.flavor = flavor("gpu");
        wanted.spec.networking.public_ip = PublicAddress::Assigned;
        wanted
    };
    let call = async |instances: &Instances, id| {
        let before = instances.read(&alice, id).await?.instance;
        instances.update(&alice, id, &wanted(&before)).await?;
        Ok(())
    };
    let after = async |facade: &TestFacade, id, result: Result<(), ComputeError>, _| {
        let found = check_allocation(facade, id).await.unwrap();
        assert!(result.is_err() || found.generation == 2);
        let again = facade.instances.update(&alice, id, &wanted(&found)).await;
        assert_eq!(again.unwrap().0.instance.generation, 2);
        check_allocation(facade, id).await.unwrap();
    };
    let calls = with_each_fault(prepare, call, after).await;
    assert!(calls > 20, "{calls}");
}

#[tokio::test(start_paused = true)]
async fn interrupted_delete_can_be_repeated() {
    let alice = project_user(tenant(1, 1));
    let prepare = async |facade: &TestFacade| {
        let network = facade.network("blue").await;
        facade.create(network, "web").await.instance.id
    };
    let call = async |instances: &Instances, id| instances.delete(&alice, id).await;
    let after = async |facade: &TestFacade, id, _, _| {
        facade.instances.delete(&alice, id).await.unwrap();
        let found = check_allocation(facade, id).await.unwrap();
        assert!(found.deletion.is_some());
        assert_eq!(found.generation, 2);
    };
    assert!(with_each_fault(prepare, call, after).await > 4);
}
