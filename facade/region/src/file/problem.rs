//! What is wrong with a file, and where.

use std::fmt;

/// How many problems are told in full. A file of another format altogether has one in every line.
const TOLD: usize = 100;

/// One thing that is wrong, where it stands, and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What it is about: an entry, and its field if it is one. Empty where the file is no TOML.
    pub place: String,
    /// What is wrong, and what would be accepted.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(line: usize, column: usize, place: &str, what: impl Into<String>) -> Self {
        Self {
            line,
            column,
            place: place.to_owned(),
            // Parsers add lines of their own; a problem is one.
            what: what.into().replace('\n', ", "),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.what)
    }
}

/// All that is wrong with a file, in the order of its lines. There is at least one problem, and up to a hundred are
/// told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    told: Vec<Problem>,
    untold: usize,
}

impl Problems {
    /// Nothing, if there are none.
    pub(crate) fn of(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort();
        problems.dedup();
        let untold = problems.len().saturating_sub(TOLD);
        problems.truncate(TOLD);
        (!problems.is_empty()).then_some(Self {
            told: problems,
            untold,
        })
    }

    /// One about the file as a whole.
    pub(crate) fn only(what: &str) -> Self {
        Self {
            told: vec![Problem::new(1, 1, "", what)],
            untold: 0,
        }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.told.iter()
    }

    /// How many there are, with those that are not told.
    pub fn count(&self) -> usize {
        self.told.len() + self.untold
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count();
        write!(f, "{count} problem{}", if count == 1 { "" } else { "s" })?;
        for (position, problem) in self.told.iter().enumerate() {
            f.write_str(if position == 0 { ": " } else { "; " })?;
            problem.fmt(f)?;
        }
        if self.untold > 0 {
            write!(f, "; and {} more", self.untold)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_told_in_order_and_once_and_not_endlessly() {
        assert_eq!(Problems::of(Vec::new()), None);
        let two = [(7, "b"), (2, "a\nb"), (7, "b")];
        let two = two.map(|(line, what)| Problem::new(line, 1, "x", what));
        assert_eq!(
            Problems::of(two.to_vec()).unwrap().to_string(),
            "2 problems: line 2, column 1: x: a, b; line 7, column 1: x: b"
        );
        let many = (1..=120).map(|line| Problem::new(line, 1, "", "no"));
        let many = Problems::of(many.collect()).unwrap();
        assert_eq!((many.iter().count(), many.count()), (100, 120));
        assert!(
            many.to_string()
                .ends_with("line 100, column 1: no; and 20 more")
        );
    }
}
