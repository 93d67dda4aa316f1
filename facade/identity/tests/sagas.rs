//! What sagas promise, one by one.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod support;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use fleetwright_identity::{
    ActorName, Amounts, Permission, Principal, QuotaKind, Resource, Verb,
    saga::{Fault, Outcome, Phase, Queue, Reason, SagaError, Ticket},
};
use fleetwright_store::{Revision, Transaction};
use serde_json::json;
use support::{
    allocation, amounts, instance, memory, operator,
    sagas::{Ask, World, actor, carry_out},
};

fn world() -> World {
    World::over(memory())
}

async fn create(world: &World, name: &str) -> Outcome {
    let ask = Ask::Create(amounts(1, 0));
    let made = carry_out(&world.process(), &world.store, name, &ask, json!({})).await;
    made.unwrap().unwrap()
}

async fn delete(world: &World, name: &str) -> Outcome {
    let gone = carry_out(
        &world.process(),
        &world.store,
        name,
        &Ask::Delete,
        json!({}),
    )
    .await;
    gone.unwrap().unwrap()
}

#[tokio::test]
async fn a_limit_of_the_other_service_is_told_as_it_says_it() {
    let world = world();
    let ask = Ask::Create(amounts(11, 0));
    let outcome = carry_out(&world.process(), &world.store, "a", &ask, json!({})).await;
    let Ok(Some(Outcome::Undone(reason))) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        reason.to_string(),
        "total servers allocation of 11 would exceed the limit of 10"
    );
}

#[tokio::test]
async fn a_duplicate_is_told_before_anything_is_charged() {
    let world = world();
    assert_eq!(create(&world, "a").await, Outcome::Done);
    let calls = world.remote.calls();
    let paid = allocation("a", amounts(1, 0));
    let begin = world
        .process()
        .begin_create(Transaction::new(), &actor(), &paid, json!({}));
    let refused = world.store.commit(&begin.unwrap()).await.unwrap_err();
    assert!(
        refused.to_string().contains("instance/a must be absent"),
        "{refused}"
    );
    assert!(!world.process().is_busy(&refused));
    assert_eq!(world.remote.calls(), calls);
}

#[tokio::test]
async fn there_is_one_saga_for_a_record_at_a_time() {
    let world = world();
    let sagas = world.process();
    let paid = allocation("a", amounts(1, 0));
    let begin = || {
        sagas
            .begin_create(Transaction::new(), &actor(), &paid, json!({}))
            .unwrap()
    };
    world.store.commit(&begin()).await.unwrap();
    let busy = world.store.commit(&begin()).await.unwrap_err();
    assert!(sagas.is_busy(&busy), "{busy}");
    assert_eq!(sagas.drive(&instance("a")).await.unwrap(), Outcome::Done);
    assert_eq!(sagas.drive(&instance("a")).await.unwrap(), Outcome::Ended);
}

#[tokio::test]
async fn none_of_a_kind_is_the_same_as_not_naming_it() {
    let world = world();
    let sagas = world.process();
    assert_eq!(create(&world, "a").await, Outcome::Done);
    let calls = world.remote.calls();
    // The same cost, with and without what there is none of: there is nothing to ask for.
    for (before, after) in [
        (amounts(1, 0), amounts(1, 0).normal()),
        (amounts(1, 0).normal(), amounts(1, 0)),
    ] {
        let paid = allocation("a", before);
        let begin = sagas.begin_update(Transaction::new(), &actor(), &paid, &after, json!({}));
        world.store.commit(&begin.unwrap()).await.unwrap();
        assert_eq!(sagas.drive(&instance("a")).await.unwrap(), Outcome::Done);
    }
    assert_eq!(world.remote.calls(), calls);
}

#[tokio::test]
async fn a_kind_that_nobody_registered_begins_no_saga() {
    let world = world();
    let kind = QuotaKind::new("floating-ips").unwrap();
    let strange = Amounts::new().with(kind, 1);
    let paid = allocation("a", strange.clone());
    let create = world
        .process()
        .begin_create(Transaction::new(), &actor(), &paid, json!({}));
    assert!(matches!(create, Err(SagaError::UnknownKind(_))));
    let paid = allocation("a", amounts(1, 0));
    let update =
        world
            .process()
            .begin_update(Transaction::new(), &actor(), &paid, &strange, json!({}));
    assert!(matches!(update, Err(SagaError::UnknownKind(_))));
}

#[tokio::test(start_paused = true)]
async fn what_a_dropped_request_began_goes_on_without_it() {
    let world = world();
    world.remote.fault(0, Fault::Silence);
    let sagas = world.process();
    let paid = allocation("a", amounts(1, 0));
    // The local step will refuse, so that there is something to undo after the request is gone.
    let begin = sagas.begin_create(Transaction::new(), &actor(), &paid, json!({"refuse": true}));
    world.store.commit(&begin.unwrap()).await.unwrap();
    // The request gives up while the other service is silent.
    let id = instance("a");
    let request = sagas.run_to_end(&id);
    let cut_off = tokio::time::timeout(Duration::from_secs(1), request).await;
    assert!(cut_off.is_err());
    assert!(world.remote.allocation(&instance("a")).is_some());
    // Its task has the answer that there is none, and stores it.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let saga = sagas.saga(&instance("a")).await.unwrap().unwrap();
    assert_eq!((saga.attempts, saga.phase), (1, Phase::Charge));
    let silence = "the remote ledger is unavailable: no answer within 10s";
    assert_eq!(saga.last_error.as_deref(), Some(silence));
    world.settle().await;
    world
        .is_whole(&instance("a"), "after a dropped request")
        .await;
    assert_eq!(world.remote.allocation(&instance("a")), None);
}

#[tokio::test]
async fn what_cannot_be_undone_is_tried_on_shown_and_holds_up_nothing() {
    let world = world();
    assert_eq!(create(&world, "a").await, Outcome::Done);
    let first = world.remote.calls();
    // The release is refused again and again.
    (first..first + 8).for_each(|call| world.remote.fault(call, Fault::Refusal));
    let Outcome::Waiting { error, queue } = delete(&world, "a").await else {
        panic!("it should wait");
    };
    assert_eq!(
        (error.as_str(), queue),
        ("the remote ledger refuses: it will not", Queue::Waiting)
    );
    let sagas = world.process();
    let mut pauses = Vec::new();
    for _ in 0..7 {
        let mut pause = 0;
        // Second by second, until it has been tried again.
        let calls = world.remote.calls();
        while world.remote.calls() == calls {
            world.seconds.fetch_add(1, Ordering::Relaxed);
            pause += 1;
            sagas.sweep().await.unwrap();
        }
        pauses.push(pause);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64]);
    let (stuck, next) = sagas.stuck(&operator(), None).await.unwrap();
    assert!(next.is_none());
    let [saga] = stuck.as_slice() else {
        panic!("{stuck:?}");
    };
    assert_eq!(saga.pays_for(), &instance("a"));
    assert_eq!((saga.attempts, saga.queue), (8, Queue::Stuck));
    assert_eq!(
        saga.last_error.as_deref(),
        Some("the remote ledger refuses: it will not")
    );
    // Others go their way.
    assert_eq!(create(&world, "b").await, Outcome::Done);
    assert_eq!(delete(&world, "b").await, Outcome::Done);
    // Somebody mends it and does not wait.
    assert!(sagas.wake(&operator(), &instance("a")).await.unwrap());
    let sweep = sagas.sweep().await.unwrap();
    assert_eq!((sweep.ended, sweep.waiting), (1, 0));
    assert_eq!(sagas.stuck(&operator(), None).await.unwrap().0, []);
    assert!(!sagas.wake(&operator(), &instance("a")).await.unwrap());
    world.is_whole(&instance("a"), "in the end").await;
}

#[tokio::test]
async fn a_failing_compensation_does_not_stop_the_rest_of_a_sweep() {
    let world = world();
    let sagas = world.process();
    for number in 0..20 {
        let paid = allocation(number, amounts(0, 1));
        let begin =
            sagas.begin_create(Transaction::new(), &actor(), &paid, json!({"refuse": true}));
        world.store.commit(&begin.unwrap()).await.unwrap();
    }
    // Each is charged and then given back; of the first ten, giving back fails.
    (0..10).for_each(|saga| world.remote.fault(2 * saga + 1, Fault::Failure));
    world.seconds.fetch_add(31, Ordering::Relaxed);
    let sweep = sagas.sweep().await.unwrap();
    let calls = world.remote.calls();
    assert_eq!((sweep.ended + sweep.waiting, calls), (20, 40));
    assert_eq!(sweep.waiting, 10, "{sweep:?}");
    assert_eq!(world.open().await, 10);
    world.settle().await;
}

#[tokio::test]
async fn a_step_that_panics_is_told_and_holds_up_nothing() {
    let world = world();
    let sagas = world.process();
    for (name, panics) in [("a", true), ("b", false)] {
        let paid = allocation(name, amounts(1, 0));
        let payload = json!({ "panic": panics });
        let begin = sagas.begin_create(Transaction::new(), &actor(), &paid, payload);
        world.store.commit(&begin.unwrap()).await.unwrap();
    }
    world.seconds.fetch_add(31, Ordering::Relaxed);
    let sweep = sagas.sweep().await.unwrap();
    let told: Vec<_> = sweep
        .failed
        .iter()
        .map(|(_, error)| error.to_string())
        .collect();
    assert_eq!(
        told,
        ["the saga for instance/a was interrupted: it is taken up by the next sweep"]
    );
    assert_eq!(sweep.ended, 1);
    let interrupted = sagas.run_to_end(&instance("a")).await;
    assert!(matches!(interrupted, Err(SagaError::Interrupted { .. })));
    assert!(world.cost(&instance("b")).await.is_some());
    assert!(world.cost(&instance("a")).await.is_none());
}

#[tokio::test]
async fn who_cannot_charge_gives_up_and_leaves_nothing() {
    let world = world();
    // Each arrives and nobody hears of it.
    (0..5).for_each(|call| world.remote.fault(call, Fault::LostReply));
    let waiting = create(&world, "a").await;
    assert!(
        matches!(
            waiting,
            Outcome::Waiting {
                queue: Queue::Waiting,
                ..
            }
        ),
        "{waiting:?}"
    );
    assert!(world.remote.allocation(&instance("a")).is_some());
    world.settle().await;
    assert_eq!(world.remote.calls(), 6);
    assert_eq!(world.cost(&instance("a")).await, None);
    world.is_whole(&instance("a"), "given up").await;
    // The same name again is a new saga, which the other service does not take for the old one.
    assert_eq!(create(&world, "a").await, Outcome::Done);
    world.is_whole(&instance("a"), "made after all").await;
}

#[tokio::test]
async fn a_request_that_comes_after_the_end_changes_nothing() {
    let world = world();
    (0..5).for_each(|call| world.remote.fault(call, Fault::Late));
    create(&world, "a").await;
    world.settle().await;
    assert_eq!(world.remote.deliver_late(), 5);
    world.is_whole(&instance("a"), "after late requests").await;
}

#[tokio::test]
async fn a_saga_that_was_just_begun_is_left_to_who_began_it() {
    let world = world();
    let sagas = world.process();
    let paid = allocation("a", amounts(1, 0));
    let begin = sagas.begin_create(Transaction::new(), &actor(), &paid, json!({}));
    world.store.commit(&begin.unwrap()).await.unwrap();
    assert_eq!(sagas.sweep().await.unwrap().ended, 0);
    world.seconds.fetch_add(31, Ordering::Relaxed);
    assert_eq!(sagas.sweep().await.unwrap().ended, 1);
    assert!(world.cost(&instance("a")).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn run_sweeps_again_and_again() {
    let world = world();
    let sagas = world.process();
    let paid = allocation("a", amounts(1, 0));
    let begin = sagas.begin_create(Transaction::new(), &actor(), &paid, json!({}));
    world.store.commit(&begin.unwrap()).await.unwrap();
    let seconds = Arc::clone(&world.seconds);
    let mut sweeps = 0;
    let running = sagas.run(|sweep| {
        assert!(sweep.is_ok());
        sweeps += 1;
        seconds.fetch_add(5, Ordering::Relaxed);
    });
    assert!(
        tokio::time::timeout(Duration::from_secs(58), running)
            .await
            .is_err()
    );
    assert_eq!(sweeps, 12);
    assert_eq!(world.open().await, 0);
}

#[tokio::test]
async fn only_who_is_permitted_sees_and_wakes_sagas() {
    let world = world();
    let sagas = world.process();
    let may_list = Permission::new(Verb::List, Resource::Sagas).unwrap();
    let viewer = Principal::service(ActorName::new("viewer").unwrap(), [may_list]);
    assert!(sagas.stuck(&viewer, None).await.is_ok());
    assert!(matches!(
        sagas.wake(&viewer, &instance("a")).await,
        Err(SagaError::Refused(_))
    ));
    let nobody = Principal::service(ActorName::new("nobody").unwrap(), []);
    assert!(matches!(
        sagas.stuck(&nobody, None).await,
        Err(SagaError::Refused(_))
    ));
}

#[tokio::test]
async fn what_a_tenant_sent_is_not_shown() {
    let world = world();
    let sagas = world.process();
    let paid = allocation("a", amounts(1, 0));
    let payload = json!({"user_data": "hunter2"});
    let begin = sagas
        .begin_create(Transaction::new(), &actor(), &paid, payload)
        .unwrap();
    world.store.commit(&begin).await.unwrap();
    let saga = sagas.saga(&instance("a")).await.unwrap().unwrap();
    let told = format!("{saga:?}");
    assert!(
        !told.contains("hunter2") && told.contains("instance/a"),
        "{told}"
    );
}

#[tokio::test]
async fn a_saga_that_cannot_be_read_is_told_and_holds_up_nothing() {
    let world = world();
    let sagas = world.process();
    let paid = allocation("a", amounts(1, 0));
    let begin = sagas.begin_create(Transaction::new(), &actor(), &paid, json!({}));
    world.store.commit(&begin.unwrap()).await.unwrap();
    let id = fleetwright_store::RecordId::new("saga", "instance/b").unwrap();
    let rubbish = json!({"queue": "waiting", "due": 0});
    world
        .store
        .commit(&Transaction::new().put(id.clone(), rubbish))
        .await
        .unwrap();
    world.seconds.fetch_add(31, Ordering::Relaxed);
    let sweep = sagas.sweep().await.unwrap();
    assert_eq!((sweep.ended, sweep.damaged), (1, vec![id]));
}

#[test]
fn a_ticket_is_ordered_by_saga_and_step_and_has_one_key() {
    let ticket = |begun, step| Ticket {
        begun: Revision(begun),
        step,
    };
    let tickets = [
        ticket(7, 1),
        ticket(7, 2),
        ticket(7, 3),
        ticket(8, 1),
        ticket(10, 1),
    ];
    assert!(tickets.is_sorted());
    assert_eq!(tickets[1].to_string(), "7.2");
    let keys = tickets.map(|ticket| ticket.key(&instance("a")));
    assert_eq!(std::collections::BTreeSet::from(keys).len(), keys.len());
    assert_ne!(keys[0], tickets[0].key(&instance("b")));
    // Keys of sagas under way must not change with the program.
    assert_eq!(keys[0].to_string(), "082e622c-e321-52c4-8f67-04a5e17d6052");
}

#[test]
fn reasons_are_kept() {
    for reason in [
        Reason::Refused("no".to_owned()),
        Reason::Local("no".to_owned()),
        Reason::GivenUp("no".to_owned()),
    ] {
        let json = serde_json::to_string(&Phase::Undo(reason.clone())).unwrap();
        assert_eq!(
            serde_json::from_str::<Phase>(&json).unwrap(),
            Phase::Undo(reason)
        );
    }
}
