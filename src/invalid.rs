//! Why a value was refused before it reached any cloud.
//!
//! Owns the one error of every constructor and limit check in this crate. Of the
//! refused value it tells at most a character or the beginning of a tag's key, because the value may
//! be a secret in the wrong field.

use std::fmt;

/// A value that breaks a rule: which field, which rule, and where there is one, the limit.
///
/// Its one-line `Display` names all three, so it can be shown to the person who typed the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidValue {
    field: String,
    problem: Problem,
}

impl InvalidValue {
    /// Says that `field` has `problem`.
    pub fn new(field: impl Into<String>, problem: Problem) -> Self {
        let field = field.into();
        Self { field, problem }
    }

    /// The field's name, with a path where it is nested: `placement.zone`, `tags["Name"]`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The rule that was broken.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

/// The rule that a value breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing was given where something is required.
    Empty,
    /// The number is zero.
    Zero,
    /// Longer than `limit`, counted in `unit`.
    TooLong {
        /// The length that was given.
        actual: usize,
        /// The longest length that is taken.
        limit: usize,
        /// What is counted: `"bytes"` or `"characters"`.
        unit: &'static str,
    },
    /// More items than `limit`.
    TooMany {
        /// The number that was given.
        actual: usize,
        /// The largest number that is taken.
        limit: usize,
    },
    /// A character that is not taken here.
    BadCharacter {
        /// The character.
        found: char,
        /// What is taken, in words.
        allowed: &'static str,
    },
    /// The name begins with a prefix that belongs to somebody else.
    Reserved {
        /// The prefix, as it is reserved.
        prefix: String,
    },
    /// Two keys that this cloud cannot tell apart.
    Duplicate {
        /// The other key.
        other: String,
    },
    /// The text is not of the form that is read here.
    Malformed {
        /// The form that is read, in words.
        expected: &'static str,
    },
    /// The backend does not offer this field, or not with this value.
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
                write!(f, "has {actual} {unit}, at most {limit} are taken")
            }
            Self::TooMany { actual, limit } => {
                write!(f, "has {actual} entries, at most {limit} are taken")
            }
            Self::BadCharacter { found, allowed } => {
                write!(f, "contains {found:?}; only {allowed}")
            }
            Self::Reserved { prefix } => {
                write!(
                    f,
                    "begins with the reserved prefix {prefix:?}; choose another name"
                )
            }
            Self::Duplicate { other } => {
                write!(
                    f,
                    "cannot be told from {other:?} on this cloud; keep one of them"
                )
            }
            Self::Malformed { expected } => write!(f, "is not {expected}"),
            Self::NotOffered { instead } => write!(f, "is not offered here; {instead}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_reads_as_one_line_that_names_the_field() {
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
                "x: has 9 bytes, at most 8 are taken",
            ),
            (
                Problem::TooMany {
                    actual: 51,
                    limit: 50,
                },
                "x: has 51 entries, at most 50 are taken",
            ),
            (
                Problem::BadCharacter {
                    found: '\n',
                    allowed: "visible ASCII",
                },
                "x: contains '\\n'; only visible ASCII",
            ),
            (
                Problem::Reserved {
                    prefix: "aws:".into(),
                },
                "x: begins with the reserved prefix \"aws:\"; choose another name",
            ),
            (
                Problem::Duplicate {
                    other: "NAME".into(),
                },
                "x: cannot be told from \"NAME\" on this cloud; keep one of them",
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
                "x: is not offered here; leave it unset",
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
