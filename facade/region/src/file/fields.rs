//! Reads the tables of a file field by field. A problem is recorded with its position, and reading continues.

use std::{borrow::Cow, cell::RefCell, collections::BTreeSet, ops::Range};

use toml::{Spanned, de::DeTable};

use super::{
    Problem, Problems,
    value::{Message, Value, excerpt, expected_by, suggestion, wrong_type},
};

/// Reads a file. `read` records problems and returns a value, which is dropped if there is any problem.
///
/// [`reader`](super::reader) has an example.
///
/// # Errors
///
/// All problems: of the TOML syntax, those that `read` recorded, and fields that it did not read.
pub fn read_document<T>(
    text: &str,
    read: impl FnOnce(&mut Fields<'_, '_>) -> T,
) -> Result<T, Problems> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let log = ProblemLog::new(text);
    for error in &errors {
        log.not_toml(&error.span().unwrap_or(0..0), error.message());
    }
    let mut fields = Fields::new(&log, table.get_ref(), 0..0, String::new());
    let value = read(&mut fields);
    fields.finish();
    match Problems::from_list(log.problems.into_inner()) {
        Some(problems) => Err(problems),
        None => Ok(value),
    }
}

/// The problems of a file so far, with the positions of its lines.
#[derive(Debug)]
struct ProblemLog<'t> {
    text: &'t str,
    /// The byte at which each line begins.
    lines: Vec<usize>,
    problems: RefCell<Vec<Problem>>,
    /// The lines with syntax errors. Other problems in them are consequences and are not recorded.
    broken: RefCell<BTreeSet<usize>>,
}

impl<'t> ProblemLog<'t> {
    fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let begins = ends.map(|(place, _)| place + 1);
        Self {
            text,
            lines: std::iter::once(0).chain(begins).collect(),
            problems: RefCell::default(),
            broken: RefCell::default(),
        }
    }

    /// Returns the line and the column of a byte, both counted from 1.
    fn position(&self, byte: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|begins| *begins <= byte);
        let begins = line.checked_sub(1).and_then(|line| self.lines.get(line));
        let before = begins.and_then(|begins| self.text.get(*begins..byte));
        (line, before.unwrap_or_default().chars().count() + 1)
    }

    fn record(&self, span: &Range<usize>, place: &str, what: impl Into<String>) {
        let (line, column) = self.position(span.start);
        if !self.broken.borrow().contains(&line) {
            let problem = Problem::new(line, column, place, what);
            self.problems.borrow_mut().push(problem);
        }
    }

    fn not_toml(&self, span: &Range<usize>, what: &str) {
        self.record(span, "", what);
        self.broken.borrow_mut().insert(self.position(span.start).0);
    }

    /// Returns whether there is any syntax error: then a field may be missing only because its line could not be parsed.
    fn is_broken(&self) -> bool {
        !self.broken.borrow().is_empty()
    }
}

/// A table. Each field is read once; fields that are not read are reported as unknown by [`finish`](Self::finish).
#[derive(Debug)]
pub struct Fields<'n, 't> {
    log: &'n ProblemLog<'t>,
    table: &'n DeTable<'t>,
    span: Range<usize>,
    place: String,
    known: Vec<&'static str>,
}

impl<'n, 't> Fields<'n, 't> {
    fn new(
        log: &'n ProblemLog<'t>,
        table: &'n DeTable<'t>,
        span: Range<usize>,
        place: String,
    ) -> Self {
        Self {
            log,
            table,
            span,
            place,
            known: Vec::new(),
        }
    }

    /// Sets the name of the table in messages, once it is known.
    pub fn set_place(&mut self, place: String) {
        self.place = place;
    }

    /// Returns the line in which the table begins, counted from 1.
    pub fn line(&self) -> usize {
        self.log.position(self.span.start).0
    }

    /// Reads a required field. Returns `None` after recording a problem.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'n Value<'t>) -> Result<T, Message>,
    ) -> Option<T> {
        if self.table.get(name).is_some() {
            return self.optional(name, read);
        }
        self.known.push(name);
        self.missing(name, &expected_by(read));
        None
    }

    /// Records that a field is missing, if it is.
    pub fn missing(&self, name: &str, expected: &str) {
        if self.table.get(name).is_none() && !self.log.is_broken() {
            self.report(format!("{name} is missing: expected {expected}"));
        }
    }

    /// Reads an optional field. Returns `None` if it is missing, or after recording a problem.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'n Value<'t>) -> Result<T, Message>,
    ) -> Option<T> {
        let value = self.get(name)?;
        match read(value.get_ref()) {
            Ok(read) => Some(read),
            Err(message) => {
                self.log
                    .record(&value.span(), &self.place_of(name), message);
                None
            }
        }
    }

    /// Reads an optional array. Values with a problem are recorded and left out.
    pub fn list<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&'n Value<'t>) -> Result<T, Message>,
    ) -> Vec<T> {
        let Some(values) = self.optional(name, super::array) else {
            return Vec::new();
        };
        let place = self.place_of(name);
        let read = values.iter().filter_map(|value| {
            let report = |message| self.log.record(&value.span(), &place, message);
            read(value.get_ref()).map_err(report).ok()
        });
        read.collect()
    }

    /// Reads an optional table.
    pub fn table(&mut self, name: &'static str) -> Option<Fields<'n, 't>> {
        let value = self.get(name)?;
        self.as_table(value, self.place_of(name))
    }

    /// Reads an optional array of tables.
    pub fn tables(&mut self, name: &'static str) -> Vec<Fields<'n, 't>> {
        let Some(value) = self.get(name) else {
            return Vec::new();
        };
        let Some(entries) = value.get_ref().as_array() else {
            // Its first header may be one that could not be parsed.
            if self.log.is_broken() {
                return Vec::new();
            }
            let expected = format!("entries that begin with [[{name}]]");
            let message = wrong_type(value.get_ref(), &expected);
            self.log
                .record(&value.span(), &self.place_of(name), message);
            return Vec::new();
        };
        if entries.is_empty() {
            self.report_field(
                name,
                format!("it is empty: expected at least one [[{name}]]"),
            );
        }
        let numbered = entries.iter().zip(1..);
        numbered
            .filter_map(|(entry, number)| self.as_table(entry, format!("{name} {number}")))
            .collect()
    }

    /// Reads all fields of a table whose keys are data.
    pub fn keyed<T>(&self, read: impl Fn(&str, &'n Value<'t>) -> Result<T, Message>) -> Vec<T> {
        let read = self.table.iter().filter_map(|(key, value)| {
            let name = key.get_ref().as_ref();
            let place = self.place_of(&excerpt(name));
            let report = |message| self.log.record(&key.span(), &place, message);
            read(name, value.get_ref()).map_err(report).ok()
        });
        read.collect()
    }

    /// Reads all fields of a table whose keys are data and whose values are tables.
    pub fn keyed_tables(&self) -> Vec<(&'n Spanned<Cow<'t, str>>, Fields<'n, 't>)> {
        let tables = self.table.iter().filter_map(|(key, value)| {
            let place = self.place_of(&excerpt(key.get_ref()));
            Some((key, self.as_table(value, place)?))
        });
        tables.collect()
    }

    /// Records a problem of the table as a whole.
    pub fn report(&self, what: impl Into<String>) {
        self.log.record(&self.span, &self.place, what);
    }

    /// Records a problem of a field.
    pub fn report_field(&self, name: &str, what: impl Into<String>) {
        let found = self.table.get(name);
        let span = found.map_or_else(|| self.span.clone(), Spanned::span);
        self.log.record(&span, &self.place_of(name), what);
    }

    /// Records the fields that were not read as unknown.
    pub fn finish(self) {
        // The fields below a header that could not be parsed seem to belong to the file itself.
        if self.place.is_empty() && self.log.is_broken() {
            return;
        }
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !self.known.contains(&name) {
                let hint = suggestion(name, &self.known);
                let what = format!(
                    "{:?} is unknown: expected {}{hint}",
                    excerpt(name),
                    self.known.join(", ")
                );
                self.log.record(&key.span(), &self.place, what);
            }
        }
    }

    fn get(&mut self, name: &'static str) -> Option<&'n Spanned<Value<'t>>> {
        self.known.push(name);
        self.table.get(name)
    }

    fn as_table(&self, value: &'n Spanned<Value<'t>>, place: String) -> Option<Fields<'n, 't>> {
        if let Some(table) = value.get_ref().as_table() {
            return Some(Fields::new(self.log, table, value.span(), place));
        }
        let message = wrong_type(value.get_ref(), "a table");
        self.log.record(&value.span(), &place, message);
        None
    }

    /// Returns the name of a field in messages: `disk of flavor small`.
    fn place_of(&self, name: &str) -> String {
        if self.place.is_empty() {
            name.to_owned()
        } else {
            format!("{name} of {}", self.place)
        }
    }
}
