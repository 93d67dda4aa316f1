//! Families of instance types, which share a quota.
//!
//! Owns the patterns that say which types belong to a family, and which zones to a region. The core
//! knows no cloud's names, so a backend names them by patterns, and everything else only compares.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

use crate::InstanceType;

/// A pattern of names: `#` stands for one or more digits and `*` for any text. All other characters
/// stand for themselves; the case of letters does not matter.
///
/// ```
/// use fleetwright::NamePattern;
///
/// let zones = NamePattern::new("us-central1-*");
/// assert!(zones.matches("us-central1-a"));
/// assert!(!zones.matches("us-central10-a"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NamePattern(String);

impl NamePattern {
    /// Creates a pattern. Every text is a valid pattern.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Returns whether the pattern matches the whole `name`. The time grows with the product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        matches(&self.0, name)
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The instance types that share a quota, as [patterns](NamePattern) of their names. A type belongs to
/// the family if one pattern matches its name.
///
/// ```
/// use fleetwright::{InstanceType, TypeFamily};
///
/// let family = TypeFamily::new(["m#*", "t#*"]);
/// assert!(family.contains(&InstanceType::new("m7i.large")?));
/// assert!(!family.contains(&InstanceType::new("trn1.2xlarge")?));
/// assert_eq!(family.to_string(), "m#*, t#*");
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TypeFamily(BTreeSet<NamePattern>);

impl TypeFamily {
    /// Creates a family of the types that one of the patterns matches. Without patterns it is empty.
    pub fn new<P: Into<String>>(patterns: impl IntoIterator<Item = P>) -> Self {
        Self(patterns.into_iter().map(NamePattern::new).collect())
    }

    /// Returns whether the type belongs to the family.
    pub fn contains(&self, instance_type: &InstanceType) -> bool {
        let name = instance_type.as_str();
        self.0.iter().any(|pattern| pattern.matches(name))
    }
}

impl fmt::Display for TypeFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, pattern) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{pattern}")?;
        }
        Ok(())
    }
}

/// Returns whether `pattern` matches the whole `name`.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern = pattern.as_bytes();
    // The positions in the pattern that the name read so far can be at.
    let mut positions = vec![false; pattern.len() + 1];
    positions[0] = true;
    skip_stars(pattern, &mut positions);
    for byte in name.bytes() {
        let mut next = vec![false; pattern.len() + 1];
        for (at, expected) in pattern.iter().enumerate() {
            if !positions[at] {
                continue;
            }
            match expected {
                b'*' => next[at] = true,
                b'#' if byte.is_ascii_digit() => (next[at], next[at + 1]) = (true, true),
                b'#' => {}
                other => next[at + 1] |= other.eq_ignore_ascii_case(&byte),
            }
        }
        skip_stars(pattern, &mut next);
        positions = next;
    }
    positions[pattern.len()]
}

/// Adds the positions behind stars, which match the empty text too.
fn skip_stars(pattern: &[u8], positions: &mut [bool]) {
    for (at, expected) in pattern.iter().enumerate() {
        positions[at + 1] |= positions[at] && *expected == b'*';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("m#*", "m7i.large", true),
            ("m#*", "mac2.metal", false),
            ("m#*", "m", false),
            ("n2-*", "n2-standard-4", true),
            ("n2-*", "n2d-standard-4", false),
            ("Standard_D#s_v3", "standard_d16s_v3", true),
            ("Standard_D#s_v3", "Standard_D16s_v33", false),
            ("Standard_D#s_v3", "Standard_Ds_v3", false),
            ("#", "12", true),
            ("##", "1", false),
            ("##", "12", true),
            ("*", "anything", true),
            ("", "", true),
            ("", "x", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    /// The same question with a recursive search.
    fn reference(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some(b'*'), first) => {
                reference(&pattern[1..], name) || first.is_some() && reference(pattern, &name[1..])
            }
            (Some(b'#'), Some(digit)) => {
                digit.is_ascii_digit()
                    && (reference(&pattern[1..], &name[1..]) || reference(pattern, &name[1..]))
            }
            (Some(one), Some(other)) => {
                one.eq_ignore_ascii_case(other) && reference(&pattern[1..], &name[1..])
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    proptest! {
        #[test]
        fn patterns_match_like_a_recursive_search(pattern in "[a1#*]{0,6}", name in "[aA12]{0,8}") {
            prop_assert_eq!(
                matches(&pattern, &name),
                reference(pattern.as_bytes(), name.as_bytes())
            );
        }

        #[test]
        fn name_matches_itself(name in "[a-zA-Z0-9._-]{1,20}") {
            prop_assert!(TypeFamily::new([name.as_str()]).contains(&InstanceType::new(&name).unwrap()));
        }
    }
}
