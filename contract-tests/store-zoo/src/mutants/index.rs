//! Indexes that find too much, too little, or the past.

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;
use serde_json::Value;

use super::{Mutant, mutant};
use crate::{CallContext, Override};
use fleetwright_store::{
    Page, Query, Record, Result, Scalar, Select, Store as _, StoreError, StoreExt as _,
};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<FindsByPrefix>("INDEX-01", "finds what begins with the text"),
    mutant::<OrdersByTime>("INDEX-01", "lists in the order of writing"),
    mutant::<Lags>("INDEX-02", "shows an index as it was at first"),
    mutant::<FirstItemOnly>("INDEX-03", "indexes the first item of an array"),
    mutant::<WholeValuesOnly>("INDEX-04", "finds nothing by some of the parts"),
    mutant::<FoldsParts>(
        "INDEX-04",
        "takes the first part as the beginning of a text",
    ),
    mutant::<UnknownIsEmpty>("INDEX-05", "lists nothing by an index that is not there"),
];

/// All records of the kind that fit, on one page.
async fn those(at: CallContext<'_>, query: &Query, fits: impl Fn(&Record) -> bool) -> Result<Page> {
    let mut page = at.store.list_all(&Query::all(query.kind.clone())).await?;
    page.records.retain(|record| fits(record));
    Ok(page)
}

fn text(query: &Query, index: &str) -> Option<String> {
    match &query.select {
        Select::Index(name, value) if name.as_str() == index => match value.0.as_slice() {
            [Scalar::Text(text)] => Some(text.clone()),
            _ => None,
        },
        Select::All | Select::Index(..) => None,
    }
}

#[derive(Default)]
struct FindsByPrefix;
#[async_trait]
impl Override for FindsByPrefix {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        let Some(wanted) = text(query, "group") else {
            return at.store.list(query).await;
        };
        let begins = |group: &str| group.starts_with(&wanted);
        those(at, query, |record| {
            record.value["group"].as_str().is_some_and(begins)
        })
        .await
    }
}

#[derive(Default)]
struct OrdersByTime;
#[async_trait]
impl Override for OrdersByTime {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        let mut page = at.store.list(query).await?;
        if query.select != Select::All {
            page.records.sort_by_key(|record| record.revision);
        }
        Ok(page)
    }
}

#[derive(Default)]
struct Lags(Mutex<BTreeMap<String, Page>>);
#[async_trait]
impl Override for Lags {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        let page = at.store.list(query).await?;
        let Ok(mut known) = self.0.lock() else {
            return Ok(page);
        };
        Ok(known.entry(format!("{query:?}")).or_insert(page).clone())
    }
}

#[derive(Default)]
struct FirstItemOnly;
#[async_trait]
impl Override for FirstItemOnly {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        let mut page = at.store.list(query).await?;
        if let Some(wanted) = text(query, "tag") {
            let first = |tags: &Value| tags.get(0).unwrap_or(tags).clone();
            page.records
                .retain(|record| first(&record.value["tags"]) == wanted);
        }
        Ok(page)
    }
}

#[derive(Default)]
struct WholeValuesOnly;
#[async_trait]
impl Override for WholeValuesOnly {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        let mut page = at.store.list(query).await?;
        if text(query, "place").is_some() {
            page.records.clear();
        }
        Ok(page)
    }
}

#[derive(Default)]
struct FoldsParts;
#[async_trait]
impl Override for FoldsParts {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        let Some(wanted) = text(query, "place") else {
            return at.store.list(query).await;
        };
        let begins = |place: &str| place.starts_with(&wanted);
        those(at, query, |record| {
            record.value["organization"].as_str().is_some_and(begins)
        })
        .await
    }
}

#[derive(Default)]
struct UnknownIsEmpty;
#[async_trait]
impl Override for UnknownIsEmpty {
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        match at.store.list(query).await {
            Err(StoreError::Invalid(_)) => those(at, query, |_| false).await,
            answer => answer,
        }
    }
}
