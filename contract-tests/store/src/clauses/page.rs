//! Pages: stable under writes, with cursors that outlive records and handles.

use serde_json::json;

use super::record::is_invalid;
use crate::{
    Context, Failure, Outcome, Pass,
    context::{all_things, by, keys_of, kind, other, revisions, same_keys, set, thing},
    require,
};
use fleetwright_store::{Cursor, Page, Query, Transaction, limits::MAX_PAGE};

async fn fill(cx: &Context, keys: &[&str]) -> Result<(), Failure> {
    let transaction = keys
        .iter()
        .try_fold(Transaction::new(), |transaction, key| {
            Ok::<_, Failure>(transaction.put(thing(key)?, json!({"group": "g"})))
        })?;
    cx.commit(transaction).await?;
    Ok(())
}

fn cursor_of(page: &Page) -> Result<Cursor, Failure> {
    let next = page.next.clone();
    next.ok_or_else(|| {
        Failure::violated(format!(
            "there are more, and a page has no cursor: {page:?}"
        ))
    })
}

/// PAGE-01: a store must list every record exactly once in the order of keys, whatever the page
/// size.
///
/// The page size affects speed, not meaning.
pub(crate) async fn page_01_every_record_once_in_order(cx: &Context) -> Outcome {
    let keys = ["A", "B", "a", "a ", "a/", "aa", "b", "ä", "\u{1f980}"];
    let mut mixed = keys;
    mixed.reverse();
    mixed.swap(0, 4);
    fill(cx, &mixed).await?;
    cx.mark().await?;
    for limit in [1, 2, 3, 8, 9, 10, u32::MAX] {
        let query = all_things()?.limit(limit);
        same_keys(
            &format!("in pages of {limit}"),
            &cx.keys(&query).await?,
            &keys,
        )?;
        let query = by("group", "g")?.limit(limit);
        same_keys(
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
pub(crate) async fn page_02_concurrent_writes_lose_nothing(cx: &Context) -> Outcome {
    for query in [all_things()?.limit(2), by("group", "g")?.limit(2)] {
        let stable = ["b", "d", "f", "h", "j", "l"];
        fill(cx, &stable).await?;
        fill(cx, &["a", "c", "e"]).await?;
        let mut seen = Vec::new();
        let mut page = cx.page(&query).await?;
        let mut traffic = [
            ("aa", "a"),
            ("ba", "c"),
            ("k", "e"),
            ("ab", "aa"),
            ("z", "ba"),
        ]
        .into_iter();
        loop {
            seen.extend(keys_of(&page));
            if let Some((comes, goes)) = traffic.next() {
                cx.delete(goes).await?;
                fill(cx, &[comes]).await?;
                cx.put("d", json!({"group": "g", "again": comes})).await?;
            }
            let Some(cursor) = page.next.take() else {
                break;
            };
            page = cx.page(&query.clone().after(cursor)).await?;
        }
        let once = seen.len() == set(&seen).len();
        let complete = stable.iter().all(|key| set(&seen).contains(key));
        require(once && complete, || {
            format!("{stable:?} were there throughout; seen: {seen:?}")
        })?;
    }
    Ok(Pass::Held)
}

/// PAGE-03: a store must continue from a cursor whose record was deleted, also through another
/// handle.
///
/// A caller behind a load balancer requests the next page from another replica.
pub(crate) async fn page_03_cursor_outlives_its_record(cx: &Context) -> Outcome {
    fill(cx, &["a", "b", "c", "d"]).await?;
    for (query, gone) in [
        (all_things()?.limit(1), "a"),
        (by("group", "g")?.limit(1), "b"),
    ] {
        let page = cx.page(&query).await?;
        same_keys("the first page", &keys_of(&page), &[gone])?;
        let cursor = Cursor::from_text(cursor_of(&page)?.as_str());
        cx.delete(gone).await?;
        let rest = query.limit(10).after(cursor);
        let wanted = if gone == "a" {
            &["b", "c", "d"][..]
        } else {
            &["c", "d"]
        };
        same_keys("what follows", &cx.keys(&rest).await?, wanted)?;
        let another = cx.another().await?;
        let there = another.list(&rest).await;
        let there =
            there.map_err(|error| Failure::call_failed("a list on another handle", &error))?;
        same_keys("what follows on another handle", &keys_of(&there), wanted)?;
    }
    Ok(Pass::Held)
}

/// PAGE-04: a store must refuse as invalid a cursor of another query, and text that is no cursor.
///
/// Continuing at another place loses records silently.
pub(crate) async fn page_04_foreign_cursor_is_refused(cx: &Context) -> Outcome {
    fill(cx, &["a", "b"]).await?;
    let of_all = cursor_of(&cx.page(&all_things()?.limit(1)).await?)?;
    let of_group = cursor_of(&cx.page(&by("group", "g")?.limit(1)).await?)?;
    let wrong = [
        by("group", "g")?.after(of_all.clone()),
        Query::all(kind("other")?).after(of_all),
        all_things()?.after(of_group.clone()),
        by("group", "h")?.after(of_group.clone()),
        by("tag", "g")?.after(of_group),
        all_things()?.after(Cursor::from_text("")),
        all_things()?.after(Cursor::from_text("b")),
        all_things()?.after(Cursor::from_text("'; DROP TABLE records; --")),
        all_things()?.after(Cursor::from_text("e30")),
    ];
    for query in wrong {
        is_invalid(&format!("{query:?}"), &cx.store().list(&query).await)?;
    }
    Ok(Pass::Held)
}

/// PAGE-05: a store must give each page its revision, so that a watch from there shows all later
/// commits and no earlier ones.
///
/// Every controller starts with a list and then a watch; a gap between the two is a change that is
/// never seen.
pub(crate) async fn page_05_page_has_its_revision(cx: &Context) -> Outcome {
    let empty = cx.page(&all_things()?).await?.revision;
    let head = cx.head().await?;
    require(empty == head, || {
        format!("a page of nothing is of {empty}, the store at {head}")
    })?;
    fill(cx, &["a", "b", "c"]).await?;
    cx.commit(Transaction::new().put(other("x")?, json!({})))
        .await?;
    let first = cx.page(&all_things()?.limit(2)).await?;
    let later = cx.put("d", json!({})).await?;
    let shown = cx.shown_after(first.revision).await?;
    require(revisions(&shown) == [later], || {
        format!(
            "after a page at {} came {later}, and shown is {shown:?}",
            first.revision
        )
    })?;
    let second = cx.page(&all_things()?.after(cursor_of(&first)?)).await?;
    require(second.revision > later, || {
        format!("a page at {} was read after {later}", second.revision)
    })?;
    Ok(Pass::Held)
}

/// PAGE-06: a store must return at most the requested number of records, a cursor only if there are
/// more, and refuse a page of zero.
///
/// A caller with little memory must not get more, and must know when to stop.
pub(crate) async fn page_06_page_size_is_respected(cx: &Context) -> Outcome {
    fill(cx, &["a", "b", "c"]).await?;
    for query in [all_things()?, by("group", "g")?] {
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
        is_invalid("a page of none", &cx.store().list(&query.limit(0)).await)?;
    }
    Ok(Pass::Held)
}
