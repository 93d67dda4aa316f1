//! UNIQUE: a value under a unique index belongs to one record.
//!
//! The clauses cover taking a value, freeing it, moving it within one transaction, and
//! distinguishing values.

use fleetwright_store::{Found, Transaction};
use serde_json::{Value, json};

use crate::{
    Context, Failure, Outcome, Pass,
    context::{other, require_keys, thing, things_by},
    require,
};

/// Requires that a put is refused because `holder` has the unique value.
async fn require_taken(cx: &Context, key: &str, value: Value, holder: &str) -> Result<(), Failure> {
    let conflict = cx
        .expect_conflict(Transaction::new().put(thing(key)?, value))
        .await?;
    let wanted = Found::HeldBy(thing(holder)?.key);
    require(conflict.found == wanted, || {
        format!("the conflict must name {holder} as the holder, and is: {conflict}")
    })
}

/// UNIQUE-01: a store must refuse a second record with the same value under a unique index, and
/// name the record that has it.
///
/// The index guarantees one server for an owner, not a read before the write.
///
/// Tries to create a second holder and to change another record into one, then rewrites the holder
/// itself and uses the value in another kind.
pub(crate) async fn unique_01_second_record_is_refused(cx: &Context) -> Outcome {
    cx.put("a", json!({"name": "n"})).await?;
    require_taken(cx, "b", json!({"name": "n"}), "a").await?;
    cx.put("b", json!({"name": "m"})).await?;
    require_taken(cx, "b", json!({"name": "n"}), "a").await?;
    let found = cx.value("b").await?;
    require(found == Some(json!({"name": "m"})), || {
        format!("the put of b was refused, and b is now {found:?}")
    })?;
    cx.put("a", json!({"name": "n", "group": "g"})).await?;
    require_keys("by name", &cx.keys(&things_by("name", "n")?).await?, &["a"])?;
    cx.commit(Transaction::new().put(other("a")?, json!({"name": "n"})))
        .await?;
    Ok(Pass::Held)
}

/// UNIQUE-02: a store must free a unique value when its record is deleted or gets another value.
///
/// A name that never becomes free again needs a person.
///
/// Frees a name in three ways (delete, another value, no value) and takes it again each time.
pub(crate) async fn unique_02_value_becomes_free(cx: &Context) -> Outcome {
    cx.put("a", json!({"name": "n"})).await?;
    cx.delete("a").await?;
    cx.put("b", json!({"name": "n"})).await?;
    cx.put("b", json!({"name": "m"})).await?;
    cx.put("c", json!({"name": "n"})).await?;
    cx.put("c", json!({})).await?;
    cx.put("d", json!({"name": "n"})).await?;
    require_keys("by name", &cx.keys(&things_by("name", "n")?).await?, &["d"])?;
    Ok(Pass::Held)
}

/// UNIQUE-03: a store must let a unique value move to another record within one transaction, and
/// let two records swap theirs.
///
/// A replacement takes over its owner in one step; otherwise there is a moment with none or two.
///
/// Moves a name while the holder is deleted, with the new holder written first, then swaps two
/// names in one transaction.
pub(crate) async fn unique_03_value_moves_between_records(cx: &Context) -> Outcome {
    cx.put("a", json!({"name": "n"})).await?;
    let moved = Transaction::new()
        .put(thing("b")?, json!({"name": "n"}))
        .delete(thing("a")?);
    cx.commit(moved).await?;
    require_keys("by name", &cx.keys(&things_by("name", "n")?).await?, &["b"])?;
    cx.put("c", json!({"name": "m"})).await?;
    let swapped = Transaction::new()
        .put(thing("b")?, json!({"name": "m"}))
        .put(thing("c")?, json!({"name": "n"}));
    cx.commit(swapped).await?;
    require_keys("by name", &cx.keys(&things_by("name", "n")?).await?, &["c"])?;
    require_keys("by name", &cx.keys(&things_by("name", "m")?).await?, &["b"])?;
    require_taken(cx, "d", json!({"name": "n"}), "c").await?;
    Ok(Pass::Held)
}

/// UNIQUE-04: a store must let any number of records have no value, or null, under a unique index.
///
/// Most records do not have most fields.
///
/// Creates records without the field, with null and with one of two parts. An empty text is a value
/// and must collide.
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
    require_taken(cx, "zz", json!({"name": ""}), "z").await?;
    Ok(Pass::Held)
}

/// UNIQUE-05: a store must distinguish values under an index by type and by where their parts end.
///
/// If parts are joined, one tenant's name can equal another's.
///
/// Creates ten pairs that are equal if parts are joined or types are ignored, then tries each pair
/// a second time.
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
        require_taken(cx, "late", pair(parts), &format!("k{number}")).await?;
    }
    Ok(Pass::Held)
}
