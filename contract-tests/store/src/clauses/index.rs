//! Secondary indexes: exactly those, at once, in order.

use serde_json::json;

use super::record::is_invalid;
use crate::{
    Context, Outcome, Pass,
    context::{by, index, kind, other, same_keys},
};
use fleetwright_store::{IndexValue, Query, Scalar, Transaction};

/// INDEX-01: a store must find by an index exactly the records that have the value, in the order of
/// their keys.
///
/// A list of one tenant's records must not contain another's.
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
    same_keys("group g", &cx.keys(&by("group", "g")?).await?, &["a", "c"])?;
    same_keys("group 1", &cx.keys(&by("group", 1_u64)?).await?, &["e"])?;
    same_keys("group none", &cx.keys(&by("group", "none")?).await?, &[])?;
    same_keys("group %", &cx.keys(&by("group", "%")?).await?, &[])?;
    same_keys(
        "in pages of one",
        &cx.keys(&by("group", "g")?.limit(1)).await?,
        &["a", "c"],
    )?;
    Ok(Pass::Held)
}

/// INDEX-02: a store must show every change of a record in its indexes at once: another value, no
/// value, deleted.
///
/// A controller that reads a lagging index creates a second record.
pub(crate) async fn index_02_follows_every_write(cx: &Context) -> Outcome {
    let query = by("group", "g")?;
    same_keys("at first", &cx.keys(&query).await?, &[])?;
    cx.put("a", json!({"group": "g"})).await?;
    cx.put("b", json!({"group": "g"})).await?;
    same_keys("after two writes", &cx.keys(&query).await?, &["a", "b"])?;
    cx.put("a", json!({"group": "h"})).await?;
    same_keys("after a has another", &cx.keys(&query).await?, &["b"])?;
    same_keys(
        "where a is now",
        &cx.keys(&by("group", "h")?).await?,
        &["a"],
    )?;
    cx.put("b", json!({})).await?;
    same_keys("after b has none", &cx.keys(&query).await?, &[])?;
    cx.delete("a").await?;
    same_keys(
        "after a is deleted",
        &cx.keys(&by("group", "h")?).await?,
        &[],
    )?;
    Ok(Pass::Held)
}

/// INDEX-03: a store must find a record with an array under an index by each of its items, once.
///
/// Security groups and tags are lists, and are looked up one by one.
pub(crate) async fn index_03_array_is_indexed_by_item(cx: &Context) -> Outcome {
    cx.put("a", json!({"tags": ["x", "y", "x", null]})).await?;
    cx.put("b", json!({"tags": ["y"]})).await?;
    cx.put("c", json!({"tags": "y"})).await?;
    cx.put("d", json!({"tags": []})).await?;
    same_keys("tag x", &cx.keys(&by("tag", "x")?).await?, &["a"])?;
    same_keys("tag y", &cx.keys(&by("tag", "y")?).await?, &["a", "b", "c"])?;
    cx.put("a", json!({"tags": ["x"]})).await?;
    same_keys(
        "tag y without a",
        &cx.keys(&by("tag", "y")?).await?,
        &["b", "c"],
    )?;
    Ok(Pass::Held)
}

/// INDEX-04: a store must find by the first parts of a value all records that begin with them, in
/// the order of the other parts.
///
/// Organization, then project: the same index serves both.
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
        let query = by("place", "acme")?.limit(limit);
        same_keys("place acme", &cx.keys(&query).await?, &wanted)?;
    }
    let both = by("place", ["acme", "db"])?;
    same_keys("place acme db", &cx.keys(&both).await?, &["b", "e"])?;
    same_keys("place acm", &cx.keys(&by("place", "acm")?).await?, &[])?;
    Ok(Pass::Held)
}

/// INDEX-05: a store must refuse as invalid a list by an index that does not exist, or by more
/// parts than it has.
///
/// An empty result for a misspelt index looks like an empty fleet.
pub(crate) async fn index_05_unknown_index_is_refused(cx: &Context) -> Outcome {
    let foreign = Query::by(kind("other")?, index("place")?, "acme");
    let parts: Vec<Scalar> = Vec::new();
    let wrong = [
        by("unknown", "x")?,
        foreign,
        by("group", ["a", "b"])?,
        by("group", IndexValue(parts))?,
    ];
    for query in wrong {
        is_invalid("the list", &cx.store().list(&query).await)?;
    }
    Ok(Pass::Held)
}
