//! Unique indexes: one value, one holder.

use serde_json::{Value, json};

use crate::{
    Context, Failure, Outcome, Pass,
    context::{by, other, same_keys, thing},
    require,
};
use fleetwright_store::{Found, Transaction};

async fn must_be_taken(cx: &Context, key: &str, value: Value, holder: &str) -> Result<(), Failure> {
    let conflict = cx
        .conflict(Transaction::new().put(thing(key)?, value))
        .await?;
    let wanted = Found::HeldBy(thing(holder)?.key);
    require(conflict.found == wanted, || {
        format!("{holder} holds it, but: {conflict}")
    })
}

/// UNIQUE-01: a store must refuse a second record with the same value under a unique index, and
/// name the record that has it.
///
/// The index guarantees one server for an owner, not a read before the write.
pub(crate) async fn unique_01_second_record_is_refused(cx: &Context) -> Outcome {
    cx.put("a", json!({"name": "n"})).await?;
    must_be_taken(cx, "b", json!({"name": "n"}), "a").await?;
    cx.put("b", json!({"name": "m"})).await?;
    must_be_taken(cx, "b", json!({"name": "n"}), "a").await?;
    let found = cx.value("b").await?;
    require(found == Some(json!({"name": "m"})), || {
        format!("b was refused, and is {found:?}")
    })?;
    cx.put("a", json!({"name": "n", "group": "g"})).await?;
    same_keys("by name", &cx.keys(&by("name", "n")?).await?, &["a"])?;
    cx.commit(Transaction::new().put(other("a")?, json!({"name": "n"})))
        .await?;
    Ok(Pass::Held)
}

/// UNIQUE-02: a store must free a unique value when its record is deleted or gets another value.
///
/// A name that never becomes free again needs a person.
pub(crate) async fn unique_02_value_becomes_free(cx: &Context) -> Outcome {
    cx.put("a", json!({"name": "n"})).await?;
    cx.delete("a").await?;
    cx.put("b", json!({"name": "n"})).await?;
    cx.put("b", json!({"name": "m"})).await?;
    cx.put("c", json!({"name": "n"})).await?;
    cx.put("c", json!({})).await?;
    cx.put("d", json!({"name": "n"})).await?;
    same_keys("by name", &cx.keys(&by("name", "n")?).await?, &["d"])?;
    Ok(Pass::Held)
}

/// UNIQUE-03: a store must let a unique value move to another record within one transaction, and
/// let two records swap theirs.
///
/// A replacement takes over its owner in one step; otherwise there is a moment with none or two.
pub(crate) async fn unique_03_value_moves_between_records(cx: &Context) -> Outcome {
    cx.put("a", json!({"name": "n"})).await?;
    let given = Transaction::new()
        .put(thing("b")?, json!({"name": "n"}))
        .delete(thing("a")?);
    cx.commit(given).await?;
    same_keys("by name", &cx.keys(&by("name", "n")?).await?, &["b"])?;
    cx.put("c", json!({"name": "m"})).await?;
    let swapped = Transaction::new()
        .put(thing("b")?, json!({"name": "m"}))
        .put(thing("c")?, json!({"name": "n"}));
    cx.commit(swapped).await?;
    same_keys("by name", &cx.keys(&by("name", "n")?).await?, &["c"])?;
    same_keys("by name", &cx.keys(&by("name", "m")?).await?, &["b"])?;
    must_be_taken(cx, "d", json!({"name": "n"}), "c").await?;
    Ok(Pass::Held)
}

/// UNIQUE-04: a store must let any number of records have no value, or null, under a unique index.
///
/// Most records do not have most fields.
pub(crate) async fn unique_04_missing_values_do_not_collide(cx: &Context) -> Outcome {
    let empty = [
        json!({}),
        json!({}),
        json!({"name": null}),
        json!({"name": null}),
        json!([]),
    ];
    for (number, value) in empty.into_iter().enumerate() {
        cx.put(&format!("k{number}"), value).await?;
    }
    cx.put("x", json!({"first": "a"})).await?;
    cx.put("y", json!({"first": "a", "second": null})).await?;
    cx.put("z", json!({"name": ""})).await?;
    must_be_taken(cx, "zz", json!({"name": ""}), "z").await?;
    Ok(Pass::Held)
}

/// UNIQUE-05: a store must distinguish values under an index by type and by where their parts end.
///
/// If parts are joined, one tenant's name can equal another's.
pub(crate) async fn unique_05_values_are_compared_exactly(cx: &Context) -> Outcome {
    let pairs = [
        (json!("a"), json!("bc")),
        (json!("ab"), json!("c")),
        (json!("a\u{0}b"), json!("c")),
        (json!("a"), json!("b\u{0}c")),
        (json!(""), json!("abc")),
        (json!("abc"), json!("")),
        (json!(1), json!("1")),
        (json!("1"), json!(1)),
        (json!(true), json!("true")),
        (json!(-1), json!(u64::MAX)),
    ];
    let pair = |(first, second): &(Value, Value)| json!({"first": first, "second": second});
    for (number, parts) in pairs.iter().enumerate() {
        cx.put(&format!("k{number}"), pair(parts)).await?;
    }
    for (number, parts) in pairs.iter().enumerate() {
        must_be_taken(cx, "late", pair(parts), &format!("k{number}")).await?;
    }
    Ok(Pass::Held)
}
