//! Resources of one kind: found by id, listed by scope, with the old versions that a stale read
//! returns.
//!
//! Owns the versions of each resource. A list reads the records on its page and no others. A
//! deleted resource is kept for as long as a stale read may return it, which is the lag of reads.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use crate::{
    azure::wire::id::Id,
    cloud::{
        history::History,
        index::Seq,
        page::{Page, PageRequest},
        records::{Record, Records},
    },
};

/// What a list contains. Names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// All resources of a subscription.
    Subscription(String),
    /// The resources of a resource group: the subscription and the group.
    Group(String, String),
}

impl Scope {
    /// Returns the scope of a subscription.
    pub(crate) fn subscription(subscription: &str) -> Self {
        Self::Subscription(subscription.to_ascii_lowercase())
    }

    /// Returns the scope of a resource group.
    pub(crate) fn group(subscription: &str, group: &str) -> Self {
        Self::Group(
            subscription.to_ascii_lowercase(),
            group.to_ascii_lowercase(),
        )
    }
}

/// The resources of one kind.
#[derive(Debug)]
pub(crate) struct ResourceTable<T: Clone> {
    /// All records, with deleted ones that may still be read, by sequence number.
    entries: Records<Entry<T>>,
    /// The sequence number of an existing resource by its key.
    by_key: HashMap<String, Seq>,
    /// Deleted resources that a stale read may return, oldest first, with their deletion times.
    deleted: VecDeque<(Duration, Seq)>,
    /// When the last resource with a key was deleted. A new one with the key removes the entry.
    deleted_at: HashMap<String, Duration>,
}

/// The record of one resource.
#[derive(Debug)]
struct Entry<T> {
    /// The key of its id.
    key: String,
    /// The scopes that list it: its subscription and its resource group.
    scopes: [Scope; 2],
    /// The versions; the last one is `None` once the resource is deleted.
    versions: History<Option<Arc<T>>>,
}

impl<T> Entry<T> {
    /// Returns the current version, or `None` if the resource is deleted.
    fn current(&self) -> Option<&T> {
        self.versions.current().as_deref()
    }
}

impl<T: Clone> Record for Entry<T> {
    type Version = Option<Arc<T>>;
    type Key = Scope;

    fn versions(&mut self) -> &mut History<Self::Version> {
        &mut self.versions
    }

    fn keys(&self) -> Vec<Scope> {
        self.scopes.to_vec()
    }
}

impl<T: Clone> Default for ResourceTable<T> {
    fn default() -> Self {
        Self {
            entries: Records::default(),
            by_key: HashMap::new(),
            deleted: VecDeque::new(),
            deleted_at: HashMap::new(),
        }
    }
}

impl<T: Clone> ResourceTable<T> {
    /// Adds a resource. Its id must not exist.
    pub(crate) fn insert(&mut self, seq: Seq, id: &Id, now: Duration, item: T) {
        let key = id.key();
        self.by_key.insert(key.clone(), seq);
        self.deleted_at.remove(&key);
        let entry = Entry {
            key,
            scopes: [
                Scope::subscription(&id.subscription),
                Scope::group(&id.subscription, &id.group),
            ],
            versions: History::new(now, Some(Arc::new(item))),
        };
        self.entries.add(seq, entry);
    }

    /// Returns the current version of a resource by its sequence number.
    pub(crate) fn get(&self, seq: Seq) -> Option<&T> {
        self.entries.get(&seq)?.current()
    }

    /// Returns the sequence number of an existing resource.
    pub(crate) fn seq(&self, id: &Id) -> Option<Seq> {
        self.by_key.get(&id.key()).copied()
    }

    /// Returns the sequence number and the current version of an existing resource.
    pub(crate) fn find(&self, id: &Id) -> Option<(Seq, &T)> {
        let seq = self.seq(id)?;
        Some((seq, self.get(seq)?))
    }

    /// Returns when a resource was created.
    pub(crate) fn created_at(&self, seq: Seq) -> Option<Duration> {
        self.entries
            .get(&seq)
            .map(|entry| entry.versions.created_at())
    }

    /// Returns the version at a time, as a stale read sees it; `None` if the resource did not exist
    /// then. A deleted resource is not found by its id, only in lists.
    pub(crate) fn version_at(&self, id: &Id, moment: Option<Duration>) -> Option<Arc<T>> {
        let entry = self.entries.get(&self.seq(id)?)?;
        entry.versions.at(moment)?.clone()
    }

    /// Adds a version to a resource, as of now. Versions older than `window` are dropped; without a
    /// window the current version is changed in place.
    pub(crate) fn edit(
        &mut self,
        seq: Seq,
        now: Duration,
        window: Duration,
        change: impl FnOnce(&mut T),
    ) {
        if window.is_zero() {
            let entry = self.entries.get_mut(&seq);
            let current = entry.and_then(|entry| entry.versions.current_mut());
            if let Some(Some(item)) = current {
                change(Arc::make_mut(item));
            }
            return;
        }
        self.entries.revise(seq, (now, window), |version| {
            if let Some(item) = version {
                change(Arc::make_mut(item));
            }
        });
        self.entries.prune(seq, now.saturating_sub(window));
    }

    /// Deletes a resource, and drops deleted ones that are older than `window`.
    pub(crate) fn remove(&mut self, seq: Seq, now: Duration, window: Duration) {
        let Some(key) = self.entries.get(&seq).map(|entry| entry.key.clone()) else {
            return;
        };
        self.entries
            .revise(seq, (now, window), |version| *version = None);
        self.by_key.remove(&key);
        self.deleted_at.insert(key, now);
        self.deleted.push_back((now, seq));
        while let Some((at, seq)) = self.deleted.front().copied() {
            if at.saturating_add(window) > now {
                break;
            }
            self.deleted.pop_front();
            self.entries.remove(seq);
        }
    }

    /// Returns when the last resource with this id was deleted, if there is none now.
    pub(crate) fn deleted_at(&self, id: &Id) -> Option<Duration> {
        self.deleted_at.get(&id.key()).copied()
    }

    /// Returns a page of a list as of a time, and the number of records that it read.
    pub(crate) fn page(
        &self,
        scope: &Scope,
        paging: &PageRequest,
        moment: Option<Duration>,
    ) -> (Page<Arc<T>>, u64) {
        let seqs = self
            .entries
            .find(std::slice::from_ref(scope), paging.position.after);
        paging.take(seqs.map(|seq| {
            let entry = self.entries.get(&seq);
            let version = entry.and_then(|entry| entry.versions.at(moment)?.clone());
            (seq, version)
        }))
    }

    /// Returns the current version of every resource, in the order of creation.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Seq, &T)> {
        let current = |(seq, entry): (&Seq, _)| Some((*seq, Entry::current(entry)?));
        self.entries.iter().filter_map(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        azure::wire::id::Kind,
        cloud::page::{PageFault, PagePosition},
    };

    fn id(name: &str) -> Id {
        Id::new(Kind::Disk, "s", "g", name)
    }

    fn list_items(resource_table: &ResourceTable<char>, moment: Duration) -> String {
        let paging = PageRequest {
            limit: 9,
            position: PagePosition::default(),
            page_fault: PageFault::None,
        };
        let (page, _) = resource_table.page(&Scope::group("S", "G"), &paging, Some(moment));
        page.items.iter().map(|item| **item).collect()
    }

    #[test]
    fn stale_read_returns_a_deleted_resource() {
        let at = Duration::from_secs;
        let window = at(10);
        let mut resource_table = ResourceTable::default();
        resource_table.insert(1, &id("a"), at(1), 'a');
        resource_table.insert(2, &id("b"), at(2), 'b');
        resource_table.edit(1, at(3), window, |item| *item = 'A');
        assert_eq!(list_items(&resource_table, at(3)), "Ab");
        assert_eq!(list_items(&resource_table, at(2)), "ab");
        assert_eq!(list_items(&resource_table, at(1)), "a");
        resource_table.remove(1, at(4), window);
        assert_eq!(
            (resource_table.get(1), resource_table.find(&id("A"))),
            (None, None)
        );
        assert_eq!(list_items(&resource_table, at(3)), "Ab");
        assert_eq!(list_items(&resource_table, at(4)), "b");
        assert_eq!(resource_table.deleted_at(&id("a")), Some(at(4)));
        assert_eq!(resource_table.iter().collect::<Vec<_>>(), [(2, &'b')]);
        resource_table.remove(2, at(14), window);
        assert_eq!(resource_table.entries.len(), 1);
        resource_table.insert(3, &id("a"), at(15), 'n');
        assert_eq!(resource_table.deleted_at(&id("a")), None);
        assert_eq!(
            resource_table.version_at(&id("a"), Some(at(15))).as_deref(),
            Some(&'n')
        );
    }
}
