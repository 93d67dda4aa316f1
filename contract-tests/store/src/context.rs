//! The context of a clause: a fresh store, and calls that fail the clause unless they succeed.
//!
//! Owns the schema that all clauses use and the short forms of calls, names and comparisons. A
//! short form turns an unexpected error into a [`Failure`] that names the call, so that a clause
//! reads as the sequence of calls that it makes. It never retries a call.

use std::{collections::BTreeSet, future::Future, sync::Arc, time::Duration};

use fleetwright_store::{
    Commit, IndexName, Interest, Invalid, Kind, Page, Query, Record, RecordId, Revision, Schema,
    Store, StoreError, StoreExt, Transaction, Watch,
};
use serde_json::{Value, json};

use crate::{Failure, Harness, require};

/// Returns the schema that every clause opens its store with.
///
/// Two kinds, `thing` and `other`, have a unique index of the same name. `thing` has a unique index
/// and an index of two parts, and an index for arrays.
///
/// ```
/// let schema = fleetwright_store_contract::schema()?;
/// let kinds: Vec<_> = schema.kinds().map(|(kind, _)| kind.as_str()).collect();
/// assert_eq!(kinds, ["other", "thing"]);
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
///
/// # Errors
///
/// Never, unless the schema itself has a mistake.
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

/// A fresh store with the schema of all clauses, and the harness that opened it.
///
/// The body of an asynchronous clause is given one:
///
/// ```
/// use fleetwright_store_contract::{Body, Context, Failure, Outcome, Pass, require};
///
/// async fn starts_empty(cx: &Context) -> Outcome {
///     let head = cx.open_another().await?.head().await;
///     let head = head.map_err(|error| Failure::call_failed("head", &error))?;
///     require(head.0 == 0, || format!("a new store is at revision {head}"))?;
///     Ok(Pass::Held)
/// }
///
/// let body: Body = Body::Async(|cx| Box::pin(starts_empty(cx)));
/// ```
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
    /// Opens a handle with the schema of all clauses.
    pub(crate) async fn open(harness: Arc<dyn Harness>) -> Result<Self, Failure> {
        let store = open(&*harness).await?;
        Ok(Self { harness, store })
    }

    /// Returns the first handle on the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the harness.
    pub fn harness(&self) -> &dyn Harness {
        &*self.harness
    }

    /// Opens another handle on the same records.
    ///
    /// # Errors
    ///
    /// The harness cannot open it.
    pub async fn open_another(&self) -> Result<Arc<dyn Store>, Failure> {
        open(&*self.harness).await
    }

    /// Commits a transaction, which must succeed.
    pub(crate) async fn commit(&self, transaction: Transaction) -> Result<Revision, Failure> {
        let result = self.store.commit(&transaction).await;
        result.map_err(|error| Failure::call_failed(&format!("commit of {transaction:?}"), &error))
    }

    /// Puts a thing, which must succeed.
    pub(crate) async fn put(&self, key: &str, value: Value) -> Result<Revision, Failure> {
        self.commit(Transaction::new().put(thing(key)?, value))
            .await
    }

    /// Deletes a thing, which must succeed.
    pub(crate) async fn delete(&self, key: &str) -> Result<Revision, Failure> {
        self.commit(Transaction::new().delete(thing(key)?)).await
    }

    /// Commits a transaction that must be refused, and returns the error.
    pub(crate) async fn expect_refusal(
        &self,
        transaction: Transaction,
    ) -> Result<StoreError, Failure> {
        match self.store.commit(&transaction).await {
            Ok(revision) => Err(Failure::violated(format!(
                "{transaction:?} must be refused, and was committed at revision {revision}"
            ))),
            Err(error) => Ok(error),
        }
    }

    /// Commits a transaction that must be refused as a conflict, and returns the conflict.
    pub(crate) async fn expect_conflict(
        &self,
        transaction: Transaction,
    ) -> Result<fleetwright_store::Conflict, Failure> {
        let error = self.expect_refusal(transaction.clone()).await?;
        match error.conflict() {
            Some(conflict) => Ok(conflict.clone()),
            None => Err(Failure::violated(format!(
                "{transaction:?} must be refused as a conflict, and was refused with: {error}"
            ))),
        }
    }

    /// Commits a transaction that must be refused as invalid.
    pub(crate) async fn expect_invalid(&self, transaction: Transaction) -> Result<(), Failure> {
        let error = self.expect_refusal(transaction).await?;
        let is_invalid = matches!(error, StoreError::Invalid(_));
        require(is_invalid, || {
            format!("the transaction must be refused as invalid, and was refused with: {error}")
        })
    }

    /// Returns a record.
    pub(crate) async fn get(&self, id: &RecordId) -> Result<Option<Record>, Failure> {
        let result = self.store.get(id).await;
        result.map_err(|error| Failure::call_failed(&format!("get of {id}"), &error))
    }

    /// Returns the value of a thing.
    pub(crate) async fn value(&self, key: &str) -> Result<Option<Value>, Failure> {
        Ok(self
            .get(&thing(key)?)
            .await?
            .map(|record| record.value.into_value()))
    }

    /// Returns the newest revision.
    pub(crate) async fn head(&self) -> Result<Revision, Failure> {
        self.store
            .head()
            .await
            .map_err(|error| Failure::call_failed("head", &error))
    }

    /// Returns one page.
    pub(crate) async fn page(&self, query: &Query) -> Result<Page, Failure> {
        let result = self.store.list(query).await;
        result.map_err(|error| Failure::call_failed(&format!("list of {query:?}"), &error))
    }

    /// Returns the keys of all pages of a query, in order.
    pub(crate) async fn keys(&self, query: &Query) -> Result<Vec<String>, Failure> {
        let result = self.store.list_all(query).await;
        let page =
            result.map_err(|error| Failure::call_failed(&format!("list of {query:?}"), &error))?;
        Ok(keys_of(&page))
    }

    /// Starts a watch of all kinds.
    pub(crate) async fn watch(&self, after: Revision) -> Result<Watch, Failure> {
        let result = self.store.watch(after, Interest::all()).await;
        result.map_err(|error| Failure::call_failed(&format!("watch from {after}"), &error))
    }

    /// Returns the next commit of a watch. It must arrive within the harness's budget.
    pub(crate) async fn next(&self, watch: &mut Watch) -> Result<Commit, Failure> {
        let position = watch.position();
        let result = self
            .within_budget("the next commit of a watch", watch.next())
            .await?;
        result.map_err(|error| Failure::call_failed(&format!("a watch at {position}"), &error))
    }

    /// Returns all commits after a revision, as a watch returns them.
    ///
    /// Commits a marker and stops there, so that no time limit decides that there are no more.
    pub(crate) async fn commits_after(&self, after: Revision) -> Result<Vec<Commit>, Failure> {
        let mut watch = self.watch(after).await?;
        let marker = self.commit_marker().await?;
        let mut received = Vec::new();
        loop {
            let commit = self.next(&mut watch).await?;
            if commit.revision >= marker {
                return Ok(received);
            }
            received.push(commit);
        }
    }

    /// Commits a change of a record that no clause looks at, and returns its revision.
    pub(crate) async fn commit_marker(&self) -> Result<Revision, Failure> {
        self.commit(Transaction::new().put(other("mark")?, json!({})))
            .await
    }

    /// Waits for something that must happen, at most as long as the harness's budget.
    pub(crate) async fn within_budget<T>(
        &self,
        what: &str,
        event: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let budget: Duration = self.harness.budget();
        let result = tokio::time::timeout(budget, event).await;
        result.map_err(|_| Failure::violated(format!("{what} did not happen within {budget:?}")))
    }
}

/// Opens a handle with the schema of all clauses.
pub(crate) async fn open(harness: &dyn Harness) -> Result<Arc<dyn Store>, Failure> {
    let opened = harness.open(valid(schema())?).await;
    opened.map_err(|error| Failure::call_failed("opening the store", &error))
}

/// Converts a name or schema that this crate wrote itself. An invalid one is an error of the kit.
pub(crate) fn valid<T>(created: Result<T, Invalid>) -> Result<T, Failure> {
    created.map_err(|invalid| Failure::KitError(invalid.to_string()))
}

/// Returns the id of a record of the first kind.
pub(crate) fn thing(key: &str) -> Result<RecordId, Failure> {
    valid(RecordId::new("thing", key))
}

/// Returns the id of a record of the second kind.
pub(crate) fn other(key: &str) -> Result<RecordId, Failure> {
    valid(RecordId::new("other", key))
}

/// Returns a kind by name, also one that is not in the schema.
pub(crate) fn kind(name: &str) -> Result<Kind, Failure> {
    valid(Kind::new(name))
}

/// Returns an index name, also one that is not in the schema.
pub(crate) fn index(name: &str) -> Result<IndexName, Failure> {
    valid(IndexName::new(name))
}

/// Returns the query of things by an index value.
pub(crate) fn things_by(
    name: &str,
    value: impl Into<fleetwright_store::IndexValue>,
) -> Result<Query, Failure> {
    Ok(Query::by(kind("thing")?, index(name)?, value.into().0))
}

/// Returns the query of all things.
pub(crate) fn all_things() -> Result<Query, Failure> {
    Ok(Query::all(kind("thing")?))
}

/// Returns the keys of a page, in order.
pub(crate) fn keys_of(page: &Page) -> Vec<String> {
    page.records
        .iter()
        .map(|record| record.key().to_string())
        .collect()
}

/// Requires that a list has exactly these keys in this order. `what` names the list in the message.
pub(crate) fn require_keys(what: &str, found: &[String], wanted: &[&str]) -> Result<(), Failure> {
    require(found == wanted, || {
        format!("{what}: found {found:?} instead of {wanted:?}")
    })
}

/// Returns the revisions of commits, in order.
pub(crate) fn revisions(commits: &[Commit]) -> Vec<Revision> {
    commits.iter().map(|commit| commit.revision).collect()
}

/// Returns the keys without duplicates.
pub(crate) fn unique_keys(keys: &[String]) -> BTreeSet<&str> {
    keys.iter().map(String::as_str).collect()
}
