//! Tags, and the limits of a cloud for them.
//!
//! Owns the map of a caller's tags and the limits that a backend checks before it creates anything.
//! Tags are exact: they are stored byte for byte or refused, never trimmed, folded or cut.

use std::collections::{BTreeMap, btree_map};

use serde::{Deserialize, Serialize};

use crate::{InvalidValue, Problem};

/// The prefix of keys that are reserved for backends, in any case. They store launch tokens and config
/// fingerprints under it. Callers cannot set these keys, and results do not contain them.
pub const RESERVED_PREFIX: &str = "fleetwright:";

/// A caller's tags: exact keys with exact values, ordered by key.
///
/// A key is not empty and does not start with [`RESERVED_PREFIX`]. All other limits depend on the
/// cloud: see [`TagLimits`].
///
/// ```
/// use fleetwright::Tags;
///
/// let tags = Tags::new().with("ManagedBy", "my-fleet")?.with("Größe", "")?;
/// assert_eq!(tags.get("ManagedBy"), Some("my-fleet"));
/// assert_eq!(tags.get("managedby"), None); // keys are compared exactly
/// let keys: Vec<_> = tags.iter().map(|(key, _)| key).collect();
/// assert_eq!(keys, ["Größe", "ManagedBy"]);
/// assert!(tags.with("fleetwright:token", "x").is_err());
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub struct Tags(BTreeMap<String, String>);

impl Tags {
    /// Creates an empty map.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Returns these tags with one more. Replaces an equal key.
    ///
    /// # Errors
    /// [`InvalidValue`] if the key is empty or reserved.
    pub fn with(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, InvalidValue> {
        self.insert(key, value)?;
        Ok(self)
    }

    /// Sets one tag and returns its previous value.
    ///
    /// # Errors
    /// [`InvalidValue`] if the key is empty or reserved.
    pub fn insert(
        &mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Option<String>, InvalidValue> {
        let key = key.into();
        check_key(&key)?;
        Ok(self.0.insert(key, value.into()))
    }

    /// Removes one tag and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        self.0.remove(key)
    }

    /// Creates tags from those that a backend read from its cloud. Leaves out reserved and empty keys,
    /// which callers must not see, and keeps all others unchanged.
    pub fn from_observed(tags: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(
            tags.into_iter()
                .filter(|(key, _)| check_key(key).is_ok())
                .collect(),
        )
    }

    /// Returns the value of `key`. Keys are compared exactly.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Returns whether these tags contain every tag of `wanted` with exactly its value.
    pub fn contains_all(&self, wanted: &Self) -> bool {
        wanted
            .iter()
            .all(|(key, value)| self.get(key) == Some(value))
    }

    /// Iterates over all tags, ordered by key.
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.0.iter())
    }

    /// Returns the number of tags.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no tags.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Refuses a key that is empty or reserved, which no caller may use on any cloud.
pub(crate) fn check_key(key: &str) -> Result<(), InvalidValue> {
    if key.is_empty() {
        return Err(InvalidValue::new("tags", Problem::Empty));
    }
    if has_prefix(key, RESERVED_PREFIX) {
        let prefix = RESERVED_PREFIX.to_owned();
        return Err(InvalidValue::new(
            field_of(key),
            Problem::Reserved { prefix },
        ));
    }
    Ok(())
}

/// Returns whether `key` starts with `prefix` in any case, because some clouds fold the case of keys.
fn has_prefix(key: &str, prefix: &str) -> bool {
    key.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Returns the field name of a tag in errors, with the key cut to 40 characters.
fn field_of(key: &str) -> String {
    let shown: String = key.chars().take(40).collect();
    let cut = if shown.len() < key.len() { "…" } else { "" };
    format!("tags[{:?}]", shown + cut)
}

/// An iterator over [`Tags`] as pairs of key and value, ordered by key. Created by [`Tags::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a>(btree_map::Iter<'a, String, String>);

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a str);
    fn next(&mut self) -> Option<Self::Item> {
        self.0
            .next()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

impl<'a> IntoIterator for &'a Tags {
    type Item = (&'a str, &'a str);
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl TryFrom<BTreeMap<String, String>> for Tags {
    type Error = InvalidValue;
    fn try_from(map: BTreeMap<String, String>) -> Result<Self, InvalidValue> {
        map.keys().try_for_each(|key| check_key(key))?;
        Ok(Self(map))
    }
}

/// The limits of a cloud for a caller's tags. Tags that the backend needs for itself are already
/// subtracted.
///
/// ```
/// use fleetwright::{KeyCase, TagLimits, Tags};
///
/// let mut limits = TagLimits::new(2, 128, 256);
/// limits.reserved_prefixes = vec!["aws:".to_owned()];
/// limits.key_case = KeyCase::Folded;
/// assert!(limits.check(&Tags::new().with("fleet", "blue")?).is_ok());
/// assert!(limits.check(&Tags::new().with("aws:name", "x")?).is_err());
/// assert!(limits.check(&Tags::new().with("fleet", "1")?.with("Fleet", "2")?).is_err());
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TagLimits {
    /// The largest number of tags.
    pub max_tags: usize,
    /// The longest key, in characters.
    pub max_key_chars: usize,
    /// The longest value, in characters.
    pub max_value_chars: usize,
    /// Prefixes of keys that the cloud reserves, in any case. Default: none.
    #[serde(default)]
    pub reserved_prefixes: Vec<String>,
    /// Characters that a key must not contain. Default: none.
    #[serde(default)]
    pub forbidden_in_keys: String,
    /// Whether `name` and `Name` are different keys. Default: [`KeyCase::Distinct`].
    #[serde(default)]
    pub key_case: KeyCase,
}

/// Whether keys that differ only in case are different.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyCase {
    /// `name` and `Name` are two tags.
    #[default]
    Distinct,
    /// `name` and `Name` are one tag. A config with both is refused.
    Folded,
}

impl TagLimits {
    /// Creates limits for number and length only. Lengths are in characters, not in bytes.
    pub const fn new(max_tags: usize, max_key_chars: usize, max_value_chars: usize) -> Self {
        Self {
            max_tags,
            max_key_chars,
            max_value_chars,
            reserved_prefixes: Vec::new(),
            forbidden_in_keys: String::new(),
            key_case: KeyCase::Distinct,
        }
    }

    /// Checks `tags` against every limit. Control characters are never allowed.
    ///
    /// # Errors
    /// [`InvalidValue`] with the first tag that exceeds a limit.
    pub fn check(&self, tags: &Tags) -> Result<(), InvalidValue> {
        if tags.len() > self.max_tags {
            let (actual, limit) = (tags.len(), self.max_tags);
            return Err(InvalidValue::new(
                "tags",
                Problem::TooMany { actual, limit },
            ));
        }
        let mut folded = BTreeMap::new();
        for (key, value) in tags {
            self.check_one(key, value)
                .map_err(|problem| InvalidValue::new(field_of(key), problem))?;
            let twin = match self.key_case {
                KeyCase::Distinct => None,
                KeyCase::Folded => folded.insert(key.to_lowercase(), key),
            };
            if let Some(other) = twin {
                let problem = Problem::Duplicate {
                    other: other.to_owned(),
                };
                return Err(InvalidValue::new(field_of(key), problem));
            }
        }
        Ok(())
    }

    fn check_one(&self, key: &str, value: &str) -> Result<(), Problem> {
        for (text, limit) in [(key, self.max_key_chars), (value, self.max_value_chars)] {
            let actual = text.chars().count();
            if actual > limit {
                return Err(Problem::TooLong {
                    actual,
                    limit,
                    unit: "characters",
                });
            }
            if let Some(found) = text.chars().find(|c| c.is_control()) {
                let allowed = "characters that are not control characters";
                return Err(Problem::BadCharacter { found, allowed });
            }
        }
        if let Some(found) = key.chars().find(|c| self.forbidden_in_keys.contains(*c)) {
            let allowed = "characters that this cloud allows in a tag's key";
            return Err(Problem::BadCharacter { found, allowed });
        }
        match self
            .reserved_prefixes
            .iter()
            .find(|prefix| has_prefix(key, prefix))
        {
            Some(prefix) => Err(Problem::Reserved {
                prefix: prefix.clone(),
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
