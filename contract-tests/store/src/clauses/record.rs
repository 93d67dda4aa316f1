//! Single records: kept exactly, told apart exactly, versioned.

use serde_json::{Value, json};

use crate::{
    Context, Failure, Outcome, Pass,
    context::{all_things, by, kind, other, same_keys, thing, wrong},
    require,
};
use fleetwright_store::{
    Query, RecordId, Revision, StoreError, Transaction,
    limits::{MAX_OPERATIONS, MAX_VALUE_BYTES, MAX_VALUE_DEPTH},
};

/// RECORD-01: a store must return nothing for a record that does not exist, whatever other records
/// exist.
///
/// If a neighbour is taken for the record, it is changed in its place.
pub(crate) async fn record_01_absent_record_is_none(cx: &Context) -> Outcome {
    cx.put("ab", json!({})).await?;
    for id in [thing("a")?, thing("abc")?, thing("aB")?, other("ab")?] {
        let found = cx.get(&id).await?;
        require(found.is_none(), || {
            format!("get of {id}, which is not there: {found:?}")
        })?;
    }
    Ok(Pass::Held)
}

/// RECORD-02: a store must store every value exactly: numbers to the last digit, text to the byte,
/// nulls and empty values.
///
/// A controller compares what it reads with what it wrote; a rounded number looks like a change.
pub(crate) async fn record_02_values_are_kept_exactly(cx: &Context) -> Outcome {
    let odd = [
        json!(null),
        json!(""),
        json!({"a": null, "b": [], "c": {}, "d": [null, [[]]]}),
        json!([
            0,
            -1,
            i64::MIN,
            i64::MAX,
            u64::MAX,
            9_007_199_254_740_993_i64
        ]),
        json!([
            0.1,
            1e-300,
            1.797_693_134_862_315_7e308,
            -0.0,
            5e-324,
            0.1 + 0.2,
            123_456_789.123_456_79
        ]),
        json!("\u{0}\u{1f}\"\\/ ä a\u{308} \u{1f980} \u{2028} \r\n"),
        json!({"": 1, " ": 2, "ä": 3, "a.b/c~d": 4}),
        nested(MAX_VALUE_DEPTH),
    ];
    for (position, value) in odd.iter().enumerate() {
        let key = format!("k{position}");
        cx.put(&key, value.clone()).await?;
        let found = cx.value(&key).await?;
        require(found.as_ref() == Some(value), || {
            format!("get: {found:?}, written: {value}")
        })?;
    }
    let page = cx.page(&all_things()?).await?;
    for (record, value) in page.records.iter().zip(&odd) {
        let found = &record.value;
        require(found == value, || {
            format!("list: {found}, written: {value}")
        })?;
    }
    Ok(Pass::Held)
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

/// RECORD-03: a store must distinguish keys by every byte, including their case and at full length,
/// and the same key in two kinds.
///
/// Two tenants' names that differ in case are two names.
pub(crate) async fn record_03_keys_are_compared_exactly(cx: &Context) -> Outcome {
    let long = "k".repeat(511);
    let (long_1, long_2) = (format!("{long}1"), format!("{long}2"));
    let keys = [
        "a",
        "A",
        "a ",
        " a",
        "ä",
        "a\u{308}",
        "a/b",
        "a%",
        "a_",
        "a*",
        "a'b",
        "\u{1f980}",
        &long_1,
        &long_2,
    ];
    for (position, key) in keys.into_iter().enumerate() {
        cx.put(key, json!({"position": position})).await?;
        let in_other = json!({"position": position + 1000});
        cx.commit(Transaction::new().put(other(key)?, in_other))
            .await?;
    }
    for (position, key) in keys.into_iter().enumerate() {
        for (id, wanted) in [(thing(key)?, position), (other(key)?, position + 1000)] {
            let found = cx.get(&id).await?.map(|record| record.value);
            let wanted = Some(json!({"position": wanted}));
            require(found == wanted, || {
                format!("{id}: {found:?}, written: {wanted:?}")
            })?;
        }
    }
    Ok(Pass::Held)
}

/// RECORD-04: a store must give each record the revision of the commit that last wrote it, which is
/// larger than all earlier ones, even if the record was deleted and created again.
///
/// Compare-and-set compares revisions: if one occurs twice, a stale write succeeds.
pub(crate) async fn record_04_revisions_grow(cx: &Context) -> Outcome {
    let mut before = cx.head().await?;
    let mut grown = |what: &str, revision: Revision| {
        let is_larger = revision > before;
        let seen = format!("{what} has revision {revision}, after {before}");
        before = revision;
        require(is_larger, || seen)
    };
    let made = cx.put("a", json!(1)).await?;
    grown("the first write", made)?;
    grown("a write of another record", cx.put("b", json!(1)).await?)?;
    record_is_at(cx, "a", made).await?;
    let replaced = cx.put("a", json!(1)).await?;
    grown("a write of the same value", replaced)?;
    record_is_at(cx, "a", replaced).await?;
    grown("a delete", cx.delete("a").await?)?;
    let anew = cx.put("a", json!(1)).await?;
    grown("a record made anew", anew)?;
    record_is_at(cx, "a", anew).await?;
    let head = cx.head().await?;
    require(head == anew, || {
        format!("the store is at {head}, its last commit at {anew}")
    })?;
    Ok(Pass::Held)
}

async fn record_is_at(cx: &Context, key: &str, wanted: Revision) -> Result<(), Failure> {
    let found = cx.get(&thing(key)?).await?.map(|record| record.revision);
    require(found == Some(wanted), || {
        format!("{key} is at {found:?}, and its last commit answered {wanted}")
    })?;
    let page = cx.page(&all_things()?).await?;
    let listed = page
        .records
        .iter()
        .find(|record| record.key().as_str() == key);
    let listed = listed.map(|record| record.revision);
    require(listed == Some(wanted), || {
        format!("{key} is listed at {listed:?}, and its last commit answered {wanted}")
    })
}

/// RECORD-05: a store must remove a deleted record from every list, and treat the deletion of a
/// record that does not exist as no change.
///
/// A deletion is retried after a crash, and must not wake every watcher each time.
pub(crate) async fn record_05_deleted_record_is_not_listed(cx: &Context) -> Outcome {
    cx.put("a", json!({"name": "n", "group": "g"})).await?;
    cx.put("b", json!({"group": "g"})).await?;
    cx.delete("a").await?;
    let found = cx.value("a").await?;
    require(found.is_none(), || {
        format!("a was deleted, and get shows {found:?}")
    })?;
    same_keys("all things", &cx.keys(&all_things()?).await?, &["b"])?;
    same_keys(
        "things by group",
        &cx.keys(&by("group", "g")?).await?,
        &["b"],
    )?;
    same_keys("things by name", &cx.keys(&by("name", "n")?).await?, &[])?;
    let before = cx.head().await?;
    let again = cx.delete("a").await?;
    require(again == before && cx.head().await? == before, || {
        format!("a delete of what is gone answers {again}, and the store was at {before}")
    })?;
    let shown = cx.shown_after(before).await?;
    require(shown.is_empty(), || {
        format!("a delete of what is gone is watched as {shown:?}")
    })?;
    Ok(Pass::Held)
}

/// RECORD-06: a store must refuse as invalid what no store can keep: an undeclared kind, a value
/// that is too large, too deep or cannot be indexed, too many writes.
///
/// A value that is accepted and cannot be read back is lost; a write that can never succeed must
/// not be retried.
pub(crate) async fn record_06_invalid_writes_are_refused(cx: &Context) -> Outcome {
    let put = |value| Ok::<_, Failure>(Transaction::new().put(thing("a")?, value));
    let unknown = wrong(RecordId::new("unknown", "a"))?;
    let many = (0..=MAX_OPERATIONS).try_fold(Transaction::new(), |transaction, number| {
        Ok::<_, Failure>(transaction.put(thing(&number.to_string())?, json!(1)))
    })?;
    let refused = [
        Transaction::new().put(unknown.clone(), json!({})),
        Transaction::new().delete(unknown.clone()),
        put(json!("x".repeat(MAX_VALUE_BYTES)))?,
        put(nested(MAX_VALUE_DEPTH + 1))?,
        put(json!({"name": {"first": "x"}}))?,
        put(json!({"name": 1.5}))?,
        put(json!({"name": "x".repeat(5000)}))?,
        many,
        largest(5)?,
    ];
    let before = cx.head().await?;
    for transaction in refused {
        cx.invalid(transaction).await?;
    }
    is_invalid("get", &cx.store().get(&unknown).await)?;
    is_invalid(
        "list",
        &cx.store().list(&Query::all(kind("unknown")?)).await,
    )?;
    let after = cx.head().await?;
    require(after == before, || {
        format!("refused writes moved the store from {before} to {after}")
    })?;
    same_keys("all things", &cx.keys(&all_things()?).await?, &[])?;
    cx.commit(largest(4)?).await?;
    Ok(Pass::Held)
}

/// So many of the largest values: four are as much as a transaction takes.
fn largest(count: u64) -> Result<Transaction, Failure> {
    let value = json!("x".repeat(MAX_VALUE_BYTES - 2));
    (0..count).try_fold(Transaction::new(), |transaction, number| {
        Ok(transaction.put(thing(&number.to_string())?, value.clone()))
    })
}

pub(crate) fn is_invalid<T: std::fmt::Debug>(
    call: &str,
    answer: &Result<T, StoreError>,
) -> Result<(), Failure> {
    let is_invalid = matches!(answer, Err(StoreError::Invalid(_)));
    require(is_invalid, || {
        format!("{call} must be refused as invalid, and is {answer:?}")
    })
}
