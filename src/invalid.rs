//! The validation error: why a value was refused before it reached a cloud.
//!
//! Owns the error of every constructor and limit check in this crate. It never contains more of the
//! refused value than one character or the start of a tag's key, because the value may be a secret in
//! the wrong field.

use std::fmt;

/// A value that breaks a rule: the field, the rule and the limit.
///
/// Its one-line `Display` names all three, so it can be shown to the person who entered the value.
///
/// ```
/// use fleetwright::{LaunchToken, Problem};
///
/// let error = LaunchToken::new("a b").unwrap_err();
/// assert_eq!(error.field(), "launch token");
/// assert!(matches!(error.problem(), Problem::BadCharacter { found: ' ', .. }));
/// assert_eq!(error.to_string(), "launch token: contains ' '; use only visible ASCII characters");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidValue {
    field: String,
    problem: Problem,
}

impl InvalidValue {
    /// Creates an error that says that `field` has `problem`.
    pub fn new(field: impl Into<String>, problem: Problem) -> Self {
        let field = field.into();
        Self { field, problem }
    }

    /// Returns the field's name, with its path if it is nested: `placement.zone`, `tags["Name"]`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the rule that the value breaks.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

/// The rule that a value breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The value is empty.
    Empty,
    /// The number is zero.
    Zero,
    /// Longer than `limit`, counted in `unit`.
    TooLong {
        /// The length of the value.
        actual: usize,
        /// The longest allowed length.
        limit: usize,
        /// The unit: `"bytes"` or `"characters"`.
        unit: &'static str,
    },
    /// More items than `limit`.
    TooMany {
        /// The number of items.
        actual: usize,
        /// The largest allowed number.
        limit: usize,
    },
    /// A character that is not allowed.
    BadCharacter {
        /// The character.
        found: char,
        /// The allowed characters, in words.
        allowed: &'static str,
    },
    /// The name starts with a prefix that is reserved.
    Reserved {
        /// The reserved prefix.
        prefix: String,
    },
    /// Two keys that are the same key on this cloud.
    Duplicate {
        /// The other key.
        other: String,
    },
    /// The text does not have the expected form.
    Malformed {
        /// The expected form, in words.
        expected: &'static str,
    },
    /// The backend does not support this field, or not with this value.
    NotOffered {
        /// What to do instead, in words.
        instead: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "is empty; give a value or leave the field out"),
            Self::Zero => write!(f, "is zero; give at least 1 or leave the field out"),
            Self::TooLong {
                actual,
                limit,
                unit,
            } => {
                write!(f, "has {actual} {unit}; the limit is {limit}")
            }
            Self::TooMany { actual, limit } => {
                write!(f, "has {actual} entries; the limit is {limit}")
            }
            Self::BadCharacter { found, allowed } => {
                write!(f, "contains {found:?}; use only {allowed}")
            }
            Self::Reserved { prefix } => {
                write!(
                    f,
                    "starts with the reserved prefix {prefix:?}; choose another name"
                )
            }
            Self::Duplicate { other } => {
                write!(
                    f,
                    "is the same key as {other:?} on this cloud; keep one of them"
                )
            }
            Self::Malformed { expected } => write!(f, "is not {expected}"),
            Self::NotOffered { instead } => {
                write!(f, "is not supported by this backend; {instead}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_one_line_with_the_field() {
        let cases = [
            (
                Problem::Empty,
                "x: is empty; give a value or leave the field out",
            ),
            (
                Problem::Zero,
                "x: is zero; give at least 1 or leave the field out",
            ),
            (
                Problem::TooLong {
                    actual: 9,
                    limit: 8,
                    unit: "bytes",
                },
                "x: has 9 bytes; the limit is 8",
            ),
            (
                Problem::TooMany {
                    actual: 51,
                    limit: 50,
                },
                "x: has 51 entries; the limit is 50",
            ),
            (
                Problem::BadCharacter {
                    found: '\n',
                    allowed: "visible ASCII",
                },
                "x: contains '\\n'; use only visible ASCII",
            ),
            (
                Problem::Reserved {
                    prefix: "aws:".into(),
                },
                "x: starts with the reserved prefix \"aws:\"; choose another name",
            ),
            (
                Problem::Duplicate {
                    other: "NAME".into(),
                },
                "x: is the same key as \"NAME\" on this cloud; keep one of them",
            ),
            (
                Problem::Malformed {
                    expected: "a MAC address",
                },
                "x: is not a MAC address",
            ),
            (
                Problem::NotOffered {
                    instead: "leave it unset".into(),
                },
                "x: is not supported by this backend; leave it unset",
            ),
        ];
        for (problem, text) in cases {
            let error = InvalidValue::new("x", problem.clone());
            assert_eq!(error.to_string(), text);
            assert_eq!(error.field(), "x");
            assert_eq!(error.problem(), &problem);
        }
    }
}
