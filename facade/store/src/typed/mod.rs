//! Typed records over any store.
//!
//! A [`Table`] converts between JSON values and a type; it holds no state. A record
//! that does not match the type is reported as [`Damaged`] beside the others and never stops a
//! list.
//!
//! Programs of several versions can share a store. A write keeps everything in a record that the
//! writer's type does not have, and a record that the reader does not understand in full is not
//! returned as if it did.

mod merge;
mod partial;
mod place;
#[cfg(test)]
mod tests;
mod understand;
mod version;
mod versioned;

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

pub use partial::Partial;
pub use versioned::{Base, Versioned};

use self::{
    understand::{understand, understand_shared},
    version::Version,
};
use crate::{
    Change, Cursor, Damaged, IndexName, IndexValue, Invalid, Json, Key, Kind, Page, Query, Record,
    RecordId, Result, Revision, Store, StoreError, StoreExt, Transaction,
};

/// A type that is stored as records of one kind.
///
/// ```
/// use fleetwright_store::Document;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Serialize, Deserialize)]
/// struct Server {
///     owner: String,
/// }
///
/// impl Document for Server {
///     const KIND: &'static str = "server";
/// }
/// ```
///
/// The stored object also has the members `version` and `min_reader`, which a type must not have.
pub trait Document: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// The name of the kind.
    const KIND: &'static str;

    /// The version of the stored form. Raise it with every change of the form.
    const VERSION: u64 = 1;

    /// The lists on which no decision depends, as JSON pointers, such as a history of events. An
    /// item that this version does not understand is left out there, and kept by writes. Anywhere
    /// else it makes the record one that this version does not understand.
    const INERT: &'static [&'static str] = &[];

    /// Returns the oldest version that may read this value. Readers of older versions are refused,
    /// so raise it only for a value that they would misunderstand.
    fn min_reader(&self) -> u64 {
        1
    }
}

/// A page of typed records; see [`Page`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedPage<T> {
    /// The records, in the order of the query.
    pub items: Vec<Versioned<T>>,
    /// What can be shown of the damaged records that a newer version wrote.
    pub newer: Vec<Partial<T>>,
    /// Records that do not match the type, also those of a newer version.
    pub damaged: Vec<Damaged>,
    /// Where to continue.
    pub next: Option<Cursor>,
    /// The moment of the page.
    pub revision: Revision,
}

impl<T> TypedPage<T> {
    /// Takes what can be shown of the records that a newer version wrote, and removes these records
    /// from the damaged ones. For lists that people read; a decision counts all that are damaged.
    pub fn take_newer(&mut self) -> Vec<Partial<T>> {
        let newer = std::mem::take(&mut self.newer);
        let is_shown = |damaged: &Damaged| newer.iter().any(|shown| shown.key == damaged.id.key);
        self.damaged.retain(|damaged| !is_shown(damaged));
        newer
    }
}

/// The records of one kind in a store, as values of a type.
///
/// Writes are added to a [`Transaction`], so that several tables can change together:
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_store::{Document, Key, MemoryStore, Schema, Store, Table, Transaction};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Serialize, Deserialize)]
/// struct Network { cidr: String }
/// impl Document for Network { const KIND: &'static str = "network"; }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Schema::builder().kind("network").build()?));
/// let networks = Table::<Network>::new(Arc::clone(&store))?;
/// let key = Key::new("blue")?;
/// let create = networks.create(Transaction::new(), &key, &Network { cidr: "10.0.0.0/8".into() })?;
/// store.commit(&create).await?;
///
/// let read = networks.get(&key).await?.ok_or("missing")?;
/// let replace = networks.replace(Transaction::new(), &read, &Network { cidr: "10.0.0.0/9".into() })?;
/// store.commit(&replace).await?; // a conflict if somebody else changed it meanwhile
/// # Ok(())
/// # }
/// ```
pub struct Table<T> {
    store: Arc<dyn Store>,
    kind: Kind,
    document: PhantomData<fn() -> T>,
}

impl<T: Document> Table<T> {
    /// Opens the table of a store.
    ///
    /// # Errors
    ///
    /// The store's schema has no such kind.
    pub fn new(store: Arc<dyn Store>) -> Result<Self, Invalid> {
        let kind = Kind::new(T::KIND)?;
        store.schema().indexes(&kind)?;
        Ok(Self {
            store,
            kind,
            document: PhantomData,
        })
    }

    /// Returns the kind.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns the id of the record with this key.
    pub fn id(&self, key: &Key) -> RecordId {
        RecordId {
            kind: self.kind.clone(),
            key: key.clone(),
        }
    }

    /// Returns a record, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The record does not match the type, or the store failed.
    pub async fn get(&self, key: &Key) -> Result<Option<Versioned<T>>> {
        let record = self.store.get(&self.id(key)).await?;
        record.map(|record| Ok(Self::read(record)?)).transpose()
    }

    /// Returns as much of a record as this version understands, to show it to people: all of it, or a
    /// part of what a newer version wrote. `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Nothing of it can be shown, or the store failed.
    pub async fn show(&self, key: &Key) -> Result<Option<Partial<T>>> {
        let Some(record) = self.store.get(&self.id(key)).await? else {
            return Ok(None);
        };
        let shown = Self::partial(&record);
        match (Self::read(record), shown) {
            (Ok(_), Some(shown)) => Ok(Some(shown)),
            // Too much of its histories is not understood to name it.
            (Ok(found), None) => Ok(Some(Partial {
                key: found.key,
                revision: found.revision,
                value: found.value,
                unknown: Vec::new(),
            })),
            (Err(damaged), Some(shown)) if damaged.is_newer => Ok(Some(shown)),
            (Err(damaged), _) => Err(damaged.into()),
        }
    }

    /// Returns the record with an index value, or `None`. With several, returns the first by key.
    ///
    /// # Errors
    ///
    /// The record does not match the type, the index does not exist, or the store failed.
    pub async fn find(
        &self,
        index: &IndexName,
        value: impl Into<IndexValue>,
    ) -> Result<Option<Versioned<T>>> {
        let record = self.store.find(&self.kind, index, value.into()).await?;
        record.map(|record| Ok(Self::read(record)?)).transpose()
    }

    /// Returns a query of all records, for [`list`](Self::list).
    pub fn all(&self) -> Query {
        Query::all(self.kind.clone())
    }

    /// Returns a query by index value.
    pub fn by(&self, index: &IndexName, value: impl Into<IndexValue>) -> Query {
        Query::by(self.kind.clone(), index.clone(), value.into().0)
    }

    /// Returns a page of records.
    ///
    /// # Errors
    ///
    /// The query is of another kind, or the store refused it or failed. A record that does not
    /// match the type is in [`TypedPage::damaged`].
    pub async fn list(&self, query: &Query) -> Result<TypedPage<T>> {
        self.require_kind(&query.kind)?;
        let page = self.store.list(query).await?;
        Ok(Self::typed(page))
    }

    /// Returns all pages as one, with the revision of the first.
    pub async fn list_all(&self, query: &Query) -> Result<TypedPage<T>> {
        self.require_kind(&query.kind)?;
        let page = self.store.list_all(query).await?;
        Ok(Self::typed(page))
    }

    /// Adds the creation of a record, which must not exist, to a transaction.
    pub fn create(&self, transaction: Transaction, key: &Key, value: &T) -> Result<Transaction> {
        let id = self.id(key);
        let mut json = to_json(&id, value)?;
        writer(value).stamp(&mut json);
        Ok(transaction.create(id, json))
    }

    /// Adds the replacement of a record, which must be unchanged, to a transaction. What the stored
    /// record has beyond its type stays.
    ///
    /// # Errors
    ///
    /// The value cannot be stored, or not without losing what a newer version has written.
    pub fn replace(
        &self,
        transaction: Transaction,
        read: &Versioned<T>,
        value: &T,
    ) -> Result<Transaction> {
        self.replace_base(transaction, &read.key, &read.base(), value)
    }

    /// Like [`replace`](Self::replace), for a caller that kept the [`Base`] of the record.
    ///
    /// # Errors
    ///
    /// As for [`replace`](Self::replace).
    pub fn replace_base(
        &self,
        transaction: Transaction,
        key: &Key,
        base: &Base,
        value: &T,
    ) -> Result<Transaction> {
        let stored = self.stored_form(key, base, value)?;
        Ok(transaction.replace(self.id(key), base.revision, stored))
    }

    /// Returns the form in which a value is stored over its base, for a caller that writes the
    /// transaction itself.
    ///
    /// # Errors
    ///
    /// As for [`replace`](Self::replace).
    pub fn stored_form(&self, key: &Key, base: &Base, value: &T) -> Result<Json> {
        let id = self.id(key);
        let new = to_json(&id, value)?;
        let writer = writer(value);
        let Some(stored) = &base.stored else {
            let mut new = new;
            writer.stamp(&mut new);
            return Ok(new.into());
        };
        let damaged = |damaged: understand::Misread| damaged.of(id.clone(), base.revision);
        let understood = understand_shared::<T>(stored).map_err(damaged)?;
        let known = to_json(&id, &understood.value)?;
        let mut merged = if understood.skipped.is_empty() && version::is_same(stored, &known) {
            new
        } else {
            let lists = merge::Lists {
                inert: T::INERT,
                skipped: &understood.skipped,
            };
            let merged = merge::merge(stored, &known, new.clone(), lists);
            let read = understand::<T>(&merged).map_err(damaged)?;
            if to_json(&id, &read.value)? != new {
                let reason = format!(
                    "{id} cannot be changed without losing what a newer version has written: upgrade this program"
                );
                return Err(StoreError::Incompatible { reason });
            }
            merged
        };
        Version::of(stored).after(writer).stamp(&mut merged);
        Ok(merged.into())
    }

    /// Returns whether the stored form of a record has something beyond its type.
    ///
    /// # Errors
    ///
    /// The stored form cannot be read.
    pub fn has_unknown(&self, key: &Key, base: &Base) -> Result<bool> {
        let Some(stored) = &base.stored else {
            return Ok(false);
        };
        let id = self.id(key);
        let understood = understand_shared::<T>(stored);
        let understood = understood.map_err(|misread| misread.of(id.clone(), base.revision))?;
        let known = to_json(&id, &understood.value)?;
        Ok(!understood.skipped.is_empty() || !version::is_same(stored, &known))
    }

    /// Adds the deletion of a record, which must be unchanged, to a transaction.
    pub fn remove(&self, transaction: Transaction, read: &Versioned<T>) -> Transaction {
        transaction.remove(self.id(&read.key), read.revision)
    }

    /// Parses a record.
    ///
    /// # Errors
    ///
    /// The value does not match the type, or a newer version wrote it for newer readers. The reason
    /// contains no text of the value, which may be secret.
    pub fn read(record: Record) -> Result<Versioned<T>, Damaged> {
        match understand_shared::<T>(&record.value) {
            Ok(understood) => Ok(versioned(record, understood.value)),
            Err(misread) => Err(misread.of(record.id, record.revision)),
        }
    }

    /// Returns as much of a record as this version understands, to show it to people. `None` if the
    /// record requires a newer reader or does not match the type at all.
    pub fn partial(record: &Record) -> Option<Partial<T>> {
        let (value, unknown) = partial::partial(&record.value)?;
        Some(Partial {
            key: record.id.key.clone(),
            revision: record.revision,
            value,
            unknown,
        })
    }

    /// Parses the record of a change, if it is of this kind.
    pub fn changed(&self, change: &Change) -> Option<Result<Versioned<T>, Damaged>> {
        let record = change.record();
        (record.id.kind == self.kind).then(|| Self::read(record.clone()))
    }

    fn typed(page: Page) -> TypedPage<T> {
        let mut typed = TypedPage {
            items: Vec::new(),
            newer: Vec::new(),
            damaged: page.damaged,
            next: page.next,
            revision: page.revision,
        };
        for record in page.records {
            match understand_shared::<T>(&record.value) {
                Ok(understood) => typed.items.push(versioned(record, understood.value)),
                Err(misread) => {
                    let shown = Self::partial(&record);
                    let damaged = misread.of(record.id, record.revision);
                    typed.newer.extend(shown.filter(|_| damaged.is_newer));
                    typed.damaged.push(damaged);
                }
            }
        }
        typed
    }

    fn require_kind(&self, kind: &Kind) -> Result<(), Invalid> {
        if *kind == self.kind {
            return Ok(());
        }
        Err(Invalid::new(format!(
            "the query is of kind {kind}, and the table of kind {}",
            self.kind
        )))
    }
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            kind: self.kind.clone(),
            document: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Returns a record as the value that was read from it.
fn versioned<T>(record: Record, value: T) -> Versioned<T> {
    Versioned::read(record.id.key, record.revision, value, record.value)
}

/// Returns the JSON form of a value, without its version.
fn to_json<T: Serialize>(id: &RecordId, value: &T) -> Result<Value, Invalid> {
    let json =
        serde_json::to_value(value).map_err(|error| Invalid::new(error.to_string()).within(id))?;
    match version::reserved(&json) {
        Some(name) => {
            let reason = format!("its type has the member {name}, which every record has already");
            Err(Invalid::new(reason).within(id))
        }
        None => Ok(json),
    }
}

/// Returns the version that a writer of this type gives to a value.
fn writer<T: Document>(value: &T) -> Version {
    Version {
        written: T::VERSION,
        min_reader: value.min_reader(),
    }
}
