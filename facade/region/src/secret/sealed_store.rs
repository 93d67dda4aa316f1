//! A store that seals user data: every service and controller above it works with clear text, and no record below it has any.
//!
//! Owns which fields are sealed in what is written, and opened in what is read. It never stores a digest of user data: specs are compared
//! after they are opened. What does not open is never read as absent: it is [`UnopenedUserData`](super::UnopenedUserData), which nothing is
//! launched from, and stays stored as it is.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use fleetwright_runtime::entropy::Entropy;
use fleetwright_store::{
    Batch, Change, Interest, Invalid, Kind, Page, Query, Record, RecordId, Revision, Schema,
    Source, Store, StoreError, StoreExt as _, Transaction, Watch, Write,
};
use tokio::sync::Mutex;

use super::{Keyring, OpenError, ResealReport, SealError, SealedField, sealed_field::Misplaced};

/// A store whose records have their user data sealed. See the [module](super).
///
/// What is read through it is opened, with any key of the keyring. What is written through it is sealed with the current key and bound
/// to its record, field and tenant; records in clear, from before user data was sealed, are readable and are sealed when they are next
/// written. Without a keyring nothing is sealed. What does not open is read as [`UnopenedUserData`](super::UnopenedUserData), and written as
/// it was stored.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_region::{schema, secret::{Keyring, SealedStore}};
/// use fleetwright_runtime::entropy::OsEntropy;
/// use fleetwright_store::{MemoryStore, RecordId, Schema, Store, Transaction};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let raw = Arc::new(MemoryStore::new(schema::add_kinds(Schema::builder()).build()?));
/// let keyring: Keyring = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=".parse()?;
/// let fields = schema::sealed_fields();
/// let store = SealedStore::new(raw.clone(), Some(keyring.into()), Arc::new(OsEntropy), fields);
///
/// let id = RecordId::new("server", "1")?;
/// let value = json!({ "spec": { "user_data": "aHVudGVyMg==" } });
/// store.commit(&Transaction::new().put(id.clone(), value.clone())).await?;
/// assert_eq!(store.get(&id).await?.map(|record| record.value), Some(value.into()));
/// let stored = raw.get(&id).await?.map(|record| record.value.to_string()).unwrap_or_default();
/// assert!(!stored.contains("aHVudGVyMg=="));
/// # Ok(())
/// # }
/// ```
pub struct SealedStore {
    inner: Arc<dyn Store>,
    entropy: Arc<dyn Entropy>,
    opener: Arc<Opener>,
}

/// Opens records. A store and its watches share it.
struct Opener {
    keyring: Option<Arc<Keyring>>,
    fields: Vec<SealedField>,
}

impl SealedStore {
    /// Seals these fields of the records of a store.
    pub fn new(
        inner: Arc<dyn Store>,
        keyring: Option<Arc<Keyring>>,
        entropy: Arc<dyn Entropy>,
        fields: impl IntoIterator<Item = SealedField>,
    ) -> Self {
        let fields = fields.into_iter().collect();
        Self {
            inner,
            entropy,
            opener: Arc::new(Opener { keyring, fields }),
        }
    }

    /// Seals again all user data that is in clear or not sealed with the current key. Records that others change meanwhile are left for
    /// the next call. When a call reseals nothing and reports nothing, the old keys can be removed from the keyring, once
    /// [`ServerKeys::reseal`](super::ServerKeys::reseal) says the same of the SSH keys.
    ///
    /// # Errors
    ///
    /// The store or the entropy fails. Records that were resealed before stay so: call it again.
    pub async fn reseal(&self) -> Result<ResealReport, StoreError> {
        let mut report = ResealReport::default();
        let Some(keyring) = &self.opener.keyring else {
            return Ok(report);
        };
        let mut kinds: Vec<_> = self.opener.fields.iter().map(|field| field.kind).collect();
        kinds.dedup();
        for kind in kinds {
            let query = Query::all(Kind::new(kind)?);
            let page = self.inner.list_all(&query).await?;
            report.damaged.extend(page.damaged);
            for mut record in page.records {
                let due = |field: &SealedField| field.is_due(keyring, &record.value);
                if !self.opener.fields_of(&record.id).any(due) {
                    continue;
                }
                match self.opener.open(&mut record) {
                    Ok(()) => report.count += self.reseal_one(record).await?,
                    Err(error) => report.failed.push(error),
                }
            }
        }
        Ok(report)
    }

    async fn reseal_one(&self, record: Record) -> Result<usize, StoreError> {
        let transaction = Transaction::new().replace(record.id, record.revision, record.value);
        match self.commit(&transaction).await {
            Ok(_) => Ok(1),
            Err(error) if error.conflict().is_some() => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn sealed(&self, transaction: &Transaction) -> Result<Transaction, StoreError> {
        let mut transaction = transaction.clone();
        for write in &mut transaction.writes {
            let Write::Put(id, value) = write else {
                continue;
            };
            for field in self.opener.fields_of(id) {
                // A value without user data is not copied.
                if !field.is_present(value) {
                    continue;
                }
                if let Some(keyring) = &self.opener.keyring {
                    let sealed = field.seal(keyring, &*self.entropy, id, value);
                    sealed.map_err(not_sealed)?;
                }
                field.restore(id, value).map_err(misplaced)?;
            }
        }
        Ok(transaction)
    }
}

impl Opener {
    fn fields_of<'a>(&'a self, id: &'a RecordId) -> impl Iterator<Item = &'a SealedField> {
        let kind = id.kind.as_str();
        self.fields.iter().filter(move |field| field.kind == kind)
    }

    /// Opens every field of a record, or returns the first error. The others are opened nevertheless.
    fn open(&self, record: &mut Record) -> Result<(), OpenError> {
        let mut result = Ok(());
        for field in self.fields_of(&record.id) {
            // A value without user data is shared with its clones, and parsed once.
            if !field.is_present(&record.value) {
                continue;
            }
            let opened = field.open(self.keyring.as_deref(), &record.id, &mut record.value);
            result = result.and(opened);
        }
        result
    }

    /// Opens a record that is read.
    fn opened(&self, mut record: Record) -> Record {
        if let Err(error) = self.open(&mut record) {
            tracing::warn!(%error, "user data cannot be opened");
        }
        record
    }
}

/// The commits of a watch of the inner store, opened.
struct OpenedCommits {
    inner: Mutex<Watch>,
    opener: Arc<Opener>,
}

#[async_trait]
impl Source for OpenedCommits {
    async fn batch(&self, _: Revision) -> Result<Batch, StoreError> {
        // The inner watch is where this one is: it is read by this one alone, and nothing is awaited after a commit was taken from it.
        let mut inner = self.inner.lock().await;
        let mut commit = inner.next().await?;
        let changes = commit.changes.into_iter().map(|change| match change {
            Change::Put(record) => Change::Put(self.opener.opened(record)),
            Change::Deleted(record) => Change::Deleted(self.opener.opened(record)),
        });
        commit.changes = changes.collect();
        Ok(Batch {
            commits: vec![commit],
            through: inner.position(),
        })
    }
}

fn not_sealed(error: SealError) -> StoreError {
    match error {
        SealError::Entropy(error) => StoreError::Unavailable {
            reason: "user data cannot be sealed without entropy".to_owned(),
            source: Some(Arc::new(error)),
        },
        SealError::TooLong { .. } => Invalid::new(error.to_string()).into(),
    }
}

fn misplaced(Misplaced(place): Misplaced) -> StoreError {
    let problem = "sealed user data that cannot be opened does not belong there";
    Invalid::new(format!("{place}: {problem}")).into()
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Store for SealedStore {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Record>, StoreError> {
        let found = self.inner.get(id).await?;
        Ok(found.map(|record| self.opener.opened(record)))
    }

    async fn list(&self, query: &Query) -> Result<Page, StoreError> {
        let mut page = self.inner.list(query).await?;
        let records = page.records.into_iter();
        page.records = records.map(|record| self.opener.opened(record)).collect();
        Ok(page)
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Revision, StoreError> {
        self.inner.commit(&self.sealed(transaction)?).await
    }

    async fn head(&self) -> Result<Revision, StoreError> {
        self.inner.head().await
    }

    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch, StoreError> {
        let inner = Mutex::new(self.inner.watch(after, interest).await?);
        let opener = Arc::clone(&self.opener);
        Ok(Watch::new(OpenedCommits { inner, opener }, after))
    }

    async fn compact(&self, through: Revision) -> Result<(), StoreError> {
        self.inner.compact(through).await
    }
}

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedStore")
            .field("keyring", &self.opener.keyring)
            .finish_non_exhaustive()
    }
}
