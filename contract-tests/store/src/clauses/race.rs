//! Many at once: nothing lost, one winner, no read of the past.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    Context, Failure, Outcome, Pass,
    context::{all_things, by, keys_of, same_keys, thing},
    require,
};
use fleetwright_store::{Found, RecordId, Result, Revision, Store, StoreExt, Transaction};

const RACERS: usize = 8;

/// Handles for the racers, by turns.
async fn handles(cx: &Context) -> Result<Vec<Arc<dyn Store>>, Failure> {
    let another = cx.another().await?;
    let pair = [Arc::clone(cx.store()), another];
    Ok(pair.into_iter().cycle().take(RACERS).collect())
}

/// RACE-01: a store must lose no increment of a counter that many writers increase by
/// compare-and-set through several handles.
///
/// A lost increment is a quota that does not hold.
pub(crate) async fn race_01_no_increment_is_lost(cx: &Context) -> Outcome {
    const EACH: u64 = 8;
    let id = thing("counter")?;
    let mut racers = Vec::new();
    for store in handles(cx).await? {
        racers.push(tokio::spawn(increment(store, id.clone(), EACH)));
    }
    for racer in racers {
        let done = cx.in_time("the end of a racer", racer).await?;
        let done = done.map_err(|error| Failure::KitError(error.to_string()))?;
        done.map_err(|error| Failure::call_failed("an increment", &error))?;
    }
    let wanted = RACERS as u64 * EACH;
    let found = cx.get(&id).await?.and_then(|record| record.value.as_u64());
    require(found == Some(wanted), || {
        format!("{wanted} increments come to {found:?}")
    })?;
    let shown = cx.shown_after(Revision::ZERO).await?.len() as u64;
    require(shown == wanted, || {
        format!("{wanted} increments are {shown} commits")
    })?;
    Ok(Pass::Held)
}

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
pub(crate) async fn race_02_one_writer_gets_a_unique_value(cx: &Context) -> Outcome {
    for round in 0..4 {
        let name = format!("name-{round}");
        let mut racers = Vec::new();
        for (number, store) in handles(cx).await?.into_iter().enumerate() {
            let id = thing(&format!("{round}-{number}"))?;
            let claim = Transaction::new().create(id.clone(), json!({"name": name}));
            racers.push(tokio::spawn(
                async move { (id, store.commit(&claim).await) },
            ));
        }
        let (mut winners, mut told) = (Vec::new(), Vec::new());
        for racer in racers {
            let ended = cx.in_time("the end of a racer", racer).await?;
            let (id, answer) = ended.map_err(|error| Failure::KitError(error.to_string()))?;
            match answer {
                Ok(_) => winners.push(id.key.to_string()),
                Err(error) => told.push(error.conflict().map(|conflict| conflict.found.clone())),
            }
        }
        require(winners.len() == 1, || format!("{winners:?} all won {name}"))?;
        let winner = thing(&winners[0])?.key;
        let wanted = Some(Found::HeldBy(winner));
        require(told.iter().all(|found| *found == wanted), || {
            format!("{winners:?} won, and the others are told {told:?}")
        })?;
        let winners: Vec<_> = winners.iter().map(String::as_str).collect();
        same_keys(
            "by name",
            &cx.keys(&by("name", name.as_str())?).await?,
            &winners,
        )?;
    }
    Ok(Pass::Held)
}

/// RACE-03: a store must show an acknowledged commit to every read that begins afterwards, through
/// any handle.
///
/// If a second handle does not see a stored launch token, it launches again.
pub(crate) async fn race_03_acknowledged_commit_is_visible(cx: &Context) -> Outcome {
    let handles = handles(cx).await?;
    let pairs = handles.iter().zip(handles.iter().skip(1));
    let id = thing("a")?;
    for (number, (writes, reads)) in pairs.enumerate() {
        let value = json!({"group": format!("g{number}")});
        let answer = writes
            .commit(&Transaction::new().put(id.clone(), value.clone()))
            .await;
        let revision = answer.map_err(|error| Failure::call_failed("a commit", &error))?;
        let failed = |error| Failure::call_failed("a read on another handle", &error);
        let found = reads.get(&id).await.map_err(failed)?;
        let found = found.map(|record| (record.revision, record.value));
        require(found == Some((revision, value.clone())), || {
            format!("{value} is acknowledged at {revision}, and another handle gets {found:?}")
        })?;
        let head = reads.head().await.map_err(failed)?;
        require(head == revision, || {
            format!("{revision} is acknowledged, the head is {head}")
        })?;
        let page = reads
            .list(&by("group", format!("g{number}"))?)
            .await
            .map_err(failed)?;
        same_keys("by index on another handle", &keys_of(&page), &["a"])?;
        let page = reads.list(&all_things()?).await.map_err(failed)?;
        require(page.revision == revision && page.records.len() == 1, || {
            format!("{revision} is acknowledged, and another handle lists {page:?}")
        })?;
    }
    Ok(Pass::Held)
}
