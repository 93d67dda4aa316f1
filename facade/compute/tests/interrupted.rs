//! A call that is cut off, fails or loses its answer at any call of the store: the instance and what pays for it, or neither.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod town;

use std::time::Duration;

use fleetwright::PublicAddress;
use fleetwright_compute::{
    ComputeError, Meaning,
    instance::{Instance, InstanceId},
    service::{Instances, UpdateInstance},
};
use fleetwright_identity::{Amounts, QuotaKind};
use fleetwright_store::StoreError;

use town::{
    Town, flavor, memory, name, new,
    stores::{Fate, Fated, Moody},
    tenant, user,
};

const FATES: [Fate; 4] = [
    Fate::HangsBefore,
    Fate::HangsAfter,
    Fate::Fails,
    Fate::AnswerLost,
];

/// What an instance costs.
fn price(instance: &Instance) -> Amounts {
    let gpus = if instance.spec.flavor.as_str() == "gpu" {
        4
    } else {
        0
    };
    let addresses = match instance.spec.networking.public_ip {
        PublicAddress::Assigned => 1,
        PublicAddress::Absent => 0,
    };
    let price = Amounts::new()
        .with(QuotaKind::servers(), 1)
        .with(QuotaKind::gpus(), gpus)
        .with(QuotaKind::public_ips(), addresses);
    price.normal()
}

/// That there is one payment for each instance, of its price.
async fn balanced(town: &Town, id: InstanceId) -> Option<Instance> {
    let alice = user(tenant(1, 1));
    let found = town.instances.read(&alice, id).await.ok();
    let instance = found.map(|view| view.instance);
    let paid = town.allocation(id).await.map(|found| found.amounts);
    assert_eq!(instance.as_ref().map(price), paid);
    instance
}

/// Makes a call of which one call of the store goes wrong, for each of them and in each way, each time in a town of its own.
async fn everywhere(
    prepare: impl AsyncFn(&Town) -> InstanceId,
    call: impl AsyncFn(&Instances, InstanceId) -> Result<(), ComputeError>,
    after: impl AsyncFn(&Town, InstanceId, Result<(), ComputeError>, Fate),
) -> i64 {
    let mut calls = 0;
    for fate in FATES {
        for number in 0.. {
            let store = memory();
            let town = Town::over(store.clone(), 100).await;
            let id = prepare(&town).await;
            let fated = Moody::new(store, Fated::new(number, fate));
            let (clock, catalog) = (town.clock.clone(), town.catalog.clone());
            let cut = Town::reopened(fated.clone(), clock, catalog, 100);
            let asked = call(&cut.instances, id);
            let answer = tokio::time::timeout(Duration::from_secs(600), asked).await;
            let answer = answer.unwrap_or_else(|_| {
                // Dropped: nobody heard anything.
                let (reason, source) = ("dropped".to_owned(), None);
                Err(StoreError::UnknownOutcome { reason, source }.into())
            });
            after(&town, id, answer, fate).await;
            if !fated.whim.came() {
                break;
            }
            calls += 1;
        }
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_is_cut_off_anywhere_leaves_both_or_neither() {
    let alice = user(tenant(1, 1));
    let blue = std::cell::Cell::new(None);
    let prepare = async |town: &Town| {
        let network = town.network("blue").await;
        blue.set(Some(network));
        InstanceId::derive(network, &name("web"))
    };
    let asked = || {
        let mut asked = new(blue.get().unwrap(), "web");
        asked.spec.flavor = flavor("gpu");
        asked
    };
    let call = async |instances: &Instances, _| {
        instances.create(&alice, &asked()).await?;
        Ok(())
    };
    let after = async |town: &Town, id, answer: Result<(), ComputeError>, fate| {
        let there = balanced(town, id).await.is_some();
        match &answer {
            Ok(()) => assert!(there, "{fate:?}"),
            Err(error) => {
                assert_eq!(error.meaning(), Meaning::Unavailable, "{error:?}");
                assert!(error.retry_after().is_some());
                assert!(fate != Fate::Fails || !there);
            }
        }
        // Whoever does not know asks again: there is one, and it is said which.
        let again = town.instances.create(&alice, &asked()).await;
        match again {
            Ok(_) => assert!(!there),
            Err(ComputeError::NameTaken { id: found, .. }) => {
                assert_eq!((found, there), (id, true));
            }
            Err(other) => panic!("{other:?}"),
        }
        assert!(balanced(town, id).await.is_some());
        assert_eq!(
            (town.count("instance").await, town.count("allocation").await),
            (1, 1)
        );
    };
    let calls = everywhere(prepare, call, after).await;
    assert!(calls > 20, "{calls}");
}

#[tokio::test(start_paused = true)]
async fn an_update_that_is_cut_off_anywhere_is_paid_for_as_it_is_written() {
    let alice = user(tenant(1, 1));
    let prepare = async |town: &Town| {
        let network = town.network("blue").await;
        town.create(network, "web").await.unwrap().instance.id
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
    let after = async |town: &Town, id, answer: Result<(), ComputeError>, _| {
        let found = balanced(town, id).await.unwrap();
        assert!(answer.is_err() || found.generation == 2);
        let again = town.instances.update(&alice, id, &wanted(&found)).await;
        assert_eq!(again.unwrap().0.instance.generation, 2);
        balanced(town, id).await.unwrap();
    };
    let calls = everywhere(prepare, call, after).await;
    assert!(calls > 20, "{calls}");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_cut_off_anywhere_is_asked_for_again_with_the_same_end() {
    let alice = user(tenant(1, 1));
    let prepare = async |town: &Town| {
        let network = town.network("blue").await;
        town.create(network, "web").await.unwrap().instance.id
    };
    let call = async |instances: &Instances, id| instances.delete(&alice, id).await;
    let after = async |town: &Town, id, _, _| {
        town.instances.delete(&alice, id).await.unwrap();
        let found = balanced(town, id).await.unwrap();
        assert!(found.deletion.is_some());
        assert_eq!(found.generation, 2);
    };
    assert!(everywhere(prepare, call, after).await > 4);
}
