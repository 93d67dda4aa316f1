//! Quota follows the machine: a larger spec is charged at the request, and what a smaller spec frees is released once the machine has
//! it. At every moment at least what exists is charged.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright::{CloudInstanceState, PublicAddress};
use fleetwright_compute::{
    instance::{Instance, InstanceId},
    service::UpdateInstance,
};
use fleetwright_facade_testkit::{
    TestFacade, flavor, is_applied, is_running, new_instance, operator, project_user,
    stores::{Applied, RacingStore},
    tenant,
};
use fleetwright_identity::{Account, Amounts, Limits, QuotaKind};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::server::Consent;
use fleetwright_store::{Store, Transaction};
use proptest::prelude::*;

/// The GPUs and public addresses of all machines at the cloud.
fn existing(cloud: &MemoryCloud) -> (u64, u64) {
    let machines = cloud.oracle().instances();
    let exist = machines
        .iter()
        .filter(|machine| machine.info.state != CloudInstanceState::Terminated);
    exist.fold((0, 0), |(gpus, addresses), machine| {
        let kind = machine.info.instance_type.as_ref();
        let more = if kind.is_some_and(|kind| kind.as_str() == "g4") {
            4
        } else {
            0
        };
        (
            gpus + more,
            addresses + u64::from(machine.info.public_ip.is_some()),
        )
    })
}

fn amounts(charged: &Amounts) -> (u64, u64) {
    (
        charged.of(&QuotaKind::gpus()),
        charged.of(&QuotaKind::public_ips()),
    )
}

/// Checks, as often as anything can change, that at least what exists is charged. Never returns.
async fn watch(facade: &TestFacade, cloud: &MemoryCloud, id: InstanceId) {
    loop {
        check(facade, cloud, id).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn check(facade: &TestFacade, cloud: &MemoryCloud, id: InstanceId) {
    let exists = existing(cloud);
    let charged = amounts(&facade.allocated(id).await);
    assert!(
        charged.0 >= exists.0 && charged.1 >= exists.1,
        "{charged:?} for {exists:?}"
    );
    facade.assert_balanced(1).await;
}

/// A façade with a running instance that has four GPUs and a public address.
async fn large(cloud: &MemoryCloud) -> (TestFacade, InstanceId) {
    let facade = TestFacade::on(cloud).await;
    let network = facade.network("net").await;
    let mut new = new_instance(network, "web");
    new.spec.flavor = flavor("gpu");
    new.spec.networking.public_ip = PublicAddress::Assigned;
    let id = facade
        .instances
        .create(&project_user(tenant(1, 1)), &new)
        .await;
    let id = id.unwrap().instance.id;
    facade.during(facade.until(id, is_running)).await;
    assert_eq!(existing(cloud), (4, 1));
    (facade, id)
}

async fn request(facade: &TestFacade, id: InstanceId, gpus: bool, address: bool) {
    let mut wanted = UpdateInstance::of(&facade.read(id).await.instance);
    wanted.spec.flavor = flavor(if gpus { "gpu" } else { "small" });
    wanted.spec.networking.public_ip = if address {
        PublicAddress::Assigned
    } else {
        PublicAddress::Absent
    };
    wanted.consent = Consent::Destroy;
    let updated = facade
        .instances
        .update(&project_user(tenant(1, 1)), id, &wanted)
        .await;
    updated.unwrap();
}

fn is_released(instance: &Instance) -> bool {
    is_applied(instance) && instance.release_to.is_none()
}

fn cloud() -> MemoryCloud {
    MemoryCloud::builder()
        .latency(Duration::from_millis(200))
        .public_addresses_on_request()
        .build()
}

#[tokio::test(start_paused = true)]
async fn smaller_spec_is_released_once_the_machine_has_it() {
    let cloud = cloud();
    let (facade, id) = large(&cloud).await;
    request(&facade, id, false, true).await;
    assert_eq!(
        amounts(&facade.allocated(id).await),
        (4, 1),
        "the machine has its GPUs"
    );
    let work = async {
        facade.until(id, is_released).await;
    };
    tokio::select! {
        biased;
        () = facade.during(work) => {}
        () = watch(&facade, &cloud, id) => {}
    }
    assert_eq!(
        (existing(&cloud), amounts(&facade.allocated(id).await)),
        ((0, 1), (0, 1))
    );
}

#[tokio::test(start_paused = true)]
async fn larger_spec_is_charged_at_the_request_and_a_withdrawn_one_is_released() {
    let cloud = cloud();
    let (facade, id) = large(&cloud).await;
    request(&facade, id, false, false).await;
    facade.during(facade.until(id, is_released)).await;
    assert_eq!(amounts(&facade.allocated(id).await), (0, 0));
    request(&facade, id, true, true).await;
    assert_eq!(
        amounts(&facade.allocated(id).await),
        (4, 1),
        "before anything is launched"
    );
    // Withdrawn before it was applied.
    request(&facade, id, false, false).await;
    facade.during(facade.until(id, is_released)).await;
    assert_eq!(
        (existing(&cloud), amounts(&facade.allocated(id).await)),
        ((0, 0), (0, 0))
    );
    // While a shrink is pending, others cannot have what the machine still is.
    request(&facade, id, true, false).await;
    facade.during(facade.until(id, is_released)).await;
    let limits = Limits::new().with(QuotaKind::gpus(), 4);
    let (account, operator) = (Account::Organization(tenant(1, 1).0), operator());
    let limited = facade
        .ledger
        .set_limits(Transaction::new(), &operator, &account, &limits);
    facade.store.commit(&limited.await.unwrap()).await.unwrap();
    request(&facade, id, false, false).await;
    let mut other = new_instance(facade.read(id).await.instance.network, "other");
    other.spec.flavor = flavor("gpu");
    let alice = project_user(tenant(1, 1));
    let refused = facade.instances.create(&alice, &other).await.unwrap_err();
    assert_eq!(refused.meaning().status(), 403, "{refused}");
    facade.during(facade.until(id, is_released)).await;
    facade.instances.create(&alice, &other).await.unwrap();
}

/// Returns once the store has crashed, or the shrink is complete without that.
async fn crashed_or_released(store: &RacingStore, facade: &TestFacade, id: InstanceId) {
    while !store.is_dead() && !is_released(&facade.read(id).await.instance) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The controller crashes at every call of the store while an instance shrinks.
#[tokio::test(start_paused = true)]
async fn crash_while_shrinking_never_charges_less_than_exists() {
    let mut call = 1;
    loop {
        let mut reached = false;
        for done in [Applied::No, Applied::Yes] {
            let cloud = cloud();
            let (facade, id) = large(&cloud).await;
            request(&facade, id, false, false).await;
            let store = Arc::new(RacingStore::new(Arc::clone(&facade.store)).dying_at(call, done));
            let crashing = facade.reopen(Arc::clone(&store) as Arc<dyn Store>).await;
            let controller = crashing.instance_controller.clone();
            tokio::select! {
                biased;
                () = watch(&facade, &cloud, id) => {}
                () = controller.run() => panic!("a controller runs until it is dropped"),
                () = facade.run_region() => panic!("a region runs until it is dropped"),
                () = crashed_or_released(&store, &facade, id) => {}
            }
            reached |= store.is_dead();
            let work = async {
                facade.until(id, is_released).await;
            };
            tokio::select! {
                biased;
                () = facade.during(work) => {}
                () = watch(&facade, &cloud, id) => {}
            }
            assert_eq!(
                (existing(&cloud), amounts(&facade.allocated(id).await)),
                ((0, 0), (0, 0))
            );
        }
        if !reached {
            assert!(
                call > 5,
                "{call}: the controller made fewer than five calls"
            );
            return;
        }
        call += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Whatever is requested, and whenever.
    #[test]
    fn any_sequence_of_changes_is_charged_for_what_exists(
        changes in prop::collection::vec((any::<bool>(), any::<bool>(), 0..40_u64), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let cloud = cloud();
            let (facade, id) = large(&cloud).await;
            let work = async {
                let mut last = (true, true);
                for (gpus, address, wait) in changes {
                    request(&facade, id, gpus, address).await;
                    last = (gpus, address);
                    tokio::time::sleep(Duration::from_secs(wait)).await;
                }
                facade.until(id, is_released).await;
                last
            };
            let (gpus, address) = tokio::select! {
                biased;
                last = facade.during(work) => last,
                () = watch(&facade, &cloud, id) => unreachable!("it never returns"),
            };
            let expected = (if gpus { 4 } else { 0 }, u64::from(address));
            assert_eq!((existing(&cloud), amounts(&facade.allocated(id).await)), (expected, expected));
        });
    }
}
