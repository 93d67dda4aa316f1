//! UNIQUE: values that are shared, never freed, or confused with others.

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;
use fleetwright_store::{
    Check, Claim, Conflict, Found, IndexName, Part, Query, RecordId, Result, Revision, Store as _,
    StoreError, Transaction,
};
use serde_json::Value;

use super::{Mutant, mutant, puts};
use crate::{CallContext, Override};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<TakesFromTheHolder>(
        "UNIQUE-01",
        "gives a value to the last writer and deletes the holder",
    ),
    mutant::<NeverFrees>("UNIQUE-02", "never frees a value"),
    mutant::<IgnoresReleases>(
        "UNIQUE-03",
        "ignores that the same transaction frees a value",
    ),
    mutant::<NullIsAValue>("UNIQUE-04", "treats null as a value"),
    mutant::<JoinsParts>("UNIQUE-05", "joins the parts before it compares"),
    mutant::<ComparesAsText>("UNIQUE-05", "compares numbers and texts as text"),
];

/// Returns the conflict of a value that another record holds.
fn taken(id: &RecordId, holder: &RecordId) -> Result<StoreError> {
    let index = IndexName::new("name")?;
    let conflict = Conflict {
        part: Part::Write(0),
        check: Check::Unclaimed(Claim::new(id.kind.clone(), index, "")),
        found: Found::HeldBy(holder.key.clone()),
    };
    Ok(conflict.into())
}

#[derive(Default)]
struct TakesFromTheHolder;
#[async_trait]
impl Override for TakesFromTheHolder {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let result = call.store.commit(transaction).await;
        let Err(StoreError::Conflict(conflict)) = &result else {
            return result;
        };
        let (Found::HeldBy(key), Part::Write(position)) = (&conflict.found, conflict.part) else {
            return result;
        };
        let kind = transaction.writes[position].id().kind.clone();
        let holder = RecordId {
            kind,
            key: key.clone(),
        };
        call.store.commit(&transaction.clone().delete(holder)).await
    }
}

/// Declares a store that remembers the first holder of each text and refuses it to others.
macro_rules! remembers_holders {
    ($name:ident, $text_of:expr) => {
        #[derive(Default)]
        struct $name(Mutex<BTreeMap<String, RecordId>>);
        #[async_trait]
        impl Override for $name {
            async fn commit(
                &self,
                call: CallContext<'_>,
                transaction: &Transaction,
            ) -> Result<Revision> {
                let text_of = $text_of;
                for (id, value) in puts(transaction) {
                    let Some(text) = text_of(value) else {
                        continue;
                    };
                    let Ok(mut held) = self.0.lock() else {
                        continue;
                    };
                    let holder = held.entry(text).or_insert_with(|| id.clone());
                    if holder != id {
                        return Err(taken(id, holder)?);
                    }
                }
                call.store.commit(transaction).await
            }
        }
    };
}

remembers_holders!(NeverFrees, |value: &Value| value["name"]
    .as_str()
    .map(str::to_owned));
remembers_holders!(NullIsAValue, |value: &Value| value["name"]
    .is_null()
    .then(String::new));
remembers_holders!(JoinsParts, |value: &Value| {
    let parts = (value["first"].as_str()?, value["second"].as_str()?);
    Some(format!("{}{}", parts.0, parts.1))
});
remembers_holders!(ComparesAsText, |value: &Value| {
    let bare = |part: &Value| part.to_string().trim_matches('"').to_owned();
    let (first, second) = (&value["first"], &value["second"]);
    (!first.is_null()).then(|| format!("{}/{}", bare(first), bare(second)))
});

#[derive(Default)]
struct IgnoresReleases;
#[async_trait]
impl Override for IgnoresReleases {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        for (id, value) in puts(transaction) {
            let Some(name) = value["name"].as_str() else {
                continue;
            };
            let query = Query::by(id.kind.clone(), IndexName::new("name")?, name);
            for holder in call.store.list(&query).await?.records {
                if holder.id != *id {
                    return Err(taken(id, &holder.id)?);
                }
            }
        }
        call.store.commit(transaction).await
    }
}
