//! RECORD: single records that differ from what was written.

use async_trait::async_trait;
use fleetwright_store::{
    Key, Query, Record, RecordId, Result, Revision, Store as _, StoreError, Transaction, Write,
};
use serde_json::{Value, json};

use super::{Mutant, mutant, with_values};
use crate::{CallContext, Override};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<FindsByPrefix>(
        "RECORD-01",
        "returns the next key if the record does not exist",
    ),
    mutant::<TruncatesFloats>("RECORD-02", "stores floats in 32 bits"),
    mutant::<DropsNulls>("RECORD-02", "omits fields that are null"),
    mutant::<IgnoresCase>("RECORD-03", "ignores the case of keys"),
    mutant::<TruncatesKeys>("RECORD-03", "truncates keys to 255 characters"),
    mutant::<ReturnsHeadRevision>("RECORD-04", "returns the store's revision as the record's"),
    mutant::<SkipsEqualPuts>("RECORD-04", "treats a put of the same value as no change"),
    mutant::<HidesInsteadOfDeleting>("RECORD-05", "hides deleted records from get only"),
    mutant::<CommitsEmptyDeletes>(
        "RECORD-05",
        "commits the deletion of a record that does not exist",
    ),
    mutant::<HidesInvalid>("RECORD-06", "acknowledges a write that it cannot store"),
    mutant::<ReportsInvalidAsUnavailable>("RECORD-06", "reports an invalid write as unavailable"),
];

#[derive(Default)]
struct FindsByPrefix;
#[async_trait]
impl Override for FindsByPrefix {
    async fn get(&self, call: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        let page = call.store.list(&Query::all(id.kind.clone())).await?;
        let starts = |record: &Record| record.key().as_str().starts_with(id.key.as_str());
        Ok(page.records.into_iter().find(starts))
    }
}

/// Declares a store that changes each value before it writes it.
macro_rules! changes_values {
    ($name:ident, $change:expr) => {
        #[derive(Default)]
        struct $name;
        #[async_trait]
        impl Override for $name {
            async fn commit(
                &self,
                call: CallContext<'_>,
                transaction: &Transaction,
            ) -> Result<Revision> {
                call.store.commit(&with_values(transaction, $change)).await
            }
        }
    };
}

changes_values!(TruncatesFloats, |value: Value| match value.as_array() {
    Some(items) => items.iter().map(truncated).collect(),
    None => value,
});

#[expect(
    clippy::cast_possible_truncation,
    reason = "this mutant is wrong on purpose"
)]
fn truncated(item: &Value) -> Value {
    match item.as_f64() {
        Some(number) if item.is_f64() => json!(f64::from(number as f32)),
        _ => item.clone(),
    }
}

changes_values!(DropsNulls, |value: Value| match value {
    Value::Object(fields) => fields
        .into_iter()
        .filter(|(_, field)| !field.is_null())
        .collect(),
    other @ (Value::Null
    | Value::Bool(_)
    | Value::Number(_)
    | Value::String(_)
    | Value::Array(_)) => other,
});

fn renamed(id: &RecordId, rename: fn(&str) -> String) -> RecordId {
    let key = Key::new(rename(id.key.as_str())).unwrap_or_else(|_| id.key.clone());
    RecordId {
        kind: id.kind.clone(),
        key,
    }
}

/// Declares a store that changes each key before it uses it.
macro_rules! changes_keys {
    ($name:ident, $rename:expr) => {
        #[derive(Default)]
        struct $name;
        #[async_trait]
        impl Override for $name {
            async fn get(&self, call: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
                call.store.get(&renamed(id, $rename)).await
            }
            async fn commit(
                &self,
                call: CallContext<'_>,
                transaction: &Transaction,
            ) -> Result<Revision> {
                let mut changed = transaction.clone();
                for write in &mut changed.writes {
                    match write {
                        Write::Put(id, _) | Write::Delete(id) => *id = renamed(id, $rename),
                    }
                }
                call.store.commit(&changed).await
            }
        }
    };
}

changes_keys!(IgnoresCase, |key| key.to_lowercase());
changes_keys!(TruncatesKeys, |key| key.chars().take(255).collect());

#[derive(Default)]
struct ReturnsHeadRevision;
#[async_trait]
impl Override for ReturnsHeadRevision {
    async fn get(&self, call: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        let (found, head) = (call.store.get(id).await?, call.store.head().await?);
        Ok(found.map(|record| Record {
            revision: head,
            ..record
        }))
    }
}

#[derive(Default)]
struct SkipsEqualPuts;
#[async_trait]
impl Override for SkipsEqualPuts {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        if let [Write::Put(id, value)] = transaction.writes.as_slice() {
            if call
                .store
                .get(id)
                .await?
                .is_some_and(|record| record.value == *value)
            {
                return call.store.head().await;
            }
        }
        call.store.commit(transaction).await
    }
}

#[derive(Default)]
struct HidesInsteadOfDeleting;
#[async_trait]
impl Override for HidesInsteadOfDeleting {
    async fn get(&self, call: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        let found = call.store.get(id).await?;
        Ok(found.filter(|record| record.value["hidden"].is_null()))
    }
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let mut changed = transaction.clone();
        for write in &mut changed.writes {
            if let Write::Delete(id) = write {
                *write = Write::Put(id.clone(), json!({"hidden": true}).into());
            }
        }
        call.store.commit(&changed).await
    }
}

#[derive(Default)]
struct CommitsEmptyDeletes;
#[async_trait]
impl Override for CommitsEmptyDeletes {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let before = call.store.head().await?;
        let after = call.store.commit(transaction).await?;
        if before < after || transaction.writes.is_empty() {
            return Ok(after);
        }
        let tombstone = RecordId::new("other", "tombstone")?;
        call.store
            .commit(&Transaction::new().put(tombstone, json!({})))
            .await
    }
}

#[derive(Default)]
struct HidesInvalid;
#[async_trait]
impl Override for HidesInvalid {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        match call.store.commit(transaction).await {
            Err(StoreError::Invalid(_)) => call.store.head().await,
            result => result,
        }
    }
}

#[derive(Default)]
struct ReportsInvalidAsUnavailable;
#[async_trait]
impl Override for ReportsInvalidAsUnavailable {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let result = call.store.commit(transaction).await;
        if let Err(StoreError::Invalid(invalid)) = result {
            let reason = invalid.to_string();
            return Err(StoreError::Unavailable {
                reason,
                source: None,
            });
        }
        result
    }
}
