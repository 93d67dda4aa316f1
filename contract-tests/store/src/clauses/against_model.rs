//! Random sequences of calls, each answered as the model answers it.

use fleetwright_clause_engine::Executor;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use serde_json::{Value, json};

use crate::{
    Environment, Failure, Harness, Outcome, Pass, context,
    model::{Expected, Model},
    require,
};
use fleetwright_store::{
    Check, Claim, IndexName, Interest, Key, Kind, Query, Record, RecordId, Revision, Store,
    StoreError, StoreExt, Transaction, Write,
};

/// One call.
#[derive(Clone, Debug)]
enum Call {
    Commit(Vec<Guess>, Vec<Write>),
    List(u32),
    ByIndex(&'static str, u32),
    Watch(u8),
    Compact(u8),
    Reopen,
}

/// A check that is known only when its turn comes.
#[derive(Clone, Debug)]
enum Guess {
    Absent(RecordId),
    Exists(RecordId),
    /// At the revision it has, or at one beside it.
    At(RecordId, u8),
    Unclaimed(&'static str, &'static str, Option<Key>),
}

/// MODEL-01: a store must return from any sequence of calls what the model returns.
///
/// Every clause is about one thing; programs combine them in any order.
pub(crate) fn model_01_random_histories(environment: &Environment) -> Outcome {
    let factory = &environment.factory;
    let config = Config {
        cases: factory().model_cases(),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, seed);
    let runtime = Executor::MultiThread.build()?;
    let outcome = runner.run(&vec(call(), 1..25), |calls| {
        let played = runtime.block_on(play(&*factory(), &calls));
        played.map_err(|stop| TestCaseError::fail(format!("{stop:?}")))
    });
    match outcome {
        Ok(()) => Ok(Pass::Held),
        Err(TestError::Fail(reason, calls)) => Err(Failure::violated(format!(
            "{reason} in the sequence {calls:?}"
        ))),
        Err(TestError::Abort(reason)) => Err(Failure::KitError(reason.to_string())),
    }
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        8 => (vec(guess(), 0..3), vec(write(), 0..4)).prop_map(|(guesses, writes)| Call::Commit(guesses, writes)),
        2 => (1_u32..4).prop_map(Call::List),
        2 => (prop_oneof![Just("g"), Just("h")], 1_u32..4).prop_map(|(group, limit)| Call::ByIndex(group, limit)),
        1 => any::<u8>().prop_map(Call::Watch),
        1 => any::<u8>().prop_map(Call::Compact),
        1 => Just(Call::Reopen),
    ]
}

fn id() -> impl Strategy<Value = RecordId> {
    let kind = prop_oneof![3 => Just("thing"), 1 => Just("other")];
    let key = prop_oneof![Just("a"), Just("b"), Just("c"), Just("d")];
    (kind, key).prop_filter_map("names are valid", |(kind, key)| {
        RecordId::new(kind, key).ok()
    })
}

fn write() -> impl Strategy<Value = Write> {
    let name = prop_oneof![2 => Just(Value::Null), 1 => Just(json!("m")), 1 => Just(json!("n"))];
    let group = prop_oneof![Just(Value::Null), Just(json!("g")), Just(json!("h"))];
    let value = (name, group, 0..3_u8)
        .prop_map(|(name, group, other)| json!({"name": name, "group": group, "other": other}));
    prop_oneof![
        3 => (id(), value).prop_map(|(id, value)| Write::Put(id, value)),
        1 => id().prop_map(Write::Delete),
    ]
}

fn guess() -> impl Strategy<Value = Guess> {
    let place = prop_oneof![Just(("name", "n")), Just(("group", "g"))];
    let except = prop_oneof![
        Just(None),
        Just(Key::new("a").ok()),
        Just(Key::new("b").ok()),
    ];
    prop_oneof![
        1 => id().prop_map(Guess::Absent),
        2 => id().prop_map(Guess::Exists),
        3 => (id(), 0..4_u8).prop_map(|(id, beside)| Guess::At(id, beside)),
        1 => (place, except).prop_map(|((index, value), except)| Guess::Unclaimed(index, value, except)),
    ]
}

impl Guess {
    fn check(&self, model: &Model) -> Result<Check, Failure> {
        Ok(match self {
            Self::Absent(id) => Check::Absent(id.clone()),
            Self::Exists(id) => Check::Exists(id.clone()),
            Self::At(id, beside) => {
                let now = model
                    .records
                    .get(id)
                    .map_or(Revision::ZERO, |(revision, _)| *revision);
                let wanted = if *beside == 0 { now.next() } else { now };
                Check::At(id.clone(), wanted)
            }
            Self::Unclaimed(index, value, except) => {
                let mut claim = Claim::new(context::kind("thing")?, context::index(index)?, *value);
                claim.except.clone_from(except);
                Check::Unclaimed(claim)
            }
        })
    }
}

async fn play(harness: &dyn Harness, calls: &[Call]) -> Result<(), Failure> {
    let mut store = context::open(harness).await?;
    let mut model = Model::default();
    for call in calls {
        match call {
            Call::Commit(guesses, writes) => {
                let checks: Result<_, Failure> =
                    guesses.iter().map(|one| one.check(&model)).collect();
                let transaction = Transaction {
                    checks: checks?,
                    writes: writes.clone(),
                };
                commit(&*store, &mut model, &transaction).await?;
            }
            Call::List(limit) => list_all(&*store, &model, *limit).await?,
            Call::ByIndex(group, limit) => list_group(&*store, &model, group, *limit).await?,
            Call::Watch(from) => watch(&*store, &model, fraction(&model, *from)).await?,
            Call::Compact(through) => {
                let through = fraction(&model, *through);
                model.compact(through);
                let answer = store.compact(through).await;
                answer.map_err(|error| Failure::call_failed("compact", &error))?;
            }
            Call::Reopen => store = context::open(harness).await?,
        }
    }
    list_all(&*store, &model, 1000).await?;
    for group in ["g", "h"] {
        list_group(&*store, &model, group, 1000).await?;
    }
    watch(&*store, &model, model.compacted).await
}

/// A revision of the model's past.
fn fraction(model: &Model, part: u8) -> Revision {
    let position = model.log.len() * usize::from(part) / 255;
    let last = position.checked_sub(1).and_then(|last| model.log.get(last));
    last.map_or(Revision::ZERO, |commit| commit.revision)
}

async fn commit(
    store: &dyn Store,
    model: &mut Model,
    transaction: &Transaction,
) -> Result<(), Failure> {
    let before = model.head();
    let answer = match store.commit(transaction).await {
        Ok(revision) => Expected::Committed(revision),
        Err(StoreError::Invalid(_)) => Expected::Invalid,
        Err(error) => match error.conflict() {
            Some(conflict) => Expected::Conflict(conflict.part, conflict.found.clone()),
            None => return Err(Failure::call_failed("a commit", &error)),
        },
    };
    // The store chooses how far its revision goes on, as long as it does.
    let next = match answer {
        Expected::Committed(revision) => revision.max(before.next()),
        Expected::Conflict(..) | Expected::Invalid => before.next(),
    };
    let expected = model.commit(transaction, next);
    require(answer == expected, || {
        format!("{transaction:?} comes to {answer:?}, in the model to {expected:?}")
    })
}

async fn same(store: &dyn Store, query: &Query, wanted: Vec<Record>) -> Result<(), Failure> {
    let answer = store.list_all(query).await;
    let page = answer.map_err(|error| Failure::call_failed("a list", &error))?;
    require(page.records == wanted, || {
        format!(
            "{query:?} shows {:?}, in the model {wanted:?}",
            page.records
        )
    })
}

async fn list_all(store: &dyn Store, model: &Model, limit: u32) -> Result<(), Failure> {
    for name in ["thing", "other"] {
        let query = Query::all(context::kind(name)?).limit(limit);
        same(store, &query, model.list(name, |_| true)).await?;
    }
    Ok(())
}

async fn list_group(
    store: &dyn Store,
    model: &Model,
    group: &str,
    limit: u32,
) -> Result<(), Failure> {
    let (kind, index): (Kind, IndexName) = (context::kind("thing")?, context::index("group")?);
    let query = Query::by(kind, index, group).limit(limit);
    same(
        store,
        &query,
        model.list("thing", |value| value["group"] == group),
    )
    .await
}

async fn watch(store: &dyn Store, model: &Model, after: Revision) -> Result<(), Failure> {
    let opened = store.watch(after, Interest::all()).await;
    if after < model.compacted {
        let is_told = matches!(opened, Err(StoreError::Compacted { oldest, .. }) if oldest == model.compacted);
        return require(is_told, || format!("a watch from {after}: {opened:?}"));
    }
    let mut watch = opened.map_err(|error| Failure::call_failed("a watch", &error))?;
    let upcoming = model.log.iter().filter(|commit| commit.revision > after);
    for wanted in upcoming {
        let shown = watch.next().await;
        let shown = shown.map_err(|error| Failure::call_failed("a watch", &error))?;
        require(shown == *wanted, || {
            format!("{shown:?} is shown, in the model {wanted:?}")
        })?;
    }
    Ok(())
}
