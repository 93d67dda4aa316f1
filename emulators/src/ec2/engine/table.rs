//! Resources that are found by their ids, and listed in the order of their creation.

use std::collections::{BTreeMap, HashMap};

use super::{Seq, record::Tags};

/// A resource with an id and tags.
pub(crate) trait Resource {
    /// Returns the id.
    fn id(&self) -> &str;

    /// Returns the tags.
    fn tags(&self) -> &Tags;

    /// Returns the tags to change them.
    fn tags_mut(&mut self) -> &mut Tags;
}

/// Implements [`Resource`] for a type with the fields `id` and `tags`.
macro_rules! impl_resource {
    ($($name:ty),+) => {
        $(impl $crate::ec2::engine::table::Resource for $name {
            fn id(&self) -> &str {
                &self.id
            }

            fn tags(&self) -> &$crate::ec2::engine::record::Tags {
                &self.tags
            }

            fn tags_mut(&mut self) -> &mut $crate::ec2::engine::record::Tags {
                &mut self.tags
            }
        })+
    };
}
pub(crate) use impl_resource;

/// All resources of a kind.
#[derive(Debug)]
pub(crate) struct Table<T> {
    /// The resources.
    rows: BTreeMap<Seq, T>,
    /// Their numbers by id.
    ids: HashMap<String, Seq>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            ids: HashMap::new(),
        }
    }
}

impl<T: Resource> Table<T> {
    /// Adds a resource, or replaces the one with its id.
    pub(crate) fn put(&mut self, seq: Seq, resource: T) {
        let id = resource.id().to_owned();
        let seq = *self.ids.entry(id).or_insert(seq);
        self.rows.insert(seq, resource);
    }

    /// Removes a resource and returns it.
    pub(crate) fn remove(&mut self, id: &str) -> Option<T> {
        let seq = self.ids.remove(id)?;
        self.rows.remove(&seq)
    }

    /// Returns a resource.
    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.rows.get(self.ids.get(id)?)
    }

    /// Returns a resource to change it.
    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.rows.get_mut(self.ids.get(id)?)
    }

    /// Returns all resources, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.rows.values()
    }

    /// Returns all resources to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.values_mut()
    }
}

/// The tags of all resources of a kind, whatever the kind is.
pub(crate) trait Tagged {
    /// Returns the number of a resource.
    fn seq(&self, id: &str) -> Option<Seq>;

    /// Returns the tags of a resource.
    fn tags(&self, seq: Seq) -> Option<&Tags>;

    /// Replaces the tags of a resource.
    fn set_tags(&mut self, seq: Seq, tags: Tags);

    /// Returns the resources from a number on.
    fn ids_from(&self, from: Seq) -> Vec<(Seq, &str)>;
}

impl<T: Resource> Tagged for Table<T> {
    fn seq(&self, id: &str) -> Option<Seq> {
        self.ids.get(id).copied()
    }

    fn tags(&self, seq: Seq) -> Option<&Tags> {
        self.rows.get(&seq).map(Resource::tags)
    }

    fn set_tags(&mut self, seq: Seq, tags: Tags) {
        if let Some(resource) = self.rows.get_mut(&seq) {
            *resource.tags_mut() = tags;
        }
    }

    fn ids_from(&self, from: Seq) -> Vec<(Seq, &str)> {
        let rows = self.rows.range(from..);
        rows.map(|(seq, resource)| (*seq, resource.id())).collect()
    }
}
