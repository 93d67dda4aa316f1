//! Single records that are not what was written.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Mutant, mutant, with_values};
use crate::{CallContext, Override};
use fleetwright_store::{
    Key, Query, Record, RecordId, Result, Revision, Store as _, StoreError, Transaction, Write,
};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<FindsByPrefix>("RECORD-01", "finds the next key if there is none"),
    mutant::<HalvesFloats>("RECORD-02", "keeps floats in 32 bits"),
    mutant::<DropsNulls>("RECORD-02", "leaves out fields that are null"),
    mutant::<FoldsCase>("RECORD-03", "folds the case of keys"),
    mutant::<CutsKeys>("RECORD-03", "cuts keys at 255 bytes"),
    mutant::<ShowsHead>("RECORD-04", "shows the store's revision as the record's"),
    mutant::<SkipsEqualPuts>("RECORD-04", "takes a put of the same value as no change"),
    mutant::<HidesInsteadOfDeleting>("RECORD-05", "hides deleted records from get only"),
    mutant::<CountsEmptyDeletes>("RECORD-05", "counts a delete of nothing as a commit"),
    mutant::<SwallowsTheInvalid>("RECORD-06", "acknowledges what it cannot keep"),
    mutant::<CallsInvalidUnavailable>("RECORD-06", "asks to repeat what is invalid"),
];

#[derive(Default)]
struct FindsByPrefix;
#[async_trait]
impl Override for FindsByPrefix {
    async fn get(&self, at: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        let page = at.store.list(&Query::all(id.kind.clone())).await?;
        let begins = |record: &Record| record.key().as_str().starts_with(id.key.as_str());
        Ok(page.records.into_iter().find(begins))
    }
}

/// Values are changed on their way in.
macro_rules! changes_values {
    ($name:ident, $change:expr) => {
        #[derive(Default)]
        struct $name;
        #[async_trait]
        impl Override for $name {
            async fn commit(
                &self,
                at: CallContext<'_>,
                transaction: &Transaction,
            ) -> Result<Revision> {
                at.store.commit(&with_values(transaction, $change)).await
            }
        }
    };
}

changes_values!(HalvesFloats, |value: Value| match value.as_array() {
    Some(items) => items.iter().map(halved).collect(),
    None => value,
});

#[expect(
    clippy::cast_possible_truncation,
    reason = "this mutant is wrong on purpose"
)]
fn halved(item: &Value) -> Value {
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

/// Keys are changed on their way in.
macro_rules! changes_keys {
    ($name:ident, $rename:expr) => {
        #[derive(Default)]
        struct $name;
        #[async_trait]
        impl Override for $name {
            async fn get(&self, at: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
                at.store.get(&renamed(id, $rename)).await
            }
            async fn commit(
                &self,
                at: CallContext<'_>,
                transaction: &Transaction,
            ) -> Result<Revision> {
                let mut changed = transaction.clone();
                for write in &mut changed.writes {
                    match write {
                        Write::Put(id, _) | Write::Delete(id) => *id = renamed(id, $rename),
                    }
                }
                at.store.commit(&changed).await
            }
        }
    };
}

changes_keys!(FoldsCase, |key| key.to_lowercase());
changes_keys!(CutsKeys, |key| key.chars().take(255).collect());

#[derive(Default)]
struct ShowsHead;
#[async_trait]
impl Override for ShowsHead {
    async fn get(&self, at: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        let (found, head) = (at.store.get(id).await?, at.store.head().await?);
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
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        if let [Write::Put(id, value)] = transaction.writes.as_slice() {
            if at
                .store
                .get(id)
                .await?
                .is_some_and(|record| record.value == *value)
            {
                return at.store.head().await;
            }
        }
        at.store.commit(transaction).await
    }
}

#[derive(Default)]
struct HidesInsteadOfDeleting;
#[async_trait]
impl Override for HidesInsteadOfDeleting {
    async fn get(&self, at: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        let found = at.store.get(id).await?;
        Ok(found.filter(|record| record.value["hidden"].is_null()))
    }
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let mut changed = transaction.clone();
        for write in &mut changed.writes {
            if let Write::Delete(id) = write {
                *write = Write::Put(id.clone(), json!({"hidden": true}));
            }
        }
        at.store.commit(&changed).await
    }
}

#[derive(Default)]
struct CountsEmptyDeletes;
#[async_trait]
impl Override for CountsEmptyDeletes {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let before = at.store.head().await?;
        let after = at.store.commit(transaction).await?;
        if before < after || transaction.writes.is_empty() {
            return Ok(after);
        }
        let tombstone = RecordId::new("other", "tombstone")?;
        at.store
            .commit(&Transaction::new().put(tombstone, json!({})))
            .await
    }
}

#[derive(Default)]
struct SwallowsTheInvalid;
#[async_trait]
impl Override for SwallowsTheInvalid {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        match at.store.commit(transaction).await {
            Err(StoreError::Invalid(_)) => at.store.head().await,
            answer => answer,
        }
    }
}

#[derive(Default)]
struct CallsInvalidUnavailable;
#[async_trait]
impl Override for CallsInvalidUnavailable {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let answer = at.store.commit(transaction).await;
        if let Err(StoreError::Invalid(invalid)) = answer {
            let reason = invalid.to_string();
            return Err(StoreError::Unavailable {
                reason,
                source: None,
            });
        }
        answer
    }
}
