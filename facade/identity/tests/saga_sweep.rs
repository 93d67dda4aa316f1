//! A crash at every step × every fault of the other service at every request: afterwards there is an allocation there
//! exactly if there is an instance here, of the same size, and no saga is left.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod support;

use std::sync::Arc;

use fleetwright_identity::{
    Amounts,
    saga::{Fault, Outcome, RemoteLedger},
};
use fleetwright_store::Store;
use serde_json::{Value, json};
use support::{
    amounts,
    flaky::{Flaky, Mishap},
    instance, memory,
    sagas::{Ask, Death, Mortal, When, World, carry_out},
    whole_schema,
};

/// What is there before, what is asked for, and what the local step makes of it.
#[derive(Clone, Debug)]
struct Scene {
    name: &'static str,
    before: Option<Amounts>,
    ask: Ask,
    payload: Value,
}

fn scenes() -> Vec<Scene> {
    let scene = |name, before, ask, payload| Scene {
        name,
        before,
        ask,
        payload,
    };
    let (go, refuse) = (json!({}), json!({"refuse": true}));
    let some = || Some(amounts(2, 4));
    vec![
        scene("create", None, Ask::Create(amounts(1, 8)), go.clone()),
        scene(
            "create, refused here",
            None,
            Ask::Create(amounts(1, 8)),
            refuse.clone(),
        ),
        scene(
            "create, too much",
            None,
            Ask::Create(amounts(11, 0)),
            go.clone(),
        ),
        scene(
            "create of what is there",
            some(),
            Ask::Create(amounts(1, 0)),
            go.clone(),
        ),
        scene("grow", some(), Ask::Update(amounts(2, 8)), go.clone()),
        scene(
            "grow, refused here",
            some(),
            Ask::Update(amounts(2, 8)),
            refuse.clone(),
        ),
        scene(
            "grow, too much",
            some(),
            Ask::Update(amounts(2, 41)),
            go.clone(),
        ),
        scene("shrink", some(), Ask::Update(amounts(1, 0)), go.clone()),
        scene(
            "shrink, refused here",
            some(),
            Ask::Update(amounts(1, 0)),
            refuse.clone(),
        ),
        scene(
            "grow and shrink",
            some(),
            Ask::Update(amounts(1, 8)),
            go.clone(),
        ),
        scene(
            "grow and shrink, refused here",
            some(),
            Ask::Update(amounts(1, 8)),
            refuse,
        ),
        scene("no change", some(), Ask::Update(amounts(2, 4)), go.clone()),
        scene("delete", some(), Ask::Delete, go),
    ]
}

/// What goes wrong: where the process dies, and which requests fail, counted from the first of the scene.
#[derive(Clone, Debug)]
struct Trouble {
    death: Option<(usize, When)>,
    fault: Option<(usize, Fault, usize)>,
    late_at_once: bool,
}

const NONE: Trouble = Trouble {
    death: None,
    fault: None,
    late_at_once: false,
};

/// How many effects and requests there were.
struct Course {
    effects: usize,
    calls: usize,
    outcome: Option<Option<Outcome>>,
    cost: Option<Amounts>,
}

async fn play(world: &World, scene: &Scene, trouble: &Trouble) -> Course {
    let id = instance("a");
    if let Some(before) = &scene.before {
        let ask = Ask::Create(before.clone());
        let made = carry_out(&world.process(), &world.store, "a", &ask, json!({})).await;
        assert_eq!(made.unwrap(), Some(Outcome::Done));
    }
    let before = world.remote.calls();
    if let Some((from, fault, times)) = trouble.fault {
        (from..from + times).for_each(|call| world.remote.fault(before + call, fault));
    }
    let death = Death::at(trouble.death);
    let store: Arc<dyn Store> = Arc::new(Mortal {
        inner: Arc::clone(&world.store),
        death: Arc::clone(&death),
    });
    let remote: Arc<dyn RemoteLedger> = Arc::new(Mortal {
        inner: world.remote.clone(),
        death: Arc::clone(&death),
    });
    let sagas = world.process_with(Arc::clone(&store), remote);
    let life = carry_out(&sagas, &store, "a", &scene.ask, scene.payload.clone());
    let outcome = death.or(life).await.map(|answer| answer.unwrap());
    if trouble.late_at_once {
        world.remote.deliver_late();
    }
    world.settle().await;
    world.remote.deliver_late();
    let told = format!("after {:?} with {trouble:?}", scene.name);
    world.is_whole(&id, &told).await;
    Course {
        effects: death.effects(),
        calls: world.remote.calls() - before,
        outcome,
        cost: world.cost(&id).await,
    }
}

impl Trouble {
    /// Whether the saga was begun, and nothing refused it or went on for long: then it ends as if nothing had happened.
    fn is_passing(&self) -> bool {
        let never_begun = self.death == Some((0, When::Before));
        let passing = match self.fault {
            Some((_, fault, times)) => fault != Fault::Refusal && times == 1,
            None => true,
        };
        !never_begun && passing
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_every_step_and_every_fault_leave_both_or_neither() {
    let mut plays = 0;
    for scene in scenes() {
        let course = play(&World::over(memory()), &scene, &NONE).await;
        let deaths = (0..course.effects).flat_map(|n| [(n, When::Before), (n, When::After)]);
        let deaths: Vec<_> = std::iter::once(None).chain(deaths.map(Some)).collect();
        // Two requests more than there were: those that undo.
        let requests = 0..course.calls + 2;
        // Once; often enough to give up; often enough to be stuck on the way back too.
        let faults = requests.flat_map(|n| {
            let each = Fault::ALL.into_iter();
            each.flat_map(move |fault| [1, 5, 12].map(|times| Some((n, fault, times))))
        });
        let faults: Vec<_> = std::iter::once(None).chain(faults).collect();
        for death in &deaths {
            for fault in &faults {
                // When what is late arrives matters only if something is.
                let late = matches!(fault, Some((_, Fault::Late, _)));
                for late_at_once in [false, true].into_iter().take(1 + usize::from(late)) {
                    let trouble = Trouble {
                        death: *death,
                        fault: *fault,
                        late_at_once,
                    };
                    let troubled = play(&World::over(memory()), &scene, &trouble).await;
                    if trouble.is_passing() {
                        assert_eq!(troubled.cost, course.cost, "{} {trouble:?}", scene.name);
                    }
                    plays += 1;
                }
            }
        }
    }
    // As many as a reader would expect, so that a loop that is never entered is noticed.
    assert!(plays > 7_000, "{plays}");
}

#[tokio::test]
async fn without_trouble_the_outcome_is_what_was_asked_for() {
    let expected = [
        ("create", "Some(Some(Done))"),
        ("create, refused here", "Local(\"the network is gone\")"),
        ("create, too much", "total: 11, limit: 10"),
        ("create of what is there", "Some(None)"),
        ("grow", "Some(Some(Done))"),
        ("grow, refused here", "Local(\"the network is gone\")"),
        ("grow, too much", "total: 41, limit: 40"),
        ("shrink", "Some(Some(Done))"),
        ("shrink, refused here", "Local(\"the network is gone\")"),
        ("grow and shrink", "Some(Some(Done))"),
        (
            "grow and shrink, refused here",
            "Local(\"the network is gone\")",
        ),
        ("no change", "Some(Some(Done))"),
        ("delete", "Some(Some(Done))"),
    ];
    for (scene, (name, outcome)) in scenes().iter().zip(expected) {
        assert_eq!(scene.name, name);
        let course = play(&World::over(memory()), scene, &NONE).await;
        let told = format!("{:?}", course.outcome);
        assert!(told.contains(outcome), "{name}: {told}");
    }
}

/// The same crashes on a file, which is opened anew as after a real one.
#[tokio::test]
async fn a_crash_at_every_step_on_sqlite() {
    async fn open(folder: &tempfile::TempDir) -> Arc<dyn Store> {
        let file = folder.path().join("sagas.db");
        let store = fleetwright_store_sqlite::SqliteStore::open(file, whole_schema()).await;
        Arc::new(store.unwrap())
    }
    let longest = [
        "create",
        "grow and shrink",
        "grow and shrink, refused here",
        "delete",
    ];
    for scene in scenes()
        .into_iter()
        .filter(|scene| longest.contains(&scene.name))
    {
        let course = play(&World::over(memory()), &scene, &NONE).await;
        for effect in 0..course.effects {
            for when in [When::Before, When::After] {
                let folder = tempfile::tempdir().unwrap();
                let world = World::over(open(&folder).await);
                let trouble = Trouble {
                    death: Some((effect, when)),
                    ..NONE
                };
                play(&world, &scene, &trouble).await;
                let (remote, seconds) = (world.remote.clone(), Arc::clone(&world.seconds));
                drop(world);
                let store = open(&folder).await;
                let world = World {
                    store,
                    remote,
                    seconds,
                };
                world.is_whole(&instance("a"), "after reopening").await;
            }
        }
    }
}

/// A store that is away for one commit, or does not tell what became of it, at every commit.
#[tokio::test]
async fn a_store_that_does_not_go_along_leaves_both_or_neither() {
    let mut told = 0;
    // All that are begun: of what is there already the first commit is a conflict.
    let begun = scenes()
        .into_iter()
        .filter(|scene| scene.name != "create of what is there");
    for scene in begun {
        let course = play(&World::over(memory()), &scene, &NONE).await;
        for (commit, mishap) in (0..course.effects).flat_map(|n| Mishap::ALL.map(|m| (n, m))) {
            let world = World::over(memory());
            if let Some(before) = &scene.before {
                let ask = Ask::Create(before.clone());
                let made = carry_out(&world.process(), &world.store, "a", &ask, json!({})).await;
                assert_eq!(made.unwrap(), Some(Outcome::Done));
            }
            let flaky = Flaky::watched(&world.store, commit, mishap);
            let store: Arc<dyn Store> = Arc::clone(&flaky) as _;
            let sagas = world.process_with(Arc::clone(&store), Arc::new(world.remote.clone()));
            let answer = carry_out(&sagas, &store, "a", &scene.ask, scene.payload.clone()).await;
            // That it is away is told at once. What nobody knows is settled by looking, once there is a saga.
            let is_told = match mishap {
                Mishap::Unavailable => flaky.has_happened(),
                Mishap::UnknownAndDone | Mishap::UnknownAndNot => commit == 0,
            };
            assert_eq!(
                answer.is_err(),
                is_told,
                "{} {mishap:?} {commit}",
                scene.name
            );
            told += usize::from(is_told);
            world.settle().await;
            let told = format!("after {:?} with {mishap:?} at {commit}", scene.name);
            world.is_whole(&instance("a"), &told).await;
        }
    }
    assert!(told > 20, "{told}");
}
