//! Unique values that are shared, never freed, or mistaken for others.

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;
use serde_json::Value;

use super::{Mutant, mutant, puts};
use crate::{CallContext, Override};
use fleetwright_store::{
    Check, Claim, Conflict, Found, IndexName, Part, Query, RecordId, Result, Revision, Store as _,
    StoreError, Transaction,
};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<TakesFromTheHolder>("UNIQUE-01", "gives a value to who asks last"),
    mutant::<NeverFrees>("UNIQUE-02", "remembers every holder for ever"),
    mutant::<LooksBeforeItself>(
        "UNIQUE-03",
        "does not see that a transaction gives a value up",
    ),
    mutant::<NullIsAValue>("UNIQUE-04", "takes nothing for a value"),
    mutant::<JoinsParts>("UNIQUE-05", "compares the parts joined"),
    mutant::<ComparesAsText>("UNIQUE-05", "compares numbers and texts as text"),
];

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
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let answer = at.store.commit(transaction).await;
        let Err(StoreError::Conflict(conflict)) = &answer else {
            return answer;
        };
        let (Found::HeldBy(key), Part::Write(position)) = (&conflict.found, conflict.part) else {
            return answer;
        };
        let kind = transaction.writes[position].id().kind.clone();
        let holder = RecordId {
            kind,
            key: key.clone(),
        };
        at.store.commit(&transaction.clone().delete(holder)).await
    }
}

/// A value that stands for a record is remembered, and refused to others.
macro_rules! remembers {
    ($name:ident, $stands_for:expr) => {
        #[derive(Default)]
        struct $name(Mutex<BTreeMap<String, RecordId>>);
        #[async_trait]
        impl Override for $name {
            async fn commit(
                &self,
                at: CallContext<'_>,
                transaction: &Transaction,
            ) -> Result<Revision> {
                let stands_for = $stands_for;
                for (id, value) in puts(transaction) {
                    let Some(text) = stands_for(value) else {
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
                at.store.commit(transaction).await
            }
        }
    };
}

remembers!(NeverFrees, |value: &Value| value["name"]
    .as_str()
    .map(str::to_owned));
remembers!(NullIsAValue, |value: &Value| value["name"]
    .is_null()
    .then(String::new));
remembers!(JoinsParts, |value: &Value| {
    let parts = (value["first"].as_str()?, value["second"].as_str()?);
    Some(format!("{}{}", parts.0, parts.1))
});
remembers!(ComparesAsText, |value: &Value| {
    let bare = |part: &Value| part.to_string().trim_matches('"').to_owned();
    let (first, second) = (&value["first"], &value["second"]);
    (!first.is_null()).then(|| format!("{}/{}", bare(first), bare(second)))
});

#[derive(Default)]
struct LooksBeforeItself;
#[async_trait]
impl Override for LooksBeforeItself {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        for (id, value) in puts(transaction) {
            let Some(name) = value["name"].as_str() else {
                continue;
            };
            let query = Query::by(id.kind.clone(), IndexName::new("name")?, name);
            for holder in at.store.list(&query).await?.records {
                if holder.id != *id {
                    return Err(taken(id, &holder.id)?);
                }
            }
        }
        at.store.commit(transaction).await
    }
}
