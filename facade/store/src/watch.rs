//! Watches: every commit after a revision, once and in order.
//!
//! A watch pulls: it asks its [`Source`] for what came after the last commit it has handed out. So nothing
//! is buffered that could overflow, a dropped call loses nothing, and a watch that is slow beyond the
//! store's memory is told so instead of being given a gap.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
};

use async_trait::async_trait;
use futures_util::{Stream, stream};

use crate::{Invalid, Kind, Record, RecordId, Result, Revision, Schema, StoreError};

/// Everything that one transaction changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// When.
    pub revision: Revision,
    /// What, in the order of the transaction's writes.
    pub changes: Vec<Change>,
}

/// What became of one record.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It was made or replaced: how it is since then.
    Put(Record),
    /// It was deleted: how it was before. The value is null if it could not be read.
    Deleted(Record),
}

impl Change {
    /// The record as it became, or as it was before it was deleted.
    pub fn record(&self) -> &Record {
        match self {
            Self::Put(record) | Self::Deleted(record) => record,
        }
    }

    /// Which record.
    pub fn id(&self) -> &RecordId {
        &self.record().id
    }
}

/// Which changes a watch shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    kinds: Option<BTreeSet<Kind>>,
}

impl Interest {
    /// All of them.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those of records of these kinds.
    pub fn kinds(kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self {
            kinds: Some(kinds.into_iter().collect()),
        }
    }

    /// Whether all kinds are in a schema: a watch of a misspelt one would wait for ever.
    pub fn fits(&self, schema: &Schema) -> Result<(), Invalid> {
        let mut kinds = self.kinds.iter().flatten();
        kinds.try_for_each(|kind| schema.indexes(kind).map(|_| ()))
    }

    /// Whether a change of a record of `kind` is shown.
    pub fn includes(&self, kind: &Kind) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind))
    }

    /// The kinds, unless it is all of them.
    pub fn only(&self) -> Option<&BTreeSet<Kind>> {
        self.kinds.as_ref()
    }

    /// The part of a commit that is shown, if there is any.
    pub fn part_of(&self, commit: &Commit) -> Option<Commit> {
        let shown = commit
            .changes
            .iter()
            .filter(|change| self.includes(&change.id().kind));
        let changes: Vec<_> = shown.cloned().collect();
        let revision = commit.revision;
        (!changes.is_empty()).then_some(Commit { revision, changes })
    }
}

/// How far a store's changes go back, and where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Up to here changes are forgotten: the oldest revision to watch from.
    pub compacted: Revision,
    /// Where the store is.
    pub head: Revision,
}

impl History {
    /// Whether a watch can begin behind `after`, or what is in the way.
    pub fn can_watch_from(&self, after: Revision) -> Result<()> {
        if after < self.compacted {
            return Err(StoreError::Compacted {
                asked: after,
                oldest: self.compacted,
            });
        }
        if after > self.head {
            return Err(StoreError::Ahead {
                asked: after,
                head: self.head,
            });
        }
        Ok(())
    }
}

/// Commits that follow one another.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Those that are of interest, in order.
    pub commits: Vec<Commit>,
    /// Up to where there are no others.
    pub through: Revision,
}

/// Where a watch gets its commits from: what the author of a store writes.
#[async_trait]
pub trait Source: Send + Sync {
    /// Waits until there is something after `after`, and answers what follows: at least one commit, or that
    /// nothing up to a later revision is of interest. Dropping the call has no effect.
    ///
    /// Fails with [`Compacted`](crate::StoreError::Compacted) rather than leave anything out.
    async fn batch(&self, after: Revision) -> Result<Batch>;
}

/// Shows every commit after a revision, once and in order.
pub struct Watch {
    source: Box<dyn Source>,
    ready: VecDeque<Commit>,
    position: Revision,
    through: Revision,
}

impl Watch {
    /// Begins behind `after`.
    pub fn new(source: impl Source + 'static, after: Revision) -> Self {
        Self {
            source: Box::new(source),
            ready: VecDeque::new(),
            position: after,
            through: after,
        }
    }

    /// The next commit of interest; waits for it. A call that is dropped loses nothing.
    ///
    /// After an error the watch is where it was. [`Compacted`](crate::StoreError::Compacted) is final: list
    /// again, and watch from the revision of the first page.
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

    /// Up to where everything of interest has been handed out: where a new watch goes on without a gap and
    /// without showing anything again. It moves on with commits that are of no interest, too.
    pub fn position(&self) -> Revision {
        self.position
    }

    /// The same as a stream. It ends after the first error.
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
