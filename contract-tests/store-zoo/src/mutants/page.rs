//! Pages that move, grow, or lie about their moment.

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;

use super::{Mutant, mutant};
use crate::{CallContext, Override};
use fleetwright_store::{
    Cursor, Invalid, Page, Query, Result, Revision, Select, Store as _, StoreError, StoreExt as _,
};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<OrdersByCase>("PAGE-01", "orders keys as a dictionary does"),
    mutant::<LosesTheLast>("PAGE-01", "loses the record behind a full page"),
    mutant::<CountsRecords>("PAGE-02", "skips as many records as were shown"),
    mutant::<KeepsCursorsInHandles>("PAGE-03", "knows only the cursors of its own handle"),
    mutant::<NeedsTheRecord>("PAGE-03", "cannot go on from a record that is gone"),
    mutant::<BeginsAnew>("PAGE-04", "begins anew with a cursor that it does not know"),
    mutant::<MomentAhead>("PAGE-05", "gives a page the next revision"),
    mutant::<MomentBehind>("PAGE-05", "gives a page the revision of its newest record"),
    mutant::<OneMore>("PAGE-06", "gives one record more than asked for"),
    mutant::<AlwaysMore>("PAGE-06", "has a cursor on every page"),
];

/// The page is changed on its way out.
macro_rules! changes_pages {
    ($name:ident, $change:expr) => {
        #[derive(Default)]
        struct $name;
        #[async_trait]
        impl Override for $name {
            async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
                let mut page = at.store.list(query).await?;
                let change = $change;
                change(&mut page, query);
                Ok(page)
            }
        }
    };
}

changes_pages!(OrdersByCase, |page: &mut Page, _: &Query| {
    page.records
        .sort_by_key(|record| record.key().as_str().to_lowercase());
});
changes_pages!(LosesTheLast, |page: &mut Page, _: &Query| {
    if page.next.is_some() && page.records.len() > 2 {
        page.records.pop();
    }
});
changes_pages!(MomentAhead, |page: &mut Page, _: &Query| page.revision =
    page.revision.next());
changes_pages!(MomentBehind, |page: &mut Page, _: &Query| {
    let newest = page.records.iter().map(|record| record.revision).max();
    page.revision = newest.unwrap_or(Revision::ZERO);
});
changes_pages!(AlwaysMore, |page: &mut Page, _: &Query| {
    page.next.get_or_insert(Cursor::from_text("more"));
});

#[derive(Default)]
struct CountsRecords(Mutex<BTreeMap<String, usize>>);
#[async_trait]
impl Override for CountsRecords {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        let page = at.store.list(query).await?;
        let skip = match (&query.after, self.0.lock()) {
            (Some(cursor), Ok(counts)) => counts.get(cursor.as_str()).copied().unwrap_or(0),
            (None, _) | (_, Err(_)) => 0,
        };
        let whole = Query {
            after: None,
            limit: u32::MAX,
            ..query.clone()
        };
        let all = at.store.list_all(&whole).await?;
        let limit = query.limit as usize;
        let records: Vec<_> = all.records.into_iter().skip(skip).take(limit).collect();
        if let (Some(cursor), Ok(mut counts)) = (&page.next, self.0.lock()) {
            counts.insert(cursor.as_str().to_owned(), skip + records.len());
        }
        Ok(Page { records, ..page })
    }
}

#[derive(Default)]
struct KeepsCursorsInHandles(Mutex<BTreeMap<String, usize>>);
#[async_trait]
impl Override for KeepsCursorsInHandles {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        if let (Some(cursor), Ok(known)) = (&query.after, self.0.lock()) {
            if known.get(cursor.as_str()) != Some(&at.handle) {
                return Err(Invalid::new("this handle has made no such cursor").into());
            }
        }
        let page = at.store.list(query).await?;
        if let (Some(cursor), Ok(mut known)) = (&page.next, self.0.lock()) {
            known.insert(cursor.as_str().to_owned(), at.handle);
        }
        Ok(page)
    }
}

#[derive(Default)]
struct NeedsTheRecord(Mutex<BTreeMap<String, fleetwright_store::RecordId>>);
#[async_trait]
impl Override for NeedsTheRecord {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        let behind = match (&query.after, self.0.lock()) {
            (Some(cursor), Ok(known)) => known.get(cursor.as_str()).cloned(),
            (None, _) | (_, Err(_)) => None,
        };
        if let Some(id) = behind {
            if at.store.get(&id).await?.is_none() {
                return Err(Invalid::new(format!("{id} is gone")).into());
            }
        }
        let page = at.store.list(query).await?;
        if let (Some(cursor), Some(last), Ok(mut known)) =
            (&page.next, page.records.last(), self.0.lock())
        {
            known.insert(cursor.as_str().to_owned(), last.id.clone());
        }
        Ok(page)
    }
}

#[derive(Default)]
struct BeginsAnew;
#[async_trait]
impl Override for BeginsAnew {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        match at.store.list(query).await {
            Err(StoreError::Invalid(_)) if query.after.is_some() => {
                let mut anew = query.clone();
                anew.after = None;
                at.store.list(&anew).await
            }
            answer => answer,
        }
    }
}

#[derive(Default)]
struct OneMore;
#[async_trait]
impl Override for OneMore {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        let by_index = query.select != Select::All;
        let limit = query
            .limit
            .saturating_add(u32::from(by_index && query.limit > 0));
        at.store.list(&query.clone().limit(limit)).await
    }
}
