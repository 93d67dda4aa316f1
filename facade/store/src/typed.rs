//! Records as types of the program, over any store.

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Change, Cursor, Damaged, IndexName, IndexValue, Invalid, Key, Kind, Page, Query, Record,
    RecordId, Result, Revision, Store, StoreExt, Transaction,
};

/// A type that is stored as records of one kind.
pub trait Document: Serialize + DeserializeOwned {
    /// The name of the kind.
    const KIND: &'static str;
}

/// A value of a type, and the commit that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// Which one.
    pub key: Key,
    /// The commit that wrote it last.
    pub revision: Revision,
    /// What it says.
    pub value: T,
}

/// Some of the values of a query; see [`Page`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedPage<T> {
    /// The values, in the order of the query.
    pub items: Vec<Versioned<T>>,
    /// Records that are not such values.
    pub damaged: Vec<Damaged>,
    /// Where to go on.
    pub next: Option<Cursor>,
    /// The moment.
    pub revision: Revision,
}

/// The records of one kind in a store, as values of a type.
pub struct Table<T> {
    store: Arc<dyn Store>,
    kind: Kind,
    of: PhantomData<fn() -> T>,
}

impl<T: Document> Table<T> {
    /// Fails if the store has no such kind.
    pub fn new(store: Arc<dyn Store>) -> Result<Self, Invalid> {
        let kind = Kind::new(T::KIND)?;
        store.schema().indexes(&kind)?;
        Ok(Self {
            store,
            kind,
            of: PhantomData,
        })
    }

    /// The kind.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// What the record with this key is found by.
    pub fn id(&self, key: &Key) -> RecordId {
        RecordId {
            kind: self.kind.clone(),
            key: key.clone(),
        }
    }

    /// A value as it is now. A record that is not such a value is an error that says where and why.
    pub async fn get(&self, key: &Key) -> Result<Option<Versioned<T>>> {
        let record = self.store.get(&self.id(key)).await?;
        record.map(|record| Ok(Self::read(record)?)).transpose()
    }

    /// The one value that has something under an index.
    pub async fn find(
        &self,
        index: &IndexName,
        value: impl Into<IndexValue>,
    ) -> Result<Option<Versioned<T>>> {
        let record = self.store.find(&self.kind, index, value.into()).await?;
        record.map(|record| Ok(Self::read(record)?)).transpose()
    }

    /// A query of all values, to be narrowed and given to [`list`](Self::list).
    pub fn all(&self) -> Query {
        Query::all(self.kind.clone())
    }

    /// A query of the values that have something under an index.
    pub fn by(&self, index: &IndexName, value: impl Into<IndexValue>) -> Query {
        Query::by(self.kind.clone(), index.clone(), value.into().0)
    }

    /// A page of values.
    pub async fn list(&self, query: &Query) -> Result<TypedPage<T>> {
        self.same_kind(&query.kind)?;
        let page = self.store.list(query).await?;
        Ok(Self::typed(page))
    }

    /// All pages as one; its revision is the first page's.
    pub async fn list_all(&self, query: &Query) -> Result<TypedPage<T>> {
        self.same_kind(&query.kind)?;
        let page = self.store.list_all(query).await?;
        Ok(Self::typed(page))
    }

    /// Adds to a transaction that a value is made which must not be there.
    pub fn create(&self, transaction: Transaction, key: &Key, value: &T) -> Result<Transaction> {
        let id = self.id(key);
        let value = written(&id, value)?;
        Ok(transaction.create(id, value))
    }

    /// Adds to a transaction that a value is replaced which must be as it was read.
    pub fn replace(
        &self,
        transaction: Transaction,
        read: &Versioned<T>,
        value: &T,
    ) -> Result<Transaction> {
        let id = self.id(&read.key);
        let value = written(&id, value)?;
        Ok(transaction.replace(id, read.revision, value))
    }

    /// Adds to a transaction that a value is deleted which must be as it was read.
    pub fn remove(&self, transaction: Transaction, read: &Versioned<T>) -> Transaction {
        transaction.remove(self.id(&read.key), read.revision)
    }

    /// A record as a value.
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

    /// The value that a change of a watch is about, if it is of this kind.
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

    fn same_kind(&self, kind: &Kind) -> Result<(), Invalid> {
        if *kind == self.kind {
            return Ok(());
        }
        Err(Invalid::new(format!(
            "a query of {kind} is put to the table of {}",
            self.kind
        )))
    }
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            kind: self.kind.clone(),
            of: PhantomData,
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

fn written<T: Serialize>(id: &RecordId, value: &T) -> Result<serde_json::Value, Invalid> {
    serde_json::to_value(value).map_err(|error| Invalid::new(error.to_string()).within(id))
}

/// The message without the text of the record that it cites: that may be a secret, and messages are logged.
fn without_text(message: &str) -> String {
    match (message.find('"'), message.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            format!("{}\"…\"{}", &message[..first], &message[last + 1..])
        }
        (None | Some(_), None | Some(_)) => message.to_owned(),
    }
}
