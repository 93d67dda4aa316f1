//! Random histories of sagas: several processes at once, faults, crashes and late requests, over few records.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod support;

use std::sync::{Arc, atomic::Ordering};

use fleetwright_identity::saga::{Fault, RemoteLedger};
use fleetwright_store::Store;
use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::json;
use support::{
    Mixed, amounts, instance, memory,
    sagas::{Ask, Death, Mortal, When, World, carry_out},
};

/// Something that a process does, and where it dies of it.
#[derive(Clone, Debug)]
struct Step {
    name: &'static str,
    ask: Ask,
    refuse: bool,
    death: Option<(usize, When)>,
    then: Then,
}

/// What happens afterwards.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    /// Time passes, and what is due is swept up, also under the hands of others.
    Sweep,
    /// What was under way arrives.
    Late,
}

fn step() -> impl Strategy<Value = Step> {
    let size = || (0..5_u64, 0..20_u64).prop_map(|(servers, gpus)| amounts(servers, gpus));
    let ask = prop_oneof![
        3 => size().prop_map(Ask::Create),
        3 => size().prop_map(Ask::Update),
        2 => Just(Ask::Delete),
    ];
    let when = prop_oneof![Just(When::Before), Just(When::After)];
    let death = prop::option::weighted(0.4, (0..8_usize, when));
    let then = prop_oneof![Just(Then::Nothing), Just(Then::Sweep), Just(Then::Late)];
    let name = prop_oneof![Just("a"), Just("b"), Just("c")];
    (name, ask, prop::bool::weighted(0.2), death, then).prop_map(
        |(name, ask, refuse, death, then)| Step {
            name,
            ask,
            refuse,
            death,
            then,
        },
    )
}

fn faults() -> impl Strategy<Value = Vec<(usize, Fault)>> {
    // Silence needs a clock that runs; the sweep over every step has it.
    let fault = prop_oneof![
        Just(Fault::LostRequest),
        Just(Fault::LostReply),
        Just(Fault::Failure),
        Just(Fault::Refusal),
        Just(Fault::Late),
    ];
    prop::collection::vec((0..60_usize, fault), 0..30)
}

async fn take(world: &World, step: &Step, seed: u64) {
    let death = Death::at(step.death);
    let store: Arc<dyn Store> = Arc::new(Mortal {
        inner: Mixed::over(Arc::clone(&world.store), seed),
        death: Arc::clone(&death),
    });
    let remote: Arc<dyn RemoteLedger> = Arc::new(Mortal {
        inner: world.remote.clone(),
        death: Arc::clone(&death),
    });
    let sagas = world.process_with(Arc::clone(&store), remote);
    let payload = json!({ "refuse": step.refuse });
    let life = async {
        carry_out(&sagas, &store, step.name, &step.ask, payload)
            .await
            .unwrap();
        match step.then {
            Then::Nothing => {}
            Then::Sweep => {
                world.seconds.fetch_add(40, Ordering::Relaxed);
                sagas.sweep().await.unwrap();
            }
            Then::Late => {
                world.remote.deliver_late();
            }
        }
    };
    death.or(life).await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn in_the_end_what_is_allocated_there_is_what_stands_here(
        tasks in prop::collection::vec(prop::collection::vec(step(), 1..8), 1..4),
        faults in faults(),
        seed: u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let world = World::over(memory());
            for (call, fault) in faults {
                world.remote.fault(call, fault);
            }
            let running = tasks.iter().zip(seed..).map(|(steps, seed)| {
                let world = world.clone();
                async move {
                    for (step, seed) in steps.iter().zip(seed..) {
                        take(&world, step, seed).await;
                    }
                }
            });
            join_all(running).await;
            world.settle().await;
            world.remote.deliver_late();
            for name in ["a", "b", "c"] {
                world.is_whole(&instance(name), "in the end").await;
            }
        });
    }
}
