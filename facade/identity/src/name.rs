//! Names of actors, roles, quota kinds, organizations and projects, as types that are always valid.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// Defines a checked string type. A macro, because four types have the same methods.
macro_rules! name_type {
    ($(#[$docs:meta])* $name:ident, $what:literal, $rule:expr) => {
        $(#[$docs])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Validates a name.
            ///
            /// # Errors
            ///
            /// The text breaks the rule of the type.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
                let (text, rule): (_, Rule) = (text.as_ref(), $rule);
                if (rule.is_valid)(text) {
                    return Ok(Self(text.into()));
                }
                Err(InvalidName {
                    what: $what,
                    text: text.to_owned(),
                    rule: rule.description,
                })
            }

            /// Returns the text.
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
    /// The name of an actor: 1 to 256 bytes without control characters, so that it fits into a log line.
    ActorName, "an actor", ONE_LINE
}

name_type! {
    /// The name of a role: lower-case letters, digits and `-`, starting with a letter, at most 64 bytes.
    RoleName, "a role", LOWER_CASE
}

name_type! {
    /// A kind of quota, such as `servers`, with the same rule as a role name. The
    /// [registry](crate::QuotaKinds) decides whether it exists.
    QuotaKind, "a quota kind", LOWER_CASE
}

name_type! {
    /// The name of an organization or a project: 1 to 63 ASCII letters, digits, `-`, `_` and `.`, beginning and ending with a letter or
    /// digit. Upper and lower case are different.
    TenantName, "an organization or project", TENANT
}

impl RoleName {
    /// Wraps a literal that is known to be valid.
    pub(crate) fn from_static(text: &'static str) -> Self {
        Self(text.into())
    }
}

impl QuotaKind {
    /// Wraps a literal that is known to be valid.
    pub(crate) fn from_static(text: &'static str) -> Self {
        Self(text.into())
    }
}

struct Rule {
    is_valid: fn(&str) -> bool,
    description: &'static str,
}

const ONE_LINE: Rule = Rule {
    is_valid: |text| (1..=256).contains(&text.len()) && !text.chars().any(char::is_control),
    description: "1 to 256 bytes without control characters",
};

const TENANT: Rule = Rule {
    is_valid: |text| {
        let edge = |c: char| c.is_ascii_alphanumeric();
        let allowed = |c: char| edge(c) || "-_.".contains(c);
        let fits = (1..=63).contains(&text.len());
        fits && text.chars().all(allowed) && text.starts_with(edge) && text.ends_with(edge)
    },
    description: "1 to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
};

const LOWER_CASE: Rule = Rule {
    is_valid: |text| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let starts_with_letter = text.starts_with(|c: char| c.is_ascii_lowercase());
        starts_with_letter && text.len() <= 64 && text.chars().all(allowed)
    },
    description: "1 to 64 of a-z, 0-9 and '-', starting with a letter",
};

/// An invalid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:.80?} is not a valid name of {what}: use {rule}")]
pub struct InvalidName {
    what: &'static str,
    text: String,
    rule: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actor_name_fits_into_a_log_line() {
        for good in ["a", "alice@example.com", "Ä 🦀", &"x".repeat(256)] {
            assert!(ActorName::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", "two\nlines", &"x".repeat(257)] {
            assert!(ActorName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn role_and_kind_names_allow_only_their_characters() {
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
    fn tenant_name_has_the_rule_of_the_names_in_it() {
        for good in ["a", "Acme", "web-1", "a_b.c", &"x".repeat(63)] {
            assert!(TenantName::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", "-a", "a-", "a b", "ä", "a/b", &"x".repeat(64)] {
            assert!(TenantName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn deserialized_name_is_validated_and_the_error_states_the_rule() {
        let error = serde_json::from_str::<RoleName>("\"Root\"").unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"Root\" is not a valid name of a role: use 1 to 64 of a-z, 0-9 and '-', starting with a letter"
        );
        let name: ActorName = serde_json::from_str("\"ada\"").unwrap();
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"ada\"");
    }
}
