//! INDEX: indexes that find too much, too little, or old values.

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;
use fleetwright_store::{
    Page, Query, Record, Result, Scalar, Select, Store as _, StoreError, StoreExt as _,
};
use serde_json::Value;

use super::{Mutant, mutant};
use crate::{CallContext, Override};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<FindsByPrefix>("INDEX-01", "finds values that start with the text"),
    mutant::<OrdersByTime>("INDEX-01", "lists in the order of writes"),
    mutant::<ServesStaleIndex>("INDEX-02", "returns an index as it was at the first list"),
    mutant::<FirstItemOnly>("INDEX-03", "indexes only the first item of an array"),
    mutant::<WholeValuesOnly>("INDEX-04", "finds nothing by the first parts of a value"),
    mutant::<ComparesPartsAsText>("INDEX-04", "finds parts that start with the text"),
    mutant::<UnknownIsEmpty>(
        "INDEX-05",
        "returns an empty list for an index that does not exist",
    ),
];

/// Returns all records of the kind that match, on one page.
async fn matching(
    call: CallContext<'_>,
    query: &Query,
    matches: impl Fn(&Record) -> bool,
) -> Result<Page> {
    let mut page = call.store.list_all(&Query::all(query.kind.clone())).await?;
    page.records.retain(|record| matches(record));
    Ok(page)
}

/// Returns the text that a query looks for under this index, if it is one text.
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
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        let Some(wanted) = text(query, "group") else {
            return call.store.list(query).await;
        };
        let starts = |group: &str| group.starts_with(&wanted);
        matching(call, query, |record| {
            record.value["group"].as_str().is_some_and(starts)
        })
        .await
    }
}

#[derive(Default)]
struct OrdersByTime;
#[async_trait]
impl Override for OrdersByTime {
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        let mut page = call.store.list(query).await?;
        if query.select != Select::All {
            page.records.sort_by_key(|record| record.revision);
        }
        Ok(page)
    }
}

#[derive(Default)]
struct ServesStaleIndex(Mutex<BTreeMap<String, Page>>);
#[async_trait]
impl Override for ServesStaleIndex {
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        let page = call.store.list(query).await?;
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
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        let mut page = call.store.list(query).await?;
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
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        let mut page = call.store.list(query).await?;
        if text(query, "place").is_some() {
            page.records.clear();
        }
        Ok(page)
    }
}

#[derive(Default)]
struct ComparesPartsAsText;
#[async_trait]
impl Override for ComparesPartsAsText {
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        let Some(wanted) = text(query, "place") else {
            return call.store.list(query).await;
        };
        let starts = |place: &str| place.starts_with(&wanted);
        matching(call, query, |record| {
            record.value["organization"].as_str().is_some_and(starts)
        })
        .await
    }
}

#[derive(Default)]
struct UnknownIsEmpty;
#[async_trait]
impl Override for UnknownIsEmpty {
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        match call.store.list(query).await {
            Err(StoreError::Invalid(_)) => matching(call, query, |_| false).await,
            result => result,
        }
    }
}
