//! Tables of a file, field by field: what is wrong is noted with its place, and reading goes on.

use std::{borrow::Cow, cell::RefCell, collections::BTreeSet, ops::Range};

use toml::{Spanned, de::DeTable};

use super::{
    Problem, Problems,
    value::{Value, Wrong, found_instead, nearest, shortened, wanted_by},
};

/// Reads a file whole. `read` notes what is wrong and answers what there is; the answer counts only if nothing was
/// noted.
pub(crate) fn read_document<T>(
    text: &str,
    read: impl FnOnce(&mut Fields<'_, '_>) -> T,
) -> Result<T, Problems> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let notes = Notes::new(text);
    for error in &errors {
        notes.not_toml(&error.span().unwrap_or(0..0), error.message());
    }
    let mut fields = Fields::new(&notes, table.get_ref(), 0..0, String::new());
    let answer = read(&mut fields);
    fields.finish();
    match Problems::of(notes.problems.into_inner()) {
        Some(problems) => Err(problems),
        None => Ok(answer),
    }
}

/// What was found wrong so far.
pub(crate) struct Notes<'t> {
    text: &'t str,
    /// Where the lines begin.
    lines: Vec<usize>,
    problems: RefCell<Vec<Problem>>,
    /// The lines that are no TOML. What else is found wrong with them comes of that.
    broken: RefCell<BTreeSet<usize>>,
}

impl<'t> Notes<'t> {
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

    /// The line and the column of a byte, both from 1.
    fn position(&self, byte: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|begins| *begins <= byte);
        let begins = line.checked_sub(1).and_then(|line| self.lines.get(line));
        let before = begins.and_then(|begins| self.text.get(*begins..byte));
        (line, before.unwrap_or_default().chars().count() + 1)
    }

    fn note(&self, span: &Range<usize>, place: &str, what: impl Into<String>) {
        let (line, column) = self.position(span.start);
        if !self.broken.borrow().contains(&line) {
            let problem = Problem::new(line, column, place, what);
            self.problems.borrow_mut().push(problem);
        }
    }

    fn not_toml(&self, span: &Range<usize>, what: &str) {
        self.note(span, "", what);
        self.broken.borrow_mut().insert(self.position(span.start).0);
    }

    /// Whether a field may be missing only because its line could not be read.
    fn is_broken(&self) -> bool {
        !self.broken.borrow().is_empty()
    }
}

/// A table, of which each field is asked for once; what was not asked for is unknown.
pub(crate) struct Fields<'n, 't> {
    notes: &'n Notes<'t>,
    table: &'n DeTable<'t>,
    span: Range<usize>,
    place: String,
    asked: Vec<&'static str>,
}

impl<'n, 't> Fields<'n, 't> {
    fn new(
        notes: &'n Notes<'t>,
        table: &'n DeTable<'t>,
        span: Range<usize>,
        place: String,
    ) -> Self {
        Self {
            notes,
            table,
            span,
            place,
            asked: Vec::new(),
        }
    }

    /// Says what the table is about, once that is known.
    pub(crate) fn about(&mut self, place: String) {
        self.place = place;
    }

    /// The line the table begins in.
    pub(crate) fn line(&self) -> usize {
        self.notes.position(self.span.start).0
    }

    /// A field that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'n Value<'t>) -> Result<T, Wrong>,
    ) -> Option<T> {
        if self.table.get(name).is_some() {
            return self.optional(name, read);
        }
        self.asked.push(name);
        self.missing(name, &wanted_by(read));
        None
    }

    /// Notes that a field is missing, if it is.
    pub(crate) fn missing(&self, name: &str, wanted: &str) {
        if self.table.get(name).is_none() && !self.notes.is_broken() {
            self.wrong(format!("{name} is missing: want {wanted}"));
        }
    }

    /// A field that may be missing.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'n Value<'t>) -> Result<T, Wrong>,
    ) -> Option<T> {
        let value = self.ask(name)?;
        match read(value.get_ref()) {
            Ok(read) => Some(read),
            Err(wrong) => {
                self.notes.note(&value.span(), &self.place_of(name), wrong);
                None
            }
        }
    }

    /// Any number of values in an array, each read for itself.
    pub(crate) fn each<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&'n Value<'t>) -> Result<T, Wrong>,
    ) -> Vec<T> {
        let Some(values) = self.optional(name, super::pieces) else {
            return Vec::new();
        };
        let place = self.place_of(name);
        let read = values.iter().filter_map(|value| {
            let wrong = |wrong| self.notes.note(&value.span(), &place, wrong);
            read(value.get_ref()).map_err(wrong).ok()
        });
        read.collect()
    }

    /// A field that is a table of its own, if it is there.
    pub(crate) fn table(&mut self, name: &'static str) -> Option<Fields<'n, 't>> {
        let value = self.ask(name)?;
        self.as_table(value, self.place_of(name))
    }

    /// A field that is a number of tables, if it is there.
    pub(crate) fn tables(&mut self, name: &'static str) -> Vec<Fields<'n, 't>> {
        let Some(value) = self.ask(name) else {
            return Vec::new();
        };
        let Some(entries) = value.get_ref().as_array() else {
            // Its first header may be one that could not be read.
            if self.notes.is_broken() {
                return Vec::new();
            }
            let wanted = format!("entries that begin with [[{name}]]");
            let wrong = found_instead(value.get_ref(), &wanted);
            self.notes.note(&value.span(), &self.place_of(name), wrong);
            return Vec::new();
        };
        if entries.is_empty() {
            self.wrong_field(name, format!("it is empty: want at least one [[{name}]]"));
        }
        let numbered = entries.iter().zip(1..);
        numbered
            .filter_map(|(entry, number)| self.as_table(entry, format!("{name} {number}")))
            .collect()
    }

    /// All fields under the keys that the file gives them, for tables whose keys are data.
    pub(crate) fn keyed<T>(
        &self,
        read: impl Fn(&str, &'n Value<'t>) -> Result<T, Wrong>,
    ) -> Vec<T> {
        let read = self.table.iter().filter_map(|(key, value)| {
            let name = key.get_ref().as_ref();
            let place = self.place_of(&shortened(name));
            let wrong = |wrong| self.notes.note(&key.span(), &place, wrong);
            read(name, value.get_ref()).map_err(wrong).ok()
        });
        read.collect()
    }

    /// All fields as tables, under the keys that the file gives them.
    pub(crate) fn keyed_tables(&self) -> Vec<(&'n Spanned<Cow<'t, str>>, Fields<'n, 't>)> {
        let tables = self.table.iter().filter_map(|(key, value)| {
            let place = self.place_of(&shortened(key.get_ref()));
            Some((key, self.as_table(value, place)?))
        });
        tables.collect()
    }

    /// Notes something about the table as a whole.
    pub(crate) fn wrong(&self, what: impl Into<String>) {
        self.notes.note(&self.span, &self.place, what);
    }

    /// Notes something about a field.
    pub(crate) fn wrong_field(&self, name: &str, what: impl Into<String>) {
        let found = self.table.get(name);
        let span = found.map_or_else(|| self.span.clone(), Spanned::span);
        self.notes.note(&span, &self.place_of(name), what);
    }

    /// Notes the fields that nobody asked for.
    pub(crate) fn finish(self) {
        // Below a header that could not be read, the fields of its table seem to be the file's.
        if self.place.is_empty() && self.notes.is_broken() {
            return;
        }
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !self.asked.contains(&name) {
                let hint = nearest(name, &self.asked);
                let what = format!(
                    "{:?} is not known: want {}{hint}",
                    shortened(name),
                    self.asked.join(", ")
                );
                self.notes.note(&key.span(), &self.place, what);
            }
        }
    }

    fn ask(&mut self, name: &'static str) -> Option<&'n Spanned<Value<'t>>> {
        self.asked.push(name);
        self.table.get(name)
    }

    fn as_table(&self, value: &'n Spanned<Value<'t>>, place: String) -> Option<Fields<'n, 't>> {
        if let Some(table) = value.get_ref().as_table() {
            return Some(Fields::new(self.notes, table, value.span(), place));
        }
        let wrong = found_instead(value.get_ref(), "a table");
        self.notes.note(&value.span(), &place, wrong);
        None
    }

    /// The place of a field in words.
    fn place_of(&self, name: &str) -> String {
        if self.place.is_empty() {
            name.to_owned()
        } else {
            format!("{name} of {}", self.place)
        }
    }
}
