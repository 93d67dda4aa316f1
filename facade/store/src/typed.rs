//! Typed records over any store.
//!
//! A [`Table`] converts between JSON values and a type; it holds no state and no cache. A record
//! that does not match the type is reported as [`Damaged`] beside the others and never stops a
//! list.

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Change, Cursor, Damaged, IndexName, IndexValue, Invalid, Key, Kind, Page, Query, Record,
    RecordId, Result, Revision, Store, StoreExt, Transaction,
};

/// A type that is stored as records of one kind.
///
/// ```
/// use fleetwright_store::Document;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Server {
///     owner: String,
/// }
///
/// impl Document for Server {
///     const KIND: &'static str = "server";
/// }
/// ```
pub trait Document: Serialize + DeserializeOwned {
    /// The name of the kind.
    const KIND: &'static str;
}

/// A typed record with its key and revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The key.
    pub key: Key,
    /// The revision of the last write.
    pub revision: Revision,
    /// The value.
    pub value: T,
}

/// A page of typed records; see [`Page`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedPage<T> {
    /// The records, in the order of the query.
    pub items: Vec<Versioned<T>>,
    /// Records that do not match the type.
    pub damaged: Vec<Damaged>,
    /// Where to continue.
    pub next: Option<Cursor>,
    /// The moment of the page.
    pub revision: Revision,
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
/// #[derive(Serialize, Deserialize)]
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
        let value = to_json(&id, value)?;
        Ok(transaction.create(id, value))
    }

    /// Adds the replacement of a record, which must be unchanged, to a transaction.
    pub fn replace(
        &self,
        transaction: Transaction,
        read: &Versioned<T>,
        value: &T,
    ) -> Result<Transaction> {
        let id = self.id(&read.key);
        let value = to_json(&id, value)?;
        Ok(transaction.replace(id, read.revision, value))
    }

    /// Adds the deletion of a record, which must be unchanged, to a transaction.
    pub fn remove(&self, transaction: Transaction, read: &Versioned<T>) -> Transaction {
        transaction.remove(self.id(&read.key), read.revision)
    }

    /// Parses a record.
    ///
    /// # Errors
    ///
    /// The value does not match the type. The reason contains no text of the value, which may be
    /// secret.
    pub fn read(record: Record) -> Result<Versioned<T>, Damaged> {
        let Record {
            id,
            revision,
            value,
        } = record;
        match serde_json::from_value(value) {
            Ok(value) => Ok(Versioned {
                key: id.key,
                revision,
                value,
            }),
            Err(error) => Err(Damaged {
                id,
                revision,
                reason: without_text(&error.to_string()),
            }),
        }
    }

    /// Parses the record of a change, if it is of this kind.
    pub fn changed(&self, change: &Change) -> Option<Result<Versioned<T>, Damaged>> {
        let record = change.record();
        (record.id.kind == self.kind).then(|| Self::read(record.clone()))
    }

    fn typed(page: Page) -> TypedPage<T> {
        let mut typed = TypedPage {
            items: Vec::new(),
            damaged: page.damaged,
            next: page.next,
            revision: page.revision,
        };
        for record in page.records {
            match Self::read(record) {
                Ok(item) => typed.items.push(item),
                Err(damaged) => typed.damaged.push(damaged),
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

fn to_json<T: Serialize>(id: &RecordId, value: &T) -> Result<serde_json::Value, Invalid> {
    serde_json::to_value(value).map_err(|error| Invalid::new(error.to_string()).within(id))
}

/// Removes the quoted text of the record from a message: it can be a secret, and messages are
/// logged.
fn without_text(message: &str) -> String {
    match (message.find('"'), message.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            format!("{}\"…\"{}", &message[..first], &message[last + 1..])
        }
        (None | Some(_), None | Some(_)) => message.to_owned(),
    }
}
