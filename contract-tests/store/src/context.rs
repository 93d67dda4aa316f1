//! What the body of a clause works with: a fresh store, and calls that must succeed.

use std::{collections::BTreeSet, future::Future, sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::{Failure, Harness, require};
use fleetwright_store::{
    Commit, IndexName, Interest, Invalid, Kind, Page, Query, Record, RecordId, Revision, Schema,
    Store, StoreError, StoreExt, Transaction, Watch,
};

/// The schema of all clauses: two kinds with the same unique index, one of them with all sorts of others.
pub fn schema() -> Result<Schema, Invalid> {
    Schema::builder()
        .kind("thing")
        .unique("name", ["/name"])
        .unique("pair", ["/first", "/second"])
        .index("group", ["/group"])
        .index("place", ["/organization", "/project"])
        .index("tag", ["/tags"])
        .kind("other")
        .unique("name", ["/name"])
        .index("group", ["/group"])
        .build()
}

/// A fresh store, and how to work with it.
pub struct Context {
    harness: Arc<dyn Harness>,
    store: Arc<dyn Store>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Context {
    pub(crate) async fn open(harness: Arc<dyn Harness>) -> Result<Self, Failure> {
        let store = open(&*harness).await?;
        Ok(Self { harness, store })
    }

    /// The store, through the first handle.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// What the store's author gave.
    pub fn harness(&self) -> &dyn Harness {
        &*self.harness
    }

    /// Another handle on the same records.
    pub async fn another(&self) -> Result<Arc<dyn Store>, Failure> {
        open(&*self.harness).await
    }

    pub(crate) async fn commit(&self, transaction: Transaction) -> Result<Revision, Failure> {
        let answer = self.store.commit(&transaction).await;
        answer.map_err(|error| Failure::call_failed(&format!("commit of {transaction:?}"), &error))
    }

    pub(crate) async fn put(&self, key: &str, value: Value) -> Result<Revision, Failure> {
        self.commit(Transaction::new().put(thing(key)?, value))
            .await
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<Revision, Failure> {
        self.commit(Transaction::new().delete(thing(key)?)).await
    }

    /// The error of a commit that must not succeed.
    pub(crate) async fn refused(&self, transaction: Transaction) -> Result<StoreError, Failure> {
        match self.store.commit(&transaction).await {
            Ok(revision) => Err(Failure::violated(format!(
                "{transaction:?} must be refused, and is committed at revision {revision}"
            ))),
            Err(error) => Ok(error),
        }
    }

    /// A conflict in a commit that must not succeed.
    pub(crate) async fn conflict(
        &self,
        transaction: Transaction,
    ) -> Result<fleetwright_store::Conflict, Failure> {
        let error = self.refused(transaction.clone()).await?;
        match error.conflict() {
            Some(conflict) => Ok(conflict.clone()),
            None => Err(Failure::violated(format!(
                "{transaction:?} must be refused as a conflict, not so: {error}"
            ))),
        }
    }

    /// Requires that a commit is refused as invalid.
    pub(crate) async fn invalid(&self, transaction: Transaction) -> Result<(), Failure> {
        let error = self.refused(transaction).await?;
        let is_invalid = matches!(error, StoreError::Invalid(_));
        require(is_invalid, || {
            format!("the refusal must be as invalid, not so: {error}")
        })
    }

    pub(crate) async fn get(&self, id: &RecordId) -> Result<Option<Record>, Failure> {
        let answer = self.store.get(id).await;
        answer.map_err(|error| Failure::call_failed(&format!("get of {id}"), &error))
    }

    pub(crate) async fn value(&self, key: &str) -> Result<Option<Value>, Failure> {
        Ok(self.get(&thing(key)?).await?.map(|record| record.value))
    }

    pub(crate) async fn head(&self) -> Result<Revision, Failure> {
        self.store
            .head()
            .await
            .map_err(|error| Failure::call_failed("head", &error))
    }

    pub(crate) async fn page(&self, query: &Query) -> Result<Page, Failure> {
        let answer = self.store.list(query).await;
        answer.map_err(|error| Failure::call_failed(&format!("list of {query:?}"), &error))
    }

    /// The keys of a whole list.
    pub(crate) async fn keys(&self, query: &Query) -> Result<Vec<String>, Failure> {
        let answer = self.store.list_all(query).await;
        let page =
            answer.map_err(|error| Failure::call_failed(&format!("list of {query:?}"), &error))?;
        Ok(keys_of(&page))
    }

    pub(crate) async fn watch(&self, after: Revision) -> Result<Watch, Failure> {
        let answer = self.store.watch(after, Interest::all()).await;
        answer.map_err(|error| Failure::call_failed(&format!("watch from {after}"), &error))
    }

    /// The next commit of a watch, which must come.
    pub(crate) async fn next(&self, watch: &mut Watch) -> Result<Commit, Failure> {
        let position = watch.position();
        let answer = self
            .in_time("the next commit of a watch", watch.next())
            .await?;
        answer.map_err(|error| Failure::call_failed(&format!("a watch at {position}"), &error))
    }

    /// All that a watch from a revision shows up to now: a mark is put behind it, so that nothing has to be
    /// waited for that does not come.
    pub(crate) async fn shown_after(&self, after: Revision) -> Result<Vec<Commit>, Failure> {
        let mut watch = self.watch(after).await?;
        let mark = self.mark().await?;
        let mut shown = Vec::new();
        loop {
            let commit = self.next(&mut watch).await?;
            if commit.revision >= mark {
                return Ok(shown);
            }
            shown.push(commit);
        }
    }

    /// A commit that stands for nothing.
    pub(crate) async fn mark(&self) -> Result<Revision, Failure> {
        self.commit(Transaction::new().put(other("mark")?, json!({})))
            .await
    }

    /// What must happen at all.
    pub(crate) async fn in_time<T>(
        &self,
        what: &str,
        happens: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let budget: Duration = self.harness.budget();
        let answer = tokio::time::timeout(budget, happens).await;
        answer.map_err(|_| Failure::violated(format!("{what} does not come within {budget:?}")))
    }
}

pub(crate) async fn open(harness: &dyn Harness) -> Result<Arc<dyn Store>, Failure> {
    let opened = harness.open(wrong(schema())?).await;
    opened.map_err(|error| Failure::call_failed("opening the store", &error))
}

/// A mistake of the suite itself.
pub(crate) fn wrong<T>(made: Result<T, Invalid>) -> Result<T, Failure> {
    made.map_err(|invalid| Failure::KitError(invalid.to_string()))
}

pub(crate) fn thing(key: &str) -> Result<RecordId, Failure> {
    wrong(RecordId::new("thing", key))
}

pub(crate) fn other(key: &str) -> Result<RecordId, Failure> {
    wrong(RecordId::new("other", key))
}

pub(crate) fn kind(name: &str) -> Result<Kind, Failure> {
    wrong(Kind::new(name))
}

pub(crate) fn index(name: &str) -> Result<IndexName, Failure> {
    wrong(IndexName::new(name))
}

/// Things that have something under an index.
pub(crate) fn by(
    name: &str,
    value: impl Into<fleetwright_store::IndexValue>,
) -> Result<Query, Failure> {
    Ok(Query::by(kind("thing")?, index(name)?, value.into().0))
}

pub(crate) fn all_things() -> Result<Query, Failure> {
    Ok(Query::all(kind("thing")?))
}

pub(crate) fn keys_of(page: &Page) -> Vec<String> {
    page.records
        .iter()
        .map(|record| record.key().to_string())
        .collect()
}

/// Requires that two lists of keys are the same.
pub(crate) fn same_keys(what: &str, found: &[String], wanted: &[&str]) -> Result<(), Failure> {
    require(found == wanted, || {
        format!("{what}: {found:?}, where {wanted:?} must be")
    })
}

pub(crate) fn revisions(commits: &[Commit]) -> Vec<Revision> {
    commits.iter().map(|commit| commit.revision).collect()
}

pub(crate) fn set(keys: &[String]) -> BTreeSet<&str> {
    keys.iter().map(String::as_str).collect()
}
