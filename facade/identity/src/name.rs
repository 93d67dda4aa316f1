//! What actors, roles and quota kinds are called: valid by type, so that nothing past a constructor checks a name again.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// Makes a checked string type. Three types with the same methods are one macro here.
macro_rules! name_type {
    ($(#[$docs:meta])* $name:ident, $what:literal, $rule:expr) => {
        $(#[$docs])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
                let (text, rule): (_, Rule) = (text.as_ref(), $rule);
                if (rule.holds)(text) {
                    return Ok(Self(text.into()));
                }
                Err(InvalidName {
                    what: $what,
                    text: text.to_owned(),
                    wanted: rule.wanted,
                })
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name_type! {
    /// What an actor is called: 1 to 256 bytes without control characters, so that it fits into a line of a log.
    ActorName, "an actor", ONE_LINE
}

name_type! {
    /// What a role is called: lower-case letters, digits and `-`, beginning with a letter, 64 bytes at the most.
    RoleName, "a role", LOWER_CASE
}

name_type! {
    /// Something that quota is counted in: `servers`. Named like a role; whether there is such a kind only a
    /// [registry](crate::QuotaKinds) knows.
    QuotaKind, "a quota kind", LOWER_CASE
}

impl RoleName {
    /// A name that is known to be right.
    pub(crate) fn known(text: &'static str) -> Self {
        Self(text.into())
    }
}

impl QuotaKind {
    /// A name that is known to be right.
    pub(crate) fn known(text: &'static str) -> Self {
        Self(text.into())
    }
}

struct Rule {
    holds: fn(&str) -> bool,
    wanted: &'static str,
}

const ONE_LINE: Rule = Rule {
    holds: |text| (1..=256).contains(&text.len()) && !text.chars().any(char::is_control),
    wanted: "1 to 256 bytes without control characters",
};

const LOWER_CASE: Rule = Rule {
    holds: |text| {
        let goes_on = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase());
        begins && text.len() <= 64 && text.chars().all(goes_on)
    },
    wanted: "1 to 64 of a-z, 0-9 and '-', beginning with a letter",
};

/// A name that breaks the rules for its sort.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:.80?} does not name {what}: want {wanted}")]
pub struct InvalidName {
    what: &'static str,
    text: String,
    wanted: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_fits_into_a_line() {
        for good in ["a", "alice@example.com", "Ä 🦀", &"x".repeat(256)] {
            assert!(ActorName::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", "two\nlines", &"x".repeat(257)] {
            assert!(ActorName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn roles_and_kinds_keep_to_their_letters() {
        for good in ["a", "public-ips", "a1-", &"a".repeat(64)] {
            assert!(RoleName::new(good).is_ok(), "{good:?}");
            assert!(QuotaKind::new(good).is_ok(), "{good:?}");
        }
        for bad in [
            "",
            "Servers",
            "1st",
            "-a",
            "a b",
            "a_b",
            "ä",
            &"a".repeat(65),
        ] {
            assert!(RoleName::new(bad).is_err(), "{bad:?}");
            assert!(QuotaKind::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_name_from_data_is_checked_too_and_the_error_says_what_is_wanted() {
        let error = serde_json::from_str::<RoleName>("\"Root\"").unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"Root\" does not name a role: want 1 to 64 of a-z, 0-9 and '-', beginning with a letter"
        );
        let name: ActorName = serde_json::from_str("\"ada\"").unwrap();
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"ada\"");
    }
}
