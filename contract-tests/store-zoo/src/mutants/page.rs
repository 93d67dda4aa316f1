//! PAGE: pages that lose or repeat records, are too large, or have the wrong revision.

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;
use fleetwright_store::{
    Cursor, Invalid, Page, Query, Result, Revision, Select, Store as _, StoreError, StoreExt as _,
};

use super::{Mutant, mutant};
use crate::{CallContext, Override};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<OrdersWithoutCase>("PAGE-01", "orders keys without regard to case"),
    mutant::<LosesTheLast>("PAGE-01", "loses the last record of a full page"),
    mutant::<UsesOffsets>(
        "PAGE-02",
        "uses the number of returned records as the cursor",
    ),
    mutant::<StoresCursorsPerHandle>("PAGE-03", "accepts only the cursors of its own handle"),
    mutant::<NeedsCursorRecord>("PAGE-03", "cannot continue after a record that was deleted"),
    mutant::<RestartsList>(
        "PAGE-04",
        "starts again with a cursor that it does not know",
    ),
    mutant::<RevisionAhead>("PAGE-05", "gives a page the next revision"),
    mutant::<RevisionBehind>("PAGE-05", "gives a page the revision of its newest record"),
    mutant::<OneMore>("PAGE-06", "returns one record more than requested"),
    mutant::<AlwaysMore>("PAGE-06", "returns a cursor with every page"),
];

/// Declares a store that changes each page before it returns it.
macro_rules! changes_pages {
    ($name:ident, $change:expr) => {
        #[derive(Default)]
        struct $name;
        #[async_trait]
        impl Override for $name {
            async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
                let mut page = call.store.list(query).await?;
                let change = $change;
                change(&mut page, query);
                Ok(page)
            }
        }
    };
}

changes_pages!(OrdersWithoutCase, |page: &mut Page, _: &Query| {
    page.records
        .sort_by_key(|record| record.key().as_str().to_lowercase());
});
changes_pages!(LosesTheLast, |page: &mut Page, _: &Query| {
    if page.next.is_some() && page.records.len() > 2 {
        page.records.pop();
    }
});
changes_pages!(RevisionAhead, |page: &mut Page, _: &Query| page.revision =
    page.revision.next());
changes_pages!(RevisionBehind, |page: &mut Page, _: &Query| {
    let newest = page.records.iter().map(|record| record.revision).max();
    page.revision = newest.unwrap_or(Revision::ZERO);
});
changes_pages!(AlwaysMore, |page: &mut Page, _: &Query| {
    page.next.get_or_insert(Cursor::from_text("more"));
});

#[derive(Default)]
struct UsesOffsets(Mutex<BTreeMap<String, usize>>);
#[async_trait]
impl Override for UsesOffsets {
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        let page = call.store.list(query).await?;
        let skip = match (&query.after, self.0.lock()) {
            (Some(cursor), Ok(counts)) => counts.get(cursor.as_str()).copied().unwrap_or(0),
            (None, _) | (_, Err(_)) => 0,
        };
        let all_records = Query {
            after: None,
            limit: u32::MAX,
            ..query.clone()
        };
        let all = call.store.list_all(&all_records).await?;
        let limit = query.limit as usize;
        let records: Vec<_> = all.records.into_iter().skip(skip).take(limit).collect();
        if let (Some(cursor), Ok(mut counts)) = (&page.next, self.0.lock()) {
            counts.insert(cursor.as_str().to_owned(), skip + records.len());
        }
        Ok(Page { records, ..page })
    }
}

#[derive(Default)]
struct StoresCursorsPerHandle(Mutex<BTreeMap<String, usize>>);
#[async_trait]
impl Override for StoresCursorsPerHandle {
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        if let (Some(cursor), Ok(known)) = (&query.after, self.0.lock()) {
            if known.get(cursor.as_str()) != Some(&call.handle) {
                return Err(Invalid::new("this handle did not create the cursor").into());
            }
        }
        let page = call.store.list(query).await?;
        if let (Some(cursor), Ok(mut known)) = (&page.next, self.0.lock()) {
            known.insert(cursor.as_str().to_owned(), call.handle);
        }
        Ok(page)
    }
}

#[derive(Default)]
struct NeedsCursorRecord(Mutex<BTreeMap<String, fleetwright_store::RecordId>>);
#[async_trait]
impl Override for NeedsCursorRecord {
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        let last_record = match (&query.after, self.0.lock()) {
            (Some(cursor), Ok(known)) => known.get(cursor.as_str()).cloned(),
            (None, _) | (_, Err(_)) => None,
        };
        if let Some(id) = last_record {
            if call.store.get(&id).await?.is_none() {
                return Err(Invalid::new(format!("{id} does not exist")).into());
            }
        }
        let page = call.store.list(query).await?;
        if let (Some(cursor), Some(last), Ok(mut known)) =
            (&page.next, page.records.last(), self.0.lock())
        {
            known.insert(cursor.as_str().to_owned(), last.id.clone());
        }
        Ok(page)
    }
}

#[derive(Default)]
struct RestartsList;
#[async_trait]
impl Override for RestartsList {
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        match call.store.list(query).await {
            Err(StoreError::Invalid(_)) if query.after.is_some() => {
                let mut restarted = query.clone();
                restarted.after = None;
                call.store.list(&restarted).await
            }
            result => result,
        }
    }
}

#[derive(Default)]
struct OneMore;
#[async_trait]
impl Override for OneMore {
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        let by_index = query.select != Select::All;
        let limit = query
            .limit
            .saturating_add(u32::from(by_index && query.limit > 0));
        call.store.list(&query.clone().limit(limit)).await
    }
}
