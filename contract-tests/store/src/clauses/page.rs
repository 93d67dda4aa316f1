//! PAGE: pages are stable while others write, and cursors outlive records and handles.
//!
//! Most clauses run twice, on a list of all records and on a list by index, because stores usually
//! have one code path for each.

use fleetwright_store::{Cursor, Page, Query, Transaction, limits::MAX_PAGE};
use serde_json::json;

use super::record::require_invalid;
use crate::{
    Context, Failure, Outcome, Pass,
    context::{
        all_things, keys_of, kind, other, require_keys, revisions, thing, things_by, unique_keys,
    },
    require,
};

/// Creates records of one group in one transaction.
async fn fill(cx: &Context, keys: &[&str]) -> Result<(), Failure> {
    let transaction = keys
        .iter()
        .try_fold(Transaction::new(), |transaction, key| {
            Ok::<_, Failure>(transaction.put(thing(key)?, json!({"group": "g"})))
        })?;
    cx.commit(transaction).await?;
    Ok(())
}

/// Returns the cursor of a page that is not the last.
fn cursor_of(page: &Page) -> Result<Cursor, Failure> {
    let next = page.next.clone();
    next.ok_or_else(|| {
        Failure::violated(format!(
            "there are more records, and the page has no cursor: {page:?}"
        ))
    })
}

/// PAGE-01: a store must list every record exactly once in the order of keys, whatever the page
/// size.
///
/// The page size affects speed, not meaning.
///
/// Lists nine keys, written in another order, in pages of one up to all, both by key and by index.
pub(crate) async fn page_01_every_record_once_in_order(cx: &Context) -> Outcome {
    let keys = ["A", "B", "a", "a ", "a/", "aa", "b", "ä", "\u{1f980}"];
    let mut shuffled = keys;
    shuffled.reverse();
    shuffled.swap(0, 4);
    fill(cx, &shuffled).await?;
    cx.commit_marker().await?;
    for limit in [1, 2, 3, 8, 9, 10, u32::MAX] {
        let query = all_things()?.limit(limit);
        require_keys(
            &format!("in pages of {limit}"),
            &cx.keys(&query).await?,
            &keys,
        )?;
        let query = things_by("group", "g")?.limit(limit);
        require_keys(
            &format!("by index in pages of {limit}"),
            &cx.keys(&query).await?,
            &keys,
        )?;
    }
    Ok(Pass::Held)
}

/// PAGE-02: a store must neither lose nor duplicate a record that exists during a whole list while
/// others are created and deleted.
///
/// A monitor that misses a server takes it for lost.
///
/// Creates and deletes records before, at and after the cursor between the pages, and rewrites one
/// of the stable ones.
pub(crate) async fn page_02_concurrent_writes_lose_nothing(cx: &Context) -> Outcome {
    for query in [all_things()?.limit(2), things_by("group", "g")?.limit(2)] {
        let stable = ["b", "d", "f", "h", "j", "l"];
        fill(cx, &stable).await?;
        fill(cx, &["a", "c", "e"]).await?;
        let mut listed = Vec::new();
        let mut page = cx.page(&query).await?;
        let mut changes = [
            ("aa", "a"),
            ("ba", "c"),
            ("k", "e"),
            ("ab", "aa"),
            ("z", "ba"),
        ]
        .into_iter();
        loop {
            listed.extend(keys_of(&page));
            if let Some((created, deleted)) = changes.next() {
                cx.delete(deleted).await?;
                fill(cx, &[created]).await?;
                cx.put("d", json!({"group": "g", "round": created})).await?;
            }
            let Some(cursor) = page.next.take() else {
                break;
            };
            page = cx.page(&query.clone().after(cursor)).await?;
        }
        let no_duplicate = listed.len() == unique_keys(&listed).len();
        let complete = stable.iter().all(|key| unique_keys(&listed).contains(key));
        require(no_duplicate && complete, || {
            format!("{stable:?} existed during the whole list; listed: {listed:?}")
        })?;
    }
    Ok(Pass::Held)
}

/// PAGE-03: a store must continue from a cursor whose record was deleted, also through another
/// handle.
///
/// A caller behind a load balancer requests the next page from another replica.
///
/// Deletes the record of the cursor, then continues on the same handle and on another one, with the
/// cursor as text.
pub(crate) async fn page_03_cursor_outlives_its_record(cx: &Context) -> Outcome {
    fill(cx, &["a", "b", "c", "d"]).await?;
    for (query, deleted) in [
        (all_things()?.limit(1), "a"),
        (things_by("group", "g")?.limit(1), "b"),
    ] {
        let page = cx.page(&query).await?;
        require_keys("the first page", &keys_of(&page), &[deleted])?;
        let cursor = Cursor::from_text(cursor_of(&page)?.as_str());
        cx.delete(deleted).await?;
        let rest = query.limit(10).after(cursor);
        let wanted = if deleted == "a" {
            &["b", "c", "d"][..]
        } else {
            &["c", "d"]
        };
        require_keys("the rest after the cursor", &cx.keys(&rest).await?, wanted)?;
        let another = cx.open_another().await?;
        let page = another.list(&rest).await;
        let page =
            page.map_err(|error| Failure::call_failed("a list on another handle", &error))?;
        require_keys(
            "the rest after the cursor, on another handle",
            &keys_of(&page),
            wanted,
        )?;
    }
    Ok(Pass::Held)
}

/// PAGE-04: a store must refuse as invalid a cursor of another query, and text that is no cursor.
///
/// Continuing at another place loses records silently.
///
/// Uses cursors in another selection, kind, index and value, and text that is no cursor.
pub(crate) async fn page_04_foreign_cursor_is_refused(cx: &Context) -> Outcome {
    fill(cx, &["a", "b"]).await?;
    let cursor_of_all = cursor_of(&cx.page(&all_things()?.limit(1)).await?)?;
    let cursor_of_group = cursor_of(&cx.page(&things_by("group", "g")?.limit(1)).await?)?;
    let invalid = [
        things_by("group", "g")?.after(cursor_of_all.clone()),
        Query::all(kind("other")?).after(cursor_of_all),
        all_things()?.after(cursor_of_group.clone()),
        things_by("group", "h")?.after(cursor_of_group.clone()),
        things_by("tag", "g")?.after(cursor_of_group),
        all_things()?.after(Cursor::from_text("")),
        all_things()?.after(Cursor::from_text("b")),
        all_things()?.after(Cursor::from_text("'; DROP TABLE records; --")),
        all_things()?.after(Cursor::from_text("e30")),
    ];
    for query in invalid {
        require_invalid(&format!("{query:?}"), &cx.store().list(&query).await)?;
    }
    Ok(Pass::Held)
}

/// PAGE-05: a store must give each page its revision, so that a watch from there shows all later
/// commits and no earlier ones.
///
/// Every controller starts with a list and then a watch; a gap between the two is a change that is
/// never seen.
///
/// Compares the revision of an empty page with the head, then watches from a page while records are
/// added.
pub(crate) async fn page_05_page_has_its_revision(cx: &Context) -> Outcome {
    let empty = cx.page(&all_things()?).await?.revision;
    let head = cx.head().await?;
    require(empty == head, || {
        format!("the page of an empty store has revision {empty}, the store {head}")
    })?;
    fill(cx, &["a", "b", "c"]).await?;
    cx.commit(Transaction::new().put(other("x")?, json!({})))
        .await?;
    let first = cx.page(&all_things()?.limit(2)).await?;
    let later = cx.put("d", json!({})).await?;
    let received = cx.commits_after(first.revision).await?;
    require(revisions(&received) == [later], || {
        format!(
            "after a page at {} followed {later}, and the watch returned {received:?}",
            first.revision
        )
    })?;
    let second = cx.page(&all_things()?.after(cursor_of(&first)?)).await?;
    require(second.revision > later, || {
        format!(
            "a page has revision {} and was read after {later}",
            second.revision
        )
    })?;
    Ok(Pass::Held)
}

/// PAGE-06: a store must return at most the requested number of records, a cursor only if there are
/// more, and refuse a page of zero.
///
/// A caller with little memory must not get more, and must know when to stop.
///
/// Requests one, two, three and too many of three records, and zero.
pub(crate) async fn page_06_page_size_is_respected(cx: &Context) -> Outcome {
    fill(cx, &["a", "b", "c"]).await?;
    for query in [all_things()?, things_by("group", "g")?] {
        for (limit, wanted, more) in [
            (1, 1, true),
            (2, 2, true),
            (3, 3, false),
            (MAX_PAGE + 1, 3, false),
        ] {
            let page = cx.page(&query.clone().limit(limit)).await?;
            let (count, has_cursor) = (page.records.len(), page.next.is_some());
            require(count == wanted && has_cursor == more, || {
                format!("3 records in pages of {limit}: {count} on the first, cursor: {has_cursor}")
            })?;
        }
        require_invalid(
            "a page of zero records",
            &cx.store().list(&query.limit(0)).await,
        )?;
    }
    Ok(Pass::Held)
}
