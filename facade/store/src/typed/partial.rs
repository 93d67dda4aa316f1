//! Showing a record that this version understands in part.
//!
//! Owns what stands in for the parts that are not understood. The result is for people who read a
//! record during an upgrade: it has no stored form, so it cannot be written, and it names what it
//! does not show.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Document,
    merge::push,
    place::{Failure, Step, parse},
    version::Version,
};
use crate::{Key, Revision};

/// The largest number of parts that are not understood.
const MOST: usize = 256;

/// A record of a newer version, as far as this version understands it. It is shown and nothing else.
///
/// ```
/// use fleetwright_store::{Document, Record, RecordId, Revision, Table};
/// use serde::{Deserialize, Serialize};
/// use serde_json::json;
///
/// #[derive(Clone, Serialize, Deserialize)]
/// struct Server { owner: String, power: Power }
/// #[derive(Clone, Serialize, Deserialize)]
/// enum Power { Running, Stopped }
/// impl Document for Server { const KIND: &'static str = "server"; }
///
/// let record = Record {
///     id: RecordId::new("server", "s-1")?,
///     revision: Revision(7),
///     value: json!({"owner": "ada", "power": "Hibernated"}).into(),
/// };
/// let shown = Table::<Server>::partial(&record).ok_or("nothing can be shown")?;
/// assert_eq!((shown.value.owner.as_str(), &shown.unknown[..]), ("ada", &["/power".to_owned()][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partial<T> {
    /// The key.
    pub key: Key,
    /// The revision of the last write.
    pub revision: Revision,
    /// The value. Items of lists that are not understood are left out. A variant that is not known
    /// is one that is.
    pub value: T,
    /// The places that `value` does not show, as JSON pointers.
    pub unknown: Vec<String>,
}

impl<T> Partial<T> {
    /// Returns another value in the place of this one, for a caller that shows a part of it.
    #[must_use]
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> Partial<U> {
        Partial {
            key: self.key,
            revision: self.revision,
            value: map(self.value),
            unknown: self.unknown,
        }
    }

    /// Returns whether all of a member of the record is shown as it is stored.
    pub fn shows(&self, member: &str) -> bool {
        let is_within = |place: &String| {
            let rest = place
                .strip_prefix('/')
                .and_then(|place| place.strip_prefix(member));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !self.unknown.iter().any(is_within)
    }
}

/// Returns as much of a value as this version understands, and the places that it does not.
pub(super) fn partial<T: Document>(stored: &Value) -> Option<(T, Vec<String>)> {
    if Version::of(stored).min_reader > T::VERSION {
        return None;
    }
    let mut value = stored.clone();
    let mut unknown = BTreeSet::new();
    for _ in 0..MOST {
        let failure = match parse::<T>(&value) {
            Ok(parsed) => return Some((parsed, unknown.into_iter().collect())),
            Err(failure) => failure,
        };
        let (repaired, place) = repair::<T>(&value, &failure)?;
        value = repaired;
        unknown.insert(place);
    }
    None
}

/// Returns the value without the place of a failure, or with another variant there.
fn repair<T: Document>(value: &Value, failure: &Failure) -> Option<(Value, String)> {
    let is_better = |repaired: &Value| match parse::<T>(repaired) {
        Ok(_) => true,
        Err(next) => next.path != failure.path && !failure.path.starts_with(&next.path),
    };
    // An item of a list is left out as a whole.
    for (at, step) in failure.path.iter().enumerate().rev() {
        if let Step::Item(item) = step {
            let list = pointer(&failure.path[..at]);
            let mut shorter = value.clone();
            shorter.pointer_mut(&list)?.as_array_mut()?.remove(*item);
            return Some((shorter, list));
        }
    }
    for depth in (1..=failure.path.len()).rev() {
        let (outer, step) = (&failure.path[..depth - 1], &failure.path[depth - 1]);
        let outer = pointer(outer);
        let mut place = outer.clone();
        let Step::Member(name) = step else {
            return None;
        };
        push(&mut place, name);
        let variants = failure
            .variants
            .iter()
            .filter(|_| depth == failure.path.len());
        for variant in variants {
            let mut other = value.clone();
            *other.pointer_mut(&place)? = Value::from(*variant);
            if is_better(&other) {
                return Some((other, place));
            }
        }
        let mut without = value.clone();
        without.pointer_mut(&outer)?.as_object_mut()?.remove(name);
        if is_better(&without) {
            return Some((without, place));
        }
    }
    None
}

fn pointer(path: &[Step]) -> String {
    let mut pointer = String::new();
    for step in path {
        match step {
            Step::Member(name) => push(&mut pointer, name),
            Step::Item(at) => push(&mut pointer, &at.to_string()),
        }
    }
    pointer
}
