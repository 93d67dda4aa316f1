//! RECORD: single records are stored exactly, distinguished exactly, and versioned.
//!
//! The values and keys are the ones that a real database gets wrong: large integers, denormal
//! floats, nulls, control characters, keys that differ in case or in their last byte.

use fleetwright_store::{
    Query, RecordId, Revision, StoreError, Transaction,
    limits::{MAX_OPERATIONS, MAX_VALUE_BYTES, MAX_VALUE_DEPTH},
};
use serde_json::{Value, json};

use crate::{
    Context, Failure, Outcome, Pass,
    context::{all_things, kind, other, require_keys, thing, things_by, valid},
    require,
};

/// RECORD-01: a store must return nothing for a record that does not exist, whatever other records
/// exist.
///
/// If another record is returned in its place, the caller changes the wrong record.
///
/// Puts one record, and gets keys that are shorter, longer or of another case, and the same key of
/// another kind.
pub(crate) async fn record_01_absent_record_is_none(cx: &Context) -> Outcome {
    cx.put("ab", json!({})).await?;
    for id in [thing("a")?, thing("abc")?, thing("aB")?, other("ab")?] {
        let found = cx.get(&id).await?;
        require(found.is_none(), || {
            format!("get of {id}, which does not exist, returned {found:?}")
        })?;
    }
    Ok(Pass::Held)
}

/// RECORD-02: a store must store every value exactly: numbers to the last digit, text to the byte,
/// nulls and empty values.
///
/// A controller compares what it reads with what it wrote; a rounded number looks like a change.
///
/// Puts values at the limits of JSON numbers, text and nesting, and compares what both get and list
/// return.
pub(crate) async fn record_02_values_are_kept_exactly(cx: &Context) -> Outcome {
    let values = [
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
    for (position, value) in values.iter().enumerate() {
        let key = format!("k{position}");
        cx.put(&key, value.clone()).await?;
        let found = cx.value(&key).await?;
        require(found.as_ref() == Some(value), || {
            format!("get returned {found:?}, written was {value}")
        })?;
    }
    let page = cx.page(&all_things()?).await?;
    for (record, value) in page.records.iter().zip(&values) {
        let found = &record.value;
        require(found == value, || {
            format!("list returned {found}, written was {value}")
        })?;
    }
    Ok(Pass::Held)
}

/// Returns arrays nested to a depth.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

/// RECORD-03: a store must distinguish keys by every byte, including their case and at full length,
/// and the same key in two kinds.
///
/// Two tenants' names that differ in case are two names.
///
/// Puts a value under each of fourteen similar keys in two kinds, then reads all of them. Two keys
/// differ only in byte 512.
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
        let other_value = json!({"position": position + 1000});
        cx.commit(Transaction::new().put(other(key)?, other_value))
            .await?;
    }
    for (position, key) in keys.into_iter().enumerate() {
        for (id, wanted) in [(thing(key)?, position), (other(key)?, position + 1000)] {
            let found = cx.get(&id).await?.map(|record| record.value.into_value());
            let wanted = Some(json!({"position": wanted}));
            require(found == wanted, || {
                format!("get of {id} returned {found:?}, written was {wanted:?}")
            })?;
        }
    }
    Ok(Pass::Held)
}

/// RECORD-04: a store must give each record the revision of the commit that last wrote it, which is
/// larger than all earlier ones, even if the record was deleted and created again.
///
/// Compare-and-set compares revisions: if one occurs twice, a stale write succeeds.
///
/// Puts, replaces with the same value, deletes and creates again, and checks the revision after
/// each step through get, list and head.
pub(crate) async fn record_04_revisions_grow(cx: &Context) -> Outcome {
    let mut before = cx.head().await?;
    let mut require_larger = |what: &str, revision: Revision| {
        let is_larger = revision > before;
        let message = format!("{what} has revision {revision}, after {before}");
        before = revision;
        require(is_larger, || message)
    };
    let created = cx.put("a", json!(1)).await?;
    require_larger("the first write", created)?;
    require_larger("a write of another record", cx.put("b", json!(1)).await?)?;
    require_revision(cx, "a", created).await?;
    let replaced = cx.put("a", json!(1)).await?;
    require_larger("a write of the same value", replaced)?;
    require_revision(cx, "a", replaced).await?;
    require_larger("a delete", cx.delete("a").await?)?;
    let recreated = cx.put("a", json!(1)).await?;
    require_larger("a record that was deleted and created again", recreated)?;
    require_revision(cx, "a", recreated).await?;
    let head = cx.head().await?;
    require(head == recreated, || {
        format!("the head is {head}, and the last commit was {recreated}")
    })?;
    Ok(Pass::Held)
}

/// Requires that both get and list return a record with this revision.
async fn require_revision(cx: &Context, key: &str, wanted: Revision) -> Result<(), Failure> {
    let found = cx.get(&thing(key)?).await?.map(|record| record.revision);
    require(found == Some(wanted), || {
        format!("get returned {key} at {found:?}, and its last commit was {wanted}")
    })?;
    let page = cx.page(&all_things()?).await?;
    let listed = page
        .records
        .iter()
        .find(|record| record.key().as_str() == key);
    let listed = listed.map(|record| record.revision);
    require(listed == Some(wanted), || {
        format!("list returned {key} at {listed:?}, and its last commit was {wanted}")
    })
}

/// RECORD-05: a store must remove a deleted record from every list, and treat the deletion of a
/// record that does not exist as no change.
///
/// A deletion is retried after a crash, and must not wake every watcher each time.
///
/// Deletes one of two records, looks for it in every list, then deletes it again and expects
/// neither a new revision nor a watched change.
pub(crate) async fn record_05_deleted_record_is_not_listed(cx: &Context) -> Outcome {
    cx.put("a", json!({"name": "n", "group": "g"})).await?;
    cx.put("b", json!({"group": "g"})).await?;
    cx.delete("a").await?;
    let found = cx.value("a").await?;
    require(found.is_none(), || {
        format!("a was deleted, and get returned {found:?}")
    })?;
    require_keys("all things", &cx.keys(&all_things()?).await?, &["b"])?;
    require_keys(
        "things by group",
        &cx.keys(&things_by("group", "g")?).await?,
        &["b"],
    )?;
    require_keys(
        "things by name",
        &cx.keys(&things_by("name", "n")?).await?,
        &[],
    )?;
    let before = cx.head().await?;
    let again = cx.delete("a").await?;
    require(again == before && cx.head().await? == before, || {
        format!(
            "the deletion of a record that does not exist returned {again}, and the store was at {before}"
        )
    })?;
    let received = cx.commits_after(before).await?;
    require(received.is_empty(), || {
        format!("the deletion of a record that does not exist was watched as {received:?}")
    })?;
    Ok(Pass::Held)
}

/// RECORD-06: a store must refuse as invalid what no store can keep: an undeclared kind, a value
/// that is too large, too deep or cannot be indexed, too many writes.
///
/// A value that is accepted and cannot be read back is lost; a write that can never succeed must
/// not be retried.
///
/// Sends nine transactions beyond a limit or outside the schema, expects the revision and the
/// records to be unchanged, then commits the largest valid transaction.
pub(crate) async fn record_06_invalid_writes_are_refused(cx: &Context) -> Outcome {
    let put = |value| Ok::<_, Failure>(Transaction::new().put(thing("a")?, value));
    let unknown = valid(RecordId::new("unknown", "a"))?;
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
        cx.expect_invalid(transaction).await?;
    }
    require_invalid("get", &cx.store().get(&unknown).await)?;
    require_invalid(
        "list",
        &cx.store().list(&Query::all(kind("unknown")?)).await,
    )?;
    let after = cx.head().await?;
    require(after == before, || {
        format!("refused writes raised the revision from {before} to {after}")
    })?;
    require_keys("all things", &cx.keys(&all_things()?).await?, &[])?;
    cx.commit(largest(4)?).await?;
    Ok(Pass::Held)
}

/// Returns a transaction with `count` of the largest values. Four are the most that a transaction
/// may have.
fn largest(count: u64) -> Result<Transaction, Failure> {
    let value = json!("x".repeat(MAX_VALUE_BYTES - 2));
    (0..count).try_fold(Transaction::new(), |transaction, number| {
        Ok(transaction.put(thing(&number.to_string())?, value.clone()))
    })
}

/// Requires that a call was refused as invalid.
pub(crate) fn require_invalid<T: std::fmt::Debug>(
    call: &str,
    result: &Result<T, StoreError>,
) -> Result<(), Failure> {
    let is_invalid = matches!(result, Err(StoreError::Invalid(_)));
    require(is_invalid, || {
        format!("{call} must be refused as invalid, and returned {result:?}")
    })
}
