//! A typed record together with the form in which it is stored.

use std::fmt;

use crate::{Json, Key, Revision};

/// A typed record with its key and revision.
///
/// It also has the stored form that it was read from, so that a write keeps what this version does
/// not know. `value` may be changed in place and passed to [`Table::replace`](super::Table::replace).
/// Neither `Debug` nor `==` includes the stored form.
///
/// ```
/// use fleetwright_store::{Key, Revision, Versioned};
///
/// let created = Versioned::created(Key::new("blue")?, Revision(3), "10.0.0.0/8");
/// let replaced = created.replaced_by(Revision(4), "10.0.0.0/9");
/// assert_eq!((replaced.revision, replaced.value), (Revision(4), "10.0.0.0/9"));
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone)]
pub struct Versioned<T> {
    /// The key.
    pub key: Key,
    /// The revision of the last write.
    pub revision: Revision,
    /// The value.
    pub value: T,
    base: Option<Json>,
}

/// The stored form of a record and its revision, without the value.
///
/// [`Table::replace_base`](super::Table::replace_base) writes a value over it. A caller that keeps
/// values apart from their revisions keeps it instead of the revision.
///
/// ```
/// use fleetwright_store::{Base, Revision};
/// use serde_json::json;
///
/// let base = Base::new(Revision(3), json!({"cidr": "10.0.0.0/8", "version": 2}));
/// assert_eq!(base.revision(), Revision(3));
/// ```
#[derive(Clone)]
pub struct Base {
    pub(super) revision: Revision,
    pub(super) stored: Option<Json>,
}

impl Base {
    /// Returns the base of a value that is stored in this form.
    pub fn new(revision: Revision, stored: impl Into<Json>) -> Self {
        Self {
            revision,
            stored: Some(stored.into()),
        }
    }

    /// Returns the base of a record of which nothing is kept.
    pub fn without_form(revision: Revision) -> Self {
        Self {
            revision,
            stored: None,
        }
    }

    /// Returns the revision.
    pub fn revision(&self) -> Revision {
        self.revision
    }
}

impl<T> Versioned<T> {
    /// Returns a record that the caller has created at a revision.
    pub fn created(key: Key, revision: Revision, value: T) -> Self {
        Self {
            key,
            revision,
            value,
            base: None,
        }
    }

    pub(super) fn read(key: Key, revision: Revision, value: T, stored: Json) -> Self {
        Self {
            key,
            revision,
            value,
            base: Some(stored),
        }
    }

    /// Returns the record after the caller has replaced it with its `value` at a revision.
    #[must_use]
    pub fn replaced_at(self, revision: Revision) -> Self {
        // The form that was read stays the base: what it has beyond its type was written again.
        Self { revision, ..self }
    }

    /// Returns the record after the caller has replaced it with another value at a revision.
    #[must_use]
    pub fn replaced_by(self, revision: Revision, value: T) -> Self {
        Self {
            revision,
            value,
            ..self
        }
    }

    /// Returns the stored form and the revision.
    pub fn base(&self) -> Base {
        Base {
            revision: self.revision,
            stored: self.base.clone(),
        }
    }
}

impl<T: PartialEq> PartialEq for Versioned<T> {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, self.revision, &self.value) == (&other.key, other.revision, &other.value)
    }
}

impl<T: Eq> Eq for Versioned<T> {}

impl<T: fmt::Debug> fmt::Debug for Versioned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versioned")
            .field("key", &self.key)
            .field("revision", &self.revision)
            .field("value", &self.value)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base")
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
