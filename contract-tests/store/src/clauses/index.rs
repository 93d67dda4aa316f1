//! INDEX: lists by an index return exactly the matching records, without lag and in order.
//!
//! Every clause compares whole lists of keys, so a record too many fails it as well as one too few.

use fleetwright_store::{IndexValue, Query, Scalar, Transaction};
use serde_json::json;

use super::record::require_invalid;
use crate::{
    Context, Outcome, Pass,
    context::{index, kind, other, require_keys, things_by},
};

/// INDEX-01: a store must find by an index exactly the records that have the value, in the order of
/// their keys.
///
/// A list of one tenant's records must not contain another's.
///
/// Creates groups that differ in case, length and type, and looks for each; `%` must not be a
/// wildcard.
pub(crate) async fn index_01_finds_exact_matches(cx: &Context) -> Outcome {
    let groups = [
        ("c", json!("g")),
        ("a", json!("g")),
        ("b", json!("G")),
        ("d", json!("gg")),
    ];
    for (key, group) in groups {
        cx.put(key, json!({"group": group})).await?;
    }
    cx.put("e", json!({"group": 1})).await?;
    cx.put("f", json!({"group": "1"})).await?;
    cx.put("g", json!({"name": "g"})).await?;
    cx.commit(Transaction::new().put(other("h")?, json!({"group": "g"})))
        .await?;
    require_keys(
        "group g",
        &cx.keys(&things_by("group", "g")?).await?,
        &["a", "c"],
    )?;
    require_keys(
        "group 1",
        &cx.keys(&things_by("group", 1_u64)?).await?,
        &["e"],
    )?;
    require_keys(
        "group none",
        &cx.keys(&things_by("group", "none")?).await?,
        &[],
    )?;
    require_keys("group %", &cx.keys(&things_by("group", "%")?).await?, &[])?;
    require_keys(
        "group g in pages of one",
        &cx.keys(&things_by("group", "g")?.limit(1)).await?,
        &["a", "c"],
    )?;
    Ok(Pass::Held)
}

/// INDEX-02: a store must show every change of a record in its indexes at once: another value, no
/// value, deleted.
///
/// A controller that reads a lagging index creates a second record.
///
/// Lists before and after each of five writes, without a pause.
pub(crate) async fn index_02_follows_every_write(cx: &Context) -> Outcome {
    let query = things_by("group", "g")?;
    require_keys("group g of an empty store", &cx.keys(&query).await?, &[])?;
    cx.put("a", json!({"group": "g"})).await?;
    cx.put("b", json!({"group": "g"})).await?;
    require_keys(
        "group g after two writes",
        &cx.keys(&query).await?,
        &["a", "b"],
    )?;
    cx.put("a", json!({"group": "h"})).await?;
    require_keys(
        "group g after a got another group",
        &cx.keys(&query).await?,
        &["b"],
    )?;
    require_keys(
        "group h after a got it",
        &cx.keys(&things_by("group", "h")?).await?,
        &["a"],
    )?;
    cx.put("b", json!({})).await?;
    require_keys(
        "group g after b lost its group",
        &cx.keys(&query).await?,
        &[],
    )?;
    cx.delete("a").await?;
    require_keys(
        "group h after a was deleted",
        &cx.keys(&things_by("group", "h")?).await?,
        &[],
    )?;
    Ok(Pass::Held)
}

/// INDEX-03: a store must find a record with an array under an index by each of its items, once.
///
/// Security groups and tags are lists, and are looked up one by one.
///
/// Indexes an array with duplicates and null, an array of one, a text and an empty array, then
/// removes an item.
pub(crate) async fn index_03_array_is_indexed_by_item(cx: &Context) -> Outcome {
    cx.put("a", json!({"tags": ["x", "y", "x", null]})).await?;
    cx.put("b", json!({"tags": ["y"]})).await?;
    cx.put("c", json!({"tags": "y"})).await?;
    cx.put("d", json!({"tags": []})).await?;
    require_keys("tag x", &cx.keys(&things_by("tag", "x")?).await?, &["a"])?;
    require_keys(
        "tag y",
        &cx.keys(&things_by("tag", "y")?).await?,
        &["a", "b", "c"],
    )?;
    cx.put("a", json!({"tags": ["x"]})).await?;
    require_keys(
        "tag y after a lost it",
        &cx.keys(&things_by("tag", "y")?).await?,
        &["b", "c"],
    )?;
    Ok(Pass::Held)
}

/// INDEX-04: a store must find by the first parts of a value all records that begin with them, in
/// the order of the other parts.
///
/// Organization, then project: the same index serves both.
///
/// Looks for one part and for both in pages of several sizes. Numbers sort before text, negative
/// ones first, and a part must match as a whole.
pub(crate) async fn index_04_finds_by_prefix_of_parts(cx: &Context) -> Outcome {
    let places = [
        ("a", "acme", json!("web")),
        ("b", "acme", json!("db")),
        ("c", "acmes", json!("db")),
        ("d", "acme", json!(7)),
        ("e", "acme", json!("db")),
        ("f", "acme", json!(-7)),
    ];
    for (key, organization, project) in places {
        cx.put(
            key,
            json!({"organization": organization, "project": project}),
        )
        .await?;
    }
    let wanted = ["f", "d", "b", "e", "a"];
    for limit in [1, 2, 1000] {
        let query = things_by("place", "acme")?.limit(limit);
        require_keys("place acme", &cx.keys(&query).await?, &wanted)?;
    }
    let both_parts = things_by("place", ["acme", "db"])?;
    require_keys("place acme db", &cx.keys(&both_parts).await?, &["b", "e"])?;
    require_keys(
        "place acm",
        &cx.keys(&things_by("place", "acm")?).await?,
        &[],
    )?;
    Ok(Pass::Held)
}

/// INDEX-05: a store must refuse as invalid a list by an index that does not exist, or by more
/// parts than it has.
///
/// An empty result for a misspelt index looks like an empty fleet.
///
/// Lists by an unknown index, by an index of another kind, by too many parts and by none.
pub(crate) async fn index_05_unknown_index_is_refused(cx: &Context) -> Outcome {
    let foreign = Query::by(kind("other")?, index("place")?, "acme");
    let parts: Vec<Scalar> = Vec::new();
    let invalid = [
        things_by("unknown", "x")?,
        foreign,
        things_by("group", ["a", "b"])?,
        things_by("group", IndexValue(parts))?,
    ];
    for query in invalid {
        require_invalid("the list", &cx.store().list(&query).await)?;
    }
    Ok(Pass::Held)
}
