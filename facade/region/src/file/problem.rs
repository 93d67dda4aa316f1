//! The problems of a file, with their positions.

use std::fmt;

/// How many problems are kept. A file in another format has one in every line.
const MAX_LISTED: usize = 100;

/// One problem of a file. `Display` is one line: position, place, what is wrong, and what is expected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Problem {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The entry and its field: `disk of flavor small`. Empty for a syntax error.
    pub place: String,
    /// What is wrong, and what is expected.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(line: usize, column: usize, place: &str, what: impl Into<String>) -> Self {
        Self {
            line,
            column,
            place: place.to_owned(),
            // Messages of parsers may have several lines.
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

/// All problems of a file, at least one, in the order of its lines. The first 100 are kept; of the others only the number.
///
/// ```
/// use fleetwright_region::catalog::CatalogFile;
///
/// let problems = CatalogFile::parse("flavor = 1\nimage = 2").unwrap_err();
/// let lines: Vec<_> = problems.iter().map(|problem| problem.line).collect();
/// assert_eq!((problems.count(), lines), (2, vec![1, 2]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    listed: Vec<Problem>,
    omitted: usize,
}

impl Problems {
    /// Sorts problems and removes duplicates. Returns `None` if there are none.
    pub(crate) fn from_list(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort();
        problems.dedup();
        let omitted = problems.len().saturating_sub(MAX_LISTED);
        problems.truncate(MAX_LISTED);
        (!problems.is_empty()).then_some(Self {
            listed: problems,
            omitted,
        })
    }

    /// Creates a problem of the file as a whole.
    pub fn single(what: &str) -> Self {
        Self {
            listed: vec![Problem::new(1, 1, "", what)],
            omitted: 0,
        }
    }

    /// Returns the first 100 problems.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.listed.iter()
    }

    /// Returns the number of problems, including those beyond the first 100.
    pub fn count(&self) -> usize {
        self.listed.len() + self.omitted
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count();
        write!(f, "{count} problem{}", if count == 1 { "" } else { "s" })?;
        for (position, problem) in self.listed.iter().enumerate() {
            f.write_str(if position == 0 { ": " } else { "; " })?;
            problem.fmt(f)?;
        }
        if self.omitted > 0 {
            write!(f, "; and {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_sorted_deduplicated_and_limited() {
        assert_eq!(Problems::from_list(Vec::new()), None);
        let two = [(7, "b"), (2, "a\nb"), (7, "b")];
        let two = two.map(|(line, what)| Problem::new(line, 1, "x", what));
        assert_eq!(
            Problems::from_list(two.to_vec()).unwrap().to_string(),
            "2 problems: line 2, column 1: x: a, b; line 7, column 1: x: b"
        );
        let many = (1..=120).map(|line| Problem::new(line, 1, "", "no"));
        let many = Problems::from_list(many.collect()).unwrap();
        assert_eq!((many.iter().count(), many.count()), (100, 120));
        assert!(
            many.to_string()
                .ends_with("line 100, column 1: no; and 20 more")
        );
    }
}
