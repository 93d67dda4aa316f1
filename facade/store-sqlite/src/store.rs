//! The trait on SQLite: reads to the readers, writes to the queue, watches from the log of changes.

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
    SqliteOptions, check,
    error::unavailable,
    queue::{Order, Queue},
    read,
    readers::{Readers, blocking},
    setup,
    writer::Writer,
};

/// A store in a file. Clones are the same handle.
///
/// Needs a tokio runtime with its time enabled. The last clone's end closes the file.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    schema: Arc<Schema>,
    options: SqliteOptions,
    queue: Arc<Queue>,
    readers: Arc<Readers>,
    head: watch::Sender<Revision>,
    /// Whoever holds it looks for commits of other handles, for all watches of this one.
    lookout: Mutex<()>,
}

impl SqliteStore {
    /// Opens a file with the default options, or makes it.
    pub async fn open(path: impl AsRef<Path>, schema: Schema) -> Result<Self> {
        Self::open_with(path, schema, SqliteOptions::default()).await
    }

    /// Opens a file, or makes it.
    ///
    /// A file of an older version is migrated and one with another schema is indexed anew, each in one
    /// transaction, if nobody else has it open. A file of a newer version or of another program is refused as
    /// [`Incompatible`](fleetwright_store::StoreError::Incompatible) and left as it is.
    pub async fn open_with(
        path: impl AsRef<Path>,
        schema: Schema,
        options: SqliteOptions,
    ) -> Result<Self> {
        // A path that stays the same when the process changes its folder, and has no meaning of its own for SQLite.
        let path = std::path::absolute(&path).map_err(|error| {
            let given = path.as_ref().display();
            unavailable(format!("{given:?} is not a path: {error}"))
        })?;
        let schema = Arc::new(schema);
        let for_setup = (path.clone(), Arc::clone(&schema));
        let (opened, history) = blocking(move || {
            let (path, schema) = for_setup;
            let opened = setup::open(&path, &schema, &options)?;
            let history = read::history(&opened.writer)?;
            Ok((opened, history))
        })
        .await?;
        let head = watch::Sender::new(history.head);
        let lock = Arc::new(opened.lock);
        let writer = Writer {
            connection: opened.writer,
            schema: Arc::clone(&schema),
            keep_commits: options.keep_commits,
            head: head.clone(),
            is_unsettled: false,
            _lock: Arc::clone(&lock),
        };
        let shared = Shared {
            readers: Arc::new(Readers::new(path.clone(), options, lock)),
            queue: Arc::new(Queue::new(writer)),
            lookout: Mutex::new(()),
            path,
            schema,
            options,
            head,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Reads the whole file and tells what is wrong with it, in words: nothing, if all is well. Takes time in
    /// proportion to what is stored, and holds up nobody.
    pub async fn check(&self) -> Result<Vec<String>> {
        let schema = Arc::clone(&self.shared.schema);
        let look =
            move |connection: &mut rusqlite::Connection| check::problems(connection, &schema);
        self.shared.readers.read(look).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn schema(&self) -> &Schema {
        &self.shared.schema
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.schema().indexes(&id.kind)?;
        let id = id.clone();
        let look = move |connection: &mut rusqlite::Connection| read::record(connection, &id);
        self.shared.readers.read(look).await
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        let plan = query.plan(self.schema())?;
        let look = move |connection: &mut rusqlite::Connection| read::page(connection, &plan);
        self.shared.readers.read(look).await
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        // What is wrong in itself does not wait for its turn.
        Prepared::new(transaction, self.schema())?;
        let order = Order::Commit(transaction.clone());
        self.shared.queue.push(order).await
    }

    async fn head(&self) -> Result<Revision> {
        self.shared.look_for_head().await
    }

    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        interest.fits(self.schema())?;
        let look = move |connection: &mut rusqlite::Connection| {
            read::history(connection)?.can_watch_from(after)
        };
        self.shared.readers.read(look).await?;
        let source = SqliteSource {
            shared: Arc::clone(&self.shared),
            interest,
        };
        Ok(Watch::new(source, after))
    }

    async fn compact(&self, through: Revision) -> Result<()> {
        self.shared.queue.push(Order::Compact(through)).await?;
        Ok(())
    }
}

impl Shared {
    async fn look_for_head(&self) -> Result<Revision> {
        let history = self
            .readers
            .read(|connection| read::history(connection))
            .await?;
        Ok(history.head)
    }

    /// Waits until another handle has committed something after `seen`, or something goes wrong, which the next
    /// read will tell. One watch of this handle looks; the others wait for their turn.
    async fn look_out(&self, seen: Revision) {
        let _lookout = self.lookout.lock().await;
        loop {
            tokio::time::sleep(self.options.poll_every).await;
            match self.look_for_head().await {
                Ok(head) if head <= seen => {}
                Ok(head) => {
                    self.head.send_replace(head);
                    return;
                }
                Err(_) => return,
            }
        }
    }
}

struct SqliteSource {
    shared: Arc<Shared>,
    interest: Interest,
}

#[async_trait]
impl Source for SqliteSource {
    async fn batch(&self, after: Revision) -> Result<Batch> {
        loop {
            // Before looking, so that what is committed in the meantime wakes.
            let mut head = self.shared.head.subscribe();
            let interest = self.interest.clone();
            let look = move |connection: &mut rusqlite::Connection| {
                read::changes(connection, after, &interest)
            };
            let batch = self.shared.readers.read(look).await?;
            if batch.through > after {
                return Ok(batch);
            }
            tokio::select! {
                biased;
                _ = head.changed() => {}
                () = self.shared.look_out(after) => {}
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
