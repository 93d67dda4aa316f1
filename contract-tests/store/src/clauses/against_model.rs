//! MODEL-01: random sequences of calls, whose results are compared with those of the model.
//!
//! Owns the generator of calls and the comparison. The seed is fixed, so a failure is repeatable;
//! proptest shrinks the sequence before it is reported. The store chooses its revisions, and the
//! model takes them over, so a store whose revisions skip numbers passes.

use fleetwright_clause_engine::Executor;
use fleetwright_store::{
    Check, Claim, IndexName, Interest, Key, Kind, Query, Record, RecordId, Revision, Store,
    StoreError, StoreExt, Transaction, Write,
};
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

/// One call of a sequence. Numbers that stand for a revision are fractions of the history so far,
/// because the revisions are not known when the sequence is generated.
#[derive(Clone, Debug)]
enum Call {
    Commit(Vec<PlannedCheck>, Vec<Write>),
    List(u32),
    ByIndex(&'static str, u32),
    Watch(u8),
    Compact(u8),
    Reopen,
}

/// A check whose revision is filled in when its transaction is committed.
#[derive(Clone, Debug)]
enum PlannedCheck {
    Absent(RecordId),
    Exists(RecordId),
    /// At the revision that the record has then, or at the next one if the number is 0.
    At(RecordId, u8),
    Unclaimed(&'static str, &'static str, Option<Key>),
}

/// MODEL-01: a store must return from any sequence of calls what the model returns.
///
/// Every clause is about one thing; programs combine them in any order.
///
/// Runs sequences of up to 24 commits, lists, watches, compactions and reopenings on four keys of
/// two kinds.
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
        let result = runtime.block_on(run_calls(&*factory(), &calls));
        result.map_err(|failure| TestCaseError::fail(format!("{failure:?}")))
    });
    match outcome {
        Ok(()) => Ok(Pass::Held),
        Err(TestError::Fail(reason, calls)) => Err(Failure::violated(format!(
            "{reason} in the sequence {calls:?}"
        ))),
        Err(TestError::Abort(reason)) => Err(Failure::KitError(reason.to_string())),
    }
}

/// Mostly commits, because they change what the other calls return.
fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        8 => (vec(planned_check(), 0..3), vec(write(), 0..4)).prop_map(|(planned, writes)| Call::Commit(planned, writes)),
        2 => (1_u32..4).prop_map(Call::List),
        2 => (prop_oneof![Just("g"), Just("h")], 1_u32..4).prop_map(|(group, limit)| Call::ByIndex(group, limit)),
        1 => any::<u8>().prop_map(Call::Watch),
        1 => any::<u8>().prop_map(Call::Compact),
        1 => Just(Call::Reopen),
    ]
}

/// Few keys, so that calls meet the same records.
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
        3 => (id(), value).prop_map(|(id, value)| Write::Put(id, value.into())),
        1 => id().prop_map(Write::Delete),
    ]
}

fn planned_check() -> impl Strategy<Value = PlannedCheck> {
    let place = prop_oneof![Just(("name", "n")), Just(("group", "g"))];
    let except = prop_oneof![
        Just(None),
        Just(Key::new("a").ok()),
        Just(Key::new("b").ok()),
    ];
    prop_oneof![
        1 => id().prop_map(PlannedCheck::Absent),
        2 => id().prop_map(PlannedCheck::Exists),
        3 => (id(), 0..4_u8).prop_map(|(id, offset)| PlannedCheck::At(id, offset)),
        1 => (place, except).prop_map(|((index, value), except)| PlannedCheck::Unclaimed(index, value, except)),
    ]
}

impl PlannedCheck {
    /// Returns the check for the model's current state.
    fn resolve(&self, model: &Model) -> Result<Check, Failure> {
        Ok(match self {
            Self::Absent(id) => Check::Absent(id.clone()),
            Self::Exists(id) => Check::Exists(id.clone()),
            Self::At(id, offset) => {
                let now = model
                    .records
                    .get(id)
                    .map_or(Revision::ZERO, |(revision, _)| *revision);
                let wanted = if *offset == 0 { now.next() } else { now };
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

/// Runs a sequence on a fresh store and on the model, and compares every result and the final
/// state.
async fn run_calls(harness: &dyn Harness, calls: &[Call]) -> Result<(), Failure> {
    let mut store = context::open(harness).await?;
    let mut model = Model::default();
    for call in calls {
        match call {
            Call::Commit(planned, writes) => {
                let checks: Result<_, Failure> =
                    planned.iter().map(|check| check.resolve(&model)).collect();
                let transaction = Transaction {
                    checks: checks?,
                    writes: writes.clone(),
                };
                commit(&*store, &mut model, &transaction).await?;
            }
            Call::List(limit) => list_all(&*store, &model, *limit).await?,
            Call::ByIndex(group, limit) => list_group(&*store, &model, group, *limit).await?,
            Call::Watch(from) => watch(&*store, &model, revision_at(&model, *from)).await?,
            Call::Compact(through) => {
                let through = revision_at(&model, *through);
                model.compact(through);
                let result = store.compact(through).await;
                result.map_err(|error| Failure::call_failed("compact", &error))?;
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

/// Returns the revision at a fraction of the model's history: 0 is the start, 255 the last commit.
fn revision_at(model: &Model, part: u8) -> Revision {
    let position = model.log.len() * usize::from(part) / 255;
    let last = position.checked_sub(1).and_then(|last| model.log.get(last));
    last.map_or(Revision::ZERO, |commit| commit.revision)
}

/// Commits on both sides and compares what came of it.
async fn commit(
    store: &dyn Store,
    model: &mut Model,
    transaction: &Transaction,
) -> Result<(), Failure> {
    let before = model.head();
    let result = match store.commit(transaction).await {
        Ok(revision) => Expected::Committed(revision),
        Err(StoreError::Invalid(_)) => Expected::Invalid,
        Err(error) => match error.conflict() {
            Some(conflict) => Expected::Conflict(conflict.part, conflict.found.clone()),
            None => return Err(Failure::call_failed("a commit", &error)),
        },
    };
    // A store may raise its revision by any number, but must raise it.
    let next = match result {
        Expected::Committed(revision) => revision.max(before.next()),
        Expected::Conflict(..) | Expected::Invalid => before.next(),
    };
    let expected = model.commit(transaction, next);
    require(result == expected, || {
        format!("{transaction:?} returned {result:?}, the model {expected:?}")
    })
}

/// Requires that a list returns exactly these records.
async fn require_records(
    store: &dyn Store,
    query: &Query,
    wanted: Vec<Record>,
) -> Result<(), Failure> {
    let result = store.list_all(query).await;
    let page = result.map_err(|error| Failure::call_failed("a list", &error))?;
    require(page.records == wanted, || {
        format!(
            "{query:?} returned {:?}, the model {wanted:?}",
            page.records
        )
    })
}

/// Compares all records of both kinds, in pages of `limit`.
async fn list_all(store: &dyn Store, model: &Model, limit: u32) -> Result<(), Failure> {
    for name in ["thing", "other"] {
        let query = Query::all(context::kind(name)?).limit(limit);
        require_records(store, &query, model.list(name, |_| true)).await?;
    }
    Ok(())
}

/// Compares the records of a group, found by the index.
async fn list_group(
    store: &dyn Store,
    model: &Model,
    group: &str,
    limit: u32,
) -> Result<(), Failure> {
    let (kind, index): (Kind, IndexName) = (context::kind("thing")?, context::index("group")?);
    let query = Query::by(kind, index, group).limit(limit);
    require_records(
        store,
        &query,
        model.list("thing", |value| value["group"] == group),
    )
    .await
}

/// Compares every commit after a revision, or the refusal if it is compacted.
async fn watch(store: &dyn Store, model: &Model, after: Revision) -> Result<(), Failure> {
    let opened = store.watch(after, Interest::all()).await;
    if after < model.compacted {
        let is_expected = matches!(opened, Err(StoreError::Compacted { oldest, .. }) if oldest == model.compacted);
        return require(is_expected, || {
            format!("a watch from {after}, which is compacted, returned {opened:?}")
        });
    }
    let mut watch = opened.map_err(|error| Failure::call_failed("a watch", &error))?;
    let upcoming = model.log.iter().filter(|commit| commit.revision > after);
    for wanted in upcoming {
        let received = watch.next().await;
        let received = received.map_err(|error| Failure::call_failed("a watch", &error))?;
        require(received == *wanted, || {
            format!("the watch returned {received:?}, the model {wanted:?}")
        })?;
    }
    Ok(())
}
