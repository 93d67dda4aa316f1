//! Sagas while somebody else is at the same records.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use fleetwright_identity::{
    QuotaKinds,
    saga::{Fault, LocalError, LocalStep, Outcome, Saga, SagaError, Sagas},
};
use fleetwright_store::{Check, Store, Transaction};
use serde_json::json;
use support::{
    Mixed, allocation, amounts,
    flaky::{Flaky, Mishap},
    instance, memory, operator,
    sagas::{World, actor, record},
};

fn world() -> World {
    World::over(memory())
}

/// Makes the instance if the network is as it was read. The first times somebody else is faster with the network.
#[derive(Debug)]
struct Raced {
    store: Arc<dyn Store>,
    built: AtomicUsize,
    races: usize,
}

#[async_trait::async_trait]
impl LocalStep for Raced {
    async fn transaction(&self, saga: &Saga) -> Result<Transaction, LocalError> {
        let network = self.store.get(&instance("network")).await.unwrap().unwrap();
        if self.built.fetch_add(1, Ordering::Relaxed) < self.races {
            let faster = Transaction::new().put(network.id.clone(), json!({}));
            self.store.commit(&faster).await.unwrap();
        }
        let made = Transaction::new().check(Check::At(network.id, network.revision));
        Ok(made.create(saga.pays_for().clone(), record(&saga.allocation.amounts)))
    }
}

#[tokio::test]
async fn a_step_that_others_outrun_is_built_anew_and_later_again() {
    for (races, built_first) in [(3, 4), (20, 16)] {
        let world = world();
        let network = Transaction::new().put(instance("network"), json!({}));
        world.store.commit(&network).await.unwrap();
        let local = Arc::new(Raced {
            store: Arc::clone(&world.store),
            built: AtomicUsize::new(0),
            races,
        });
        let (kinds, remote) = (
            Arc::new(QuotaKinds::standard()),
            Arc::new(world.remote.clone()),
        );
        let sagas = Sagas::new(
            Arc::clone(&world.store),
            kinds,
            remote,
            Arc::clone(&local) as _,
        );
        let (sagas, paid) = (sagas.unwrap(), allocation("a", amounts(1, 0)));
        let begin = sagas.begin_create(Transaction::new(), &actor(), &paid, json!({}));
        world.store.commit(&begin.unwrap()).await.unwrap();
        let first = sagas.drive(&instance("a")).await.unwrap();
        assert_eq!(local.built.load(Ordering::Relaxed), built_first);
        if races < built_first {
            assert_eq!(first, Outcome::Done);
        } else {
            assert!(matches!(first, Outcome::Waiting { .. }), "{first:?}");
            assert_eq!(sagas.drive(&instance("a")).await.unwrap(), Outcome::Done);
        }
        world.is_whole(&instance("a"), "after races").await;
    }
}

#[tokio::test]
async fn a_saga_is_woken_also_while_it_is_driven() {
    for seed in 0..100 {
        let world = world();
        world.remote.fault(0, Fault::Failure);
        let mixed = Mixed::over(Arc::clone(&world.store), seed);
        let sagas = world.process_with(mixed, Arc::new(world.remote.clone()));
        let paid = allocation("a", amounts(1, 0));
        let begin = sagas.begin_create(Transaction::new(), &actor(), &paid, json!({}));
        world.store.commit(&begin.unwrap()).await.unwrap();
        let (operator, id) = (operator(), instance("a"));
        let (woken, driven) = tokio::join!(sagas.wake(&operator, &id), sagas.drive(&id));
        assert!(woken.is_ok() && driven.is_ok(), "{woken:?} {driven:?}");
        world.settle().await;
        world.is_whole(&id, "in the end").await;
    }
    let world = world();
    let flaky = Flaky::over(&world.store, 1, Mishap::Unavailable);
    let sagas = world.process_with(Arc::clone(&flaky), Arc::new(world.remote.clone()));
    let paid = allocation("a", amounts(1, 0));
    let begin = sagas.begin_create(Transaction::new(), &actor(), &paid, json!({}));
    flaky.commit(&begin.unwrap()).await.unwrap();
    let told = sagas.wake(&operator(), &instance("a")).await;
    assert!(matches!(told, Err(SagaError::Store(_))), "{told:?}");
}
