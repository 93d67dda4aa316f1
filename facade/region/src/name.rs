//! The names that tenants give to their resources.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

/// A name that a tenant gives: 1 to 63 ASCII letters, digits, `-`, `_` and `.`, beginning and ending with a letter or
/// digit. Upper and lower case are different. It is checked when it is created or deserialized.
///
/// ```
/// use fleetwright_region::name::Name;
///
/// assert_eq!(Name::new("web-1")?.as_str(), "web-1");
/// assert!(Name::new("web 1").is_err());
/// # Ok::<(), fleetwright_region::name::InvalidName>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// A text that is not a valid name. The message shows at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a valid name: expected 1 to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
)]
pub struct InvalidName {
    text: String,
}

impl Name {
    /// Creates a name.
    ///
    /// # Errors
    ///
    /// The text is not a [valid name](Self).
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        let edge = |c: char| c.is_ascii_alphanumeric();
        let allowed = |c: char| edge(c) || "-_.".contains(c);
        let fits = (1..=63).contains(&text.len());
        if fits && text.chars().all(allowed) && text.starts_with(edge) && text.ends_with(edge) {
            return Ok(Self(text.into()));
        }
        let text = text.chars().take(80).collect();
        Err(InvalidName { text })
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::new(text)
    }
}

impl TryFrom<String> for Name {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::new(text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_accepted_unchanged_or_refused() {
        for good in ["a", "Web-1.eu_west", &"x".repeat(63)] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "-a", "a-", "a b", "ä", "a\n", &"x".repeat(64)] {
            let error = Name::new(bad).unwrap_err().to_string();
            assert!(
                error.contains("is not a valid name: expected 1 to 63 letters"),
                "{error}"
            );
            assert!(serde_json::from_value::<Name>(bad.into()).is_err());
        }
    }
}
