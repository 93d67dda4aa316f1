//! RACE: many writers at the same time, through two handles.
//!
//! The clauses look for lost increments, two winners of a unique value, and reads that miss an
//! acknowledged commit.

use std::sync::Arc;

use fleetwright_store::{Found, RecordId, Result, Revision, Store, StoreExt, Transaction};
use serde_json::{Value, json};

use crate::{
    Context, Failure, Outcome, Pass,
    context::{all_things, keys_of, require_keys, thing, things_by},
    require,
};

/// The number of concurrent writers.
const WRITERS: usize = 8;

/// Returns one handle for each writer, alternating between two.
async fn handles(cx: &Context) -> Result<Vec<Arc<dyn Store>>, Failure> {
    let another = cx.open_another().await?;
    let pair = [Arc::clone(cx.store()), another];
    Ok(pair.into_iter().cycle().take(WRITERS).collect())
}

/// RACE-01: a store must lose no increment of a counter that many writers increase by
/// compare-and-set through several handles.
///
/// A lost increment is a quota that does not hold.
///
/// Lets eight writers increment one counter eight times each, and counts the commits.
pub(crate) async fn race_01_no_increment_is_lost(cx: &Context) -> Outcome {
    const INCREMENTS: u64 = 8;
    let id = thing("counter")?;
    let mut writers = Vec::new();
    for store in handles(cx).await? {
        writers.push(tokio::spawn(increment(store, id.clone(), INCREMENTS)));
    }
    for writer in writers {
        let done = cx.within_budget("a concurrent writer", writer).await?;
        let done = done.map_err(|error| Failure::KitError(error.to_string()))?;
        done.map_err(|error| Failure::call_failed("an increment", &error))?;
    }
    let wanted = WRITERS as u64 * INCREMENTS;
    let found = cx.get(&id).await?.and_then(|record| record.value.as_u64());
    require(found == Some(wanted), || {
        format!("the counter is {found:?} after {wanted} increments")
    })?;
    let commits = cx.commits_after(Revision::ZERO).await?.len() as u64;
    require(commits == wanted, || {
        format!("{wanted} increments are {commits} commits")
    })?;
    Ok(Pass::Held)
}

/// Increments a counter by compare-and-set, with retries.
async fn increment(store: Arc<dyn Store>, id: RecordId, times: u64) -> Result<()> {
    for _ in 0..times {
        store
            .update(&id, |value: Value| {
                Some(json!(value.as_u64().unwrap_or(0) + 1))
            })
            .await?;
    }
    Ok(())
}

/// RACE-02: a store must let exactly one of many concurrent writers get a unique value that all of
/// them claim.
///
/// Two winners are two servers for one owner.
///
/// Lets eight writers create a record with the same name, in four rounds. The losers must learn the
/// winner's key.
pub(crate) async fn race_02_one_writer_gets_a_unique_value(cx: &Context) -> Outcome {
    for round in 0..4 {
        let name = format!("name-{round}");
        let mut writers = Vec::new();
        for (number, store) in handles(cx).await?.into_iter().enumerate() {
            let id = thing(&format!("{round}-{number}"))?;
            let claim = Transaction::new().create(id.clone(), json!({"name": name}));
            writers.push(tokio::spawn(
                async move { (id, store.commit(&claim).await) },
            ));
        }
        let (mut winners, mut conflicts) = (Vec::new(), Vec::new());
        for writer in writers {
            let joined = cx.within_budget("a concurrent writer", writer).await?;
            let (id, result) = joined.map_err(|error| Failure::KitError(error.to_string()))?;
            match result {
                Ok(_) => winners.push(id.key.to_string()),
                Err(error) => {
                    conflicts.push(error.conflict().map(|conflict| conflict.found.clone()));
                }
            }
        }
        require(winners.len() == 1, || {
            format!("exactly one writer must get {name}, and {winners:?} did")
        })?;
        let winner = thing(&winners[0])?.key;
        let wanted = Some(Found::HeldBy(winner));
        require(conflicts.iter().all(|found| *found == wanted), || {
            format!("{winners:?} won, and the others got {conflicts:?}")
        })?;
        let winners: Vec<_> = winners.iter().map(String::as_str).collect();
        require_keys(
            "by name",
            &cx.keys(&things_by("name", name.as_str())?).await?,
            &winners,
        )?;
    }
    Ok(Pass::Held)
}

/// RACE-03: a store must show an acknowledged commit to every read that begins afterwards, through
/// any handle.
///
/// If a second handle does not see a stored launch token, it launches again.
///
/// Commits through one handle and reads through another at once: get, head, list by index and list
/// of all.
pub(crate) async fn race_03_acknowledged_commit_is_visible(cx: &Context) -> Outcome {
    let handles = handles(cx).await?;
    let pairs = handles.iter().zip(handles.iter().skip(1));
    let id = thing("a")?;
    for (number, (writer, reader)) in pairs.enumerate() {
        let value = json!({"group": format!("g{number}")});
        let result = writer
            .commit(&Transaction::new().put(id.clone(), value.clone()))
            .await;
        let revision = result.map_err(|error| Failure::call_failed("a commit", &error))?;
        let failed = |error| Failure::call_failed("a read on another handle", &error);
        let found = reader.get(&id).await.map_err(failed)?;
        let found = found.map(|record| (record.revision, record.value.into_value()));
        require(found == Some((revision, value.clone())), || {
            format!("{value} is acknowledged at {revision}, and another handle returned {found:?}")
        })?;
        let head = reader.head().await.map_err(failed)?;
        require(head == revision, || {
            format!("{revision} is acknowledged, and the head of another handle is {head}")
        })?;
        let page = reader
            .list(&things_by("group", format!("g{number}"))?)
            .await
            .map_err(failed)?;
        require_keys("by index on another handle", &keys_of(&page), &["a"])?;
        let page = reader.list(&all_things()?).await.map_err(failed)?;
        require(page.revision == revision && page.records.len() == 1, || {
            format!("{revision} is acknowledged, and another handle listed {page:?}")
        })?;
    }
    Ok(Pass::Held)
}
