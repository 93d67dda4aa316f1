//! How much of a stored value this version understands.
//!
//! Owns the decision whether a value is returned as a value of its type. It is, if it parses, or if
//! only items of the type's [inert](Document::INERT) lists do not. It must never fill in a value
//! for one that is not understood, because a decision could depend on it.

use serde_json::Value;

use super::{
    Document,
    merge::{Skipped, push},
    place::{Failure, Step, parse},
    version::Version,
};
use crate::{Damaged, Json, RecordId, Revision};

/// A parsed value.
pub(super) struct Understood<T> {
    pub(super) value: T,
    /// The items of inert lists that are not in it.
    pub(super) skipped: Skipped,
}

/// Why a stored value cannot be returned as its type.
pub(super) enum Misread {
    /// A newer version wrote it.
    Newer(String),
    /// It does not match the type.
    Mismatched(String),
}

impl Misread {
    /// Returns the record that cannot be read.
    pub(super) fn of(self, id: RecordId, revision: Revision) -> Damaged {
        match self {
            Self::Newer(reason) => Damaged::newer(id, revision, reason),
            Self::Mismatched(reason) => Damaged::new(id, revision, reason),
        }
    }
}

/// Parses a stored value like [`understand`], once for all that share it.
///
/// # Errors
///
/// As for [`understand`].
pub(super) fn understand_shared<T: Document>(stored: &Json) -> Result<Understood<T>, Misread> {
    let is_readable = Version::of(stored).min_reader <= T::VERSION;
    match stored.parse::<T>() {
        Ok(value) if is_readable => Ok(Understood {
            value: T::clone(&value),
            skipped: Skipped::new(),
        }),
        Ok(_) | Err(_) => understand(stored),
    }
}

/// Parses a stored value.
///
/// # Errors
///
/// It does not match the type, or requires a newer reader.
pub(super) fn understand<T: Document>(stored: &Value) -> Result<Understood<T>, Misread> {
    let version = Version::of(stored);
    let known = T::VERSION;
    if version.min_reader > known {
        let needed = version.min_reader;
        return Err(Misread::Newer(format!(
            "it needs a program that knows version {needed} of its form, and this one knows version {known}: upgrade this program"
        )));
    }
    if let Ok(value) = T::deserialize(stored) {
        let skipped = Skipped::new();
        return Ok(Understood { value, skipped });
    }
    let mut skipped = Skipped::new();
    loop {
        let failure = match parse::<T>(&without(stored, &skipped)) {
            Ok(value) => return Ok(Understood { value, skipped }),
            Err(failure) => failure,
        };
        match inert_item::<T>(&failure.path, &skipped) {
            Some(item) => skipped.insert(item),
            None => return Err(misread(&failure, version, known)),
        };
    }
}

/// Returns the value without the items that are not understood.
fn without(stored: &Value, skipped: &Skipped) -> Value {
    let mut value = stored.clone();
    // From the last to the first, so that the positions of the others stay.
    for (list, at) in skipped.iter().rev() {
        if let Some(Value::Array(items)) = value.pointer_mut(list) {
            items.remove(*at);
        }
    }
    value
}

/// Returns the item of an inert list that contains a place, with its position in the stored list.
fn inert_item<T: Document>(path: &[Step], skipped: &Skipped) -> Option<(String, usize)> {
    let mut list = String::new();
    for step in path {
        match step {
            Step::Member(name) => push(&mut list, name),
            Step::Item(at) if T::INERT.contains(&list.as_str()) => {
                let is_skipped = |at: &usize| skipped.contains(&(list.clone(), *at));
                let stored = (0..).filter(|at| !is_skipped(at)).nth(*at)?;
                return Some((list, stored));
            }
            Step::Item(at) => push(&mut list, &at.to_string()),
        }
    }
    None
}

fn misread(failure: &Failure, version: Version, known: u64) -> Misread {
    let reason = without_text(&failure.error.to_string());
    let written = version.written;
    if written <= known && failure.variants.is_empty() {
        return Misread::Mismatched(reason);
    }
    let mut place = String::new();
    for step in &failure.path {
        match step {
            Step::Member(name) => push(&mut place, name),
            Step::Item(at) => push(&mut place, &at.to_string()),
        }
    }
    let why = if written > known {
        format!(
            "a newer version wrote it, in version {written} of its form, and this program knows version {known}"
        )
    } else {
        "it has a value that this program does not know, as a newer version may write it".to_owned()
    };
    Misread::Newer(format!("{why}: upgrade this program; {place}: {reason}"))
}

/// Removes the quoted text of the record from a message: it can be a secret, and messages are
/// logged.
fn without_text(message: &str) -> String {
    match (message.find('"'), message.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            format!("{}\"…\"{}", &message[..first], &message[last + 1..])
        }
        (None | Some(_), None | Some(_)) => message.to_owned(),
    }
}
