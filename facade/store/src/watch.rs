//! Watches: every commit after a revision, once and in order.
//!
//! A watch pulls: it requests the commits after its position from its [`Source`]. Nothing is
//! buffered that could overflow, a dropped call loses nothing, and a watch that falls behind the
//! stored changes gets an error instead of a gap.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
};

use async_trait::async_trait;
use futures_util::{Stream, stream};

use crate::{Invalid, Kind, Record, RecordId, Result, Revision, Schema, StoreError};

/// The changes of one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// The revision.
    pub revision: Revision,
    /// The changes, in the order of the transaction's writes.
    pub changes: Vec<Change>,
}

/// The change of one record.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Created or replaced; the new record.
    Put(Record),
    /// Deleted; the old record. Its value is null if it could not be read.
    Deleted(Record),
}

impl Change {
    /// Returns the new record, or the old one of a deletion.
    pub fn record(&self) -> &Record {
        match self {
            Self::Put(record) | Self::Deleted(record) => record,
        }
    }

    /// Returns the id of the record.
    pub fn id(&self) -> &RecordId {
        &self.record().id
    }
}

/// The changes that a watch returns.
///
/// ```
/// use fleetwright_store::{Interest, Kind};
///
/// let servers_only = Interest::kinds([Kind::new("server")?]);
/// assert_ne!(servers_only, Interest::all());
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    kinds: Option<BTreeSet<Kind>>,
}

impl Interest {
    /// All changes.
    pub fn all() -> Self {
        Self::default()
    }

    /// Changes of records of these kinds.
    pub fn kinds(kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self {
            kinds: Some(kinds.into_iter().collect()),
        }
    }

    /// Checks that all kinds are in a schema. A watch of a misspelt one would wait forever.
    ///
    /// # Errors
    ///
    /// The first kind that the schema does not have.
    pub fn fits(&self, schema: &Schema) -> Result<(), Invalid> {
        let mut kinds = self.kinds.iter().flatten();
        kinds.try_for_each(|kind| schema.indexes(kind).map(|_| ()))
    }

    /// Returns whether changes of `kind` are included.
    pub fn includes(&self, kind: &Kind) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind))
    }

    /// Returns the kinds, or `None` for all.
    pub fn only(&self) -> Option<&BTreeSet<Kind>> {
        self.kinds.as_ref()
    }

    /// Returns the included part of a commit, if there is any.
    pub fn part_of(&self, commit: &Commit) -> Option<Commit> {
        let included = commit
            .changes
            .iter()
            .filter(|change| self.includes(&change.id().kind));
        let changes: Vec<_> = included.cloned().collect();
        let revision = commit.revision;
        (!changes.is_empty()).then_some(Commit { revision, changes })
    }
}

/// The range of revisions whose changes a store has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The oldest revision to watch from. Earlier changes are forgotten.
    pub compacted: Revision,
    /// The newest revision.
    pub head: Revision,
}

impl History {
    /// Checks that a watch can start after `after`.
    ///
    /// # Errors
    ///
    /// [`Compacted`](StoreError::Compacted) if changes after it are forgotten,
    /// [`Ahead`](StoreError::Ahead) if the store has not reached it.
    pub fn can_watch_from(&self, after: Revision) -> Result<()> {
        if after < self.compacted {
            return Err(StoreError::Compacted {
                requested: after,
                oldest: self.compacted,
            });
        }
        if after > self.head {
            return Err(StoreError::Ahead {
                requested: after,
                head: self.head,
            });
        }
        Ok(())
    }
}

/// Consecutive commits.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The commits of interest, in order.
    pub commits: Vec<Commit>,
    /// The revision up to which there are no others.
    pub through: Revision,
}

/// The source of a watch's commits, implemented by authors of stores.
///
/// ```
/// use fleetwright_store::{Batch, Commit, Result, Revision, Source, Watch};
///
/// /// A store that was committed to once.
/// struct OneCommit;
///
/// #[async_trait::async_trait]
/// impl Source for OneCommit {
///     async fn batch(&self, after: Revision) -> Result<Batch> {
///         if after >= Revision(1) {
///             std::future::pending::<()>().await; // nothing else will be committed
///         }
///         let commit = Commit { revision: Revision(1), changes: Vec::new() };
///         Ok(Batch { commits: vec![commit], through: Revision(1) })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let mut watch = Watch::new(OneCommit, Revision::ZERO);
/// assert_eq!(watch.next().await?.revision, Revision(1));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Source: Send + Sync {
    /// Waits for commits after `after`, and returns at least one, or a later revision up to which
    /// nothing is of interest. Dropping the call has no effect.
    ///
    /// # Errors
    ///
    /// [`Compacted`](crate::StoreError::Compacted) if commits after `after` are missing.
    async fn batch(&self, after: Revision) -> Result<Batch>;
}

/// Returns every commit after a revision, once and in order.
///
/// A controller lists first, then watches from the revision of the page. If the process restarts, a
/// new watch from the stored [`position`](Self::position) continues without a gap:
///
/// ```
/// use fleetwright_store::{Interest, MemoryStore, RecordId, Revision, Schema, Store, Transaction};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new(Schema::builder().kind("server").build()?);
/// let put = |key| Ok::<_, fleetwright_store::Invalid>(
///     Transaction::new().put(RecordId::new("server", key)?, json!({})));
/// store.commit(&put("s-1")?).await?;
/// store.commit(&put("s-2")?).await?;
///
/// let mut watch = store.watch(Revision::ZERO, Interest::all()).await?;
/// assert_eq!(watch.next().await?.changes[0].id().key.as_str(), "s-1");
/// let position = watch.position();
/// drop(watch);
///
/// let mut watch = store.watch(position, Interest::all()).await?;
/// assert_eq!(watch.next().await?.changes[0].id().key.as_str(), "s-2");
/// # Ok(())
/// # }
/// ```
pub struct Watch {
    source: Box<dyn Source>,
    ready: VecDeque<Commit>,
    position: Revision,
    through: Revision,
}

impl Watch {
    /// Starts after `after`.
    pub fn new(source: impl Source + 'static, after: Revision) -> Self {
        Self {
            source: Box::new(source),
            ready: VecDeque::new(),
            position: after,
            through: after,
        }
    }

    /// Waits for the next commit of interest. A dropped call loses nothing.
    ///
    /// # Errors
    ///
    /// The position does not change after an error. [`Compacted`](crate::StoreError::Compacted) is
    /// final: list again, and watch from the revision of the first page.
    pub async fn next(&mut self) -> Result<Commit> {
        loop {
            if let Some(commit) = self.ready.pop_front() {
                let last = self.ready.is_empty();
                self.position = if last { self.through } else { commit.revision };
                return Ok(commit);
            }
            let batch = self.source.batch(self.position).await?;
            self.through = batch.through;
            self.ready = batch.commits.into();
            if self.ready.is_empty() {
                self.position = self.through;
            }
        }
    }

    /// Returns the revision up to which everything of interest was returned. A new watch from here
    /// has no gap and no repetition. The position also advances over commits without interest.
    pub fn position(&self) -> Revision {
        self.position
    }

    /// Converts the watch into a stream, which ends after the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Commit>> + Send {
        stream::unfold(Some(self), |watch| async move {
            let mut watch = watch?;
            match watch.next().await {
                Ok(commit) => Some((Ok(commit), Some(watch))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
