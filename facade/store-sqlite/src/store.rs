//! `Store` on SQLite: reads use the pool, writes the queue, watches the log of changes.
//!
//! Owns the handle and how its parts work together; it contains no SQL. The flow of a call:
//!
//! - `get`, `list`, `head`: resolve the request against the schema, then read on a connection of
//!   the pool.
//! - `commit`, `compact`: validate, then queue. The writer commits the queued writes in groups and
//!   publishes the new revision on a channel.
//! - `watch`: read the log after the watch's position. If there is nothing, wait for the channel,
//!   which announces commits of this handle, or for the poll that looks for commits of other
//!   handles.
//!
//! No call holds a lock of this process across an await, except for the poll, which one watch runs
//! for all.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use fleetwright_store::{
    Batch, Interest, Page, Prepared, Query, Record, RecordId, Result, Revision, Schema, Source,
    Store, Transaction, Watch,
};
use tokio::sync::{Mutex, watch};

use crate::{
    SqliteOptions,
    cache::{self, Cache},
    check,
    checkpoint::Log,
    location,
    queue::{Queue, WriteRequest},
    read,
    readers::{Readers, blocking},
    setup,
    writer::Writer,
};

/// A store in a file. Clones are the same handle.
///
/// It needs a tokio runtime with time enabled. Dropping the last clone closes the file.
///
/// ```no_run
/// use fleetwright_store::{Schema, Store as _};
/// use fleetwright_store_sqlite::SqliteStore;
///
/// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = Schema::builder().kind("server").build()?;
/// let store = SqliteStore::open("fleet.db", schema).await?;
/// println!("at revision {}", store.head().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

/// What all clones of a handle share.
struct Shared {
    path: PathBuf,
    schema: Arc<Schema>,
    options: SqliteOptions,
    queue: Arc<Queue>,
    readers: Arc<Readers>,
    cache: Arc<Cache>,
    /// The newest revision that this handle knows, for waiting watches.
    head: watch::Sender<Revision>,
    /// Its holder polls for commits of other handles, for all watches of this handle.
    poller: Mutex<()>,
}

impl SqliteStore {
    /// Opens or creates a file with the default options.
    ///
    /// # Errors
    ///
    /// As for [`open_with`](Self::open_with).
    pub async fn open(path: impl AsRef<Path>, schema: Schema) -> Result<Self> {
        Self::open_with(path, schema, SqliteOptions::default()).await
    }

    /// Opens or creates a file.
    ///
    /// If no other handle is open, a file of an older version is migrated, and one with another
    /// schema is indexed again, each in one transaction.
    ///
    /// # Errors
    ///
    /// [`Incompatible`](fleetwright_store::StoreError::Incompatible) for a file of another program
    /// or a newer version, which is not changed, and for a file that other handles use with another
    /// schema. Unavailable if a lock cannot be taken in time.
    pub async fn open_with(
        path: impl AsRef<Path>,
        schema: Schema,
        options: SqliteOptions,
    ) -> Result<Self> {
        let given = path.as_ref().to_owned();
        let schema = Arc::new(schema);
        let for_setup = Arc::clone(&schema);
        let (path, opened, history) = blocking(move || {
            let path = location::resolve(&given)?;
            let opened = setup::open(&path, &for_setup, &options)?;
            let history = read::history(&opened.writer)?;
            Ok((path, opened, history))
        })
        .await?;
        let head = watch::Sender::new(history.head);
        let lock = Arc::new(opened.lock);
        let cache = Arc::new(Cache::new(cache::BYTES));
        let writer = Writer {
            connection: opened.writer,
            cache: Arc::clone(&cache),
            schema: Arc::clone(&schema),
            keep_commits: options.keep_commits,
            head: head.clone(),
            has_unresolved_commit: false,
            log: Log::new(&path, options.lock_timeout),
            _lock: Arc::clone(&lock),
        };
        let shared = Shared {
            readers: Arc::new(Readers::new(path.clone(), options, lock)),
            queue: Arc::new(Queue::new(writer)),
            cache,
            poller: Mutex::new(()),
            path,
            schema,
            options,
            head,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Reads the whole file and returns its problems as messages, empty if there are none. It takes
    /// time in proportion to the file, and does not block other calls.
    pub async fn check(&self) -> Result<Vec<String>> {
        let schema = Arc::clone(&self.shared.schema);
        let read =
            move |connection: &mut rusqlite::Connection| check::find_problems(connection, &schema);
        self.shared.readers.read(read).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn schema(&self) -> &Schema {
        &self.shared.schema
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.schema().indexes(&id.kind)?;
        let (id, cache) = (id.clone(), Arc::clone(&self.shared.cache));
        let read =
            move |connection: &mut rusqlite::Connection| read::record(connection, &cache, &id);
        self.shared.readers.read(read).await
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        let plan = query.plan(self.schema())?;
        let cache = Arc::clone(&self.shared.cache);
        let read =
            move |connection: &mut rusqlite::Connection| read::page(connection, &cache, &plan);
        self.shared.readers.read(read).await
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        // On the caller's thread: an invalid transaction is refused before it is queued, and the writer only writes.
        let request = WriteRequest::Commit(Prepared::new(transaction, self.schema())?);
        self.shared.queue.push(request).await
    }

    async fn head(&self) -> Result<Revision> {
        self.shared.read_head().await
    }

    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        interest.fits(self.schema())?;
        let read = move |connection: &mut rusqlite::Connection| {
            read::history(connection)?.can_watch_from(after)
        };
        self.shared.readers.read(read).await?;
        let source = SqliteSource {
            shared: Arc::clone(&self.shared),
            interest,
        };
        Ok(Watch::new(source, after))
    }

    async fn compact(&self, through: Revision) -> Result<()> {
        self.shared
            .queue
            .push(WriteRequest::Compact(through))
            .await?;
        Ok(())
    }
}

impl Shared {
    /// Reads the newest revision, also of commits of other handles.
    async fn read_head(&self) -> Result<Revision> {
        let history = self
            .readers
            .read(|connection| read::history(connection))
            .await?;
        Ok(history.head)
    }

    /// Waits until another handle committed something after `known`, or an error occurs, which the
    /// next read returns. One watch of this handle polls; the others wait for it.
    async fn wait_for_other_handles(&self, known: Revision) {
        let _guard = self.poller.lock().await;
        loop {
            tokio::time::sleep(self.options.poll_every).await;
            match self.read_head().await {
                Ok(head) if head <= known => {}
                Ok(head) => {
                    self.head.send_replace(head);
                    return;
                }
                Err(_) => return,
            }
        }
    }
}

/// The source of one watch: the log of changes of the shared handle.
struct SqliteSource {
    shared: Arc<Shared>,
    interest: Interest,
}

#[async_trait]
impl Source for SqliteSource {
    async fn batch(&self, after: Revision) -> Result<Batch> {
        loop {
            // Subscribe before reading, so that a commit in between wakes the watch.
            let mut head = self.shared.head.subscribe();
            let (interest, cache) = (self.interest.clone(), Arc::clone(&self.shared.cache));
            let read = move |connection: &mut rusqlite::Connection| {
                read::changes(connection, &cache, after, &interest)
            };
            let batch = self.shared.readers.read(read).await?;
            if batch.through > after {
                return Ok(batch);
            }
            tokio::select! {
                biased;
                _ = head.changed() => {}
                () = self.shared.wait_for_other_handles(after) => {}
            }
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}
