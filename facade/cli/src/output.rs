//! What is printed: tables for people, JSON for programs. Text of others cannot control the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde::Serialize;

use crate::{failure::Failure, table::Table};

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people.
    Table,
    /// The values of the service as JSON. A list is an array.
    Json,
}

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

/// Where and how results are printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) has_color: bool,
}

impl Output {
    pub(crate) fn new(format: Format, color: Color) -> Self {
        // https://no-color.org: set and not empty.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let has_color = match color {
            Color::Auto => !refused && io::stdout().is_terminal(),
            Color::Always => true,
            Color::Never => false,
        };
        Self { format, has_color }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Prints a value, or the table that shows it.
    pub(crate) fn show<T: Serialize + ?Sized>(
        &self,
        value: &T,
        table: impl FnOnce(&T) -> Table,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Json => self.json(value),
            Format::Table => self.text(&table(value).render(self.has_color)),
        }
    }

    /// Prints what was done, for people. A program has the exit code.
    pub(crate) fn done(&self, text: &str) -> Result<(), Failure> {
        match self.format {
            Format::Json => Ok(()),
            Format::Table => self.text(&format!("{}\n", printable(text))),
        }
    }

    /// Prints a value as indented JSON.
    pub(crate) fn json<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value);
        let text = text.map_err(|error| Failure::other(error.to_string()))?;
        self.text(&format!("{}\n", escaped(&text)))
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn json_line<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), Failure> {
        let text = serde_json::to_string(value);
        let text = text.map_err(|error| Failure::other(error.to_string()))?;
        self.text(&format!("{}\n", escaped(&text)))
    }

    /// Prints text as it is.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// Prints what a machine wrote: as it is into a file or a pipe, without control characters on a terminal.
    pub(crate) fn foreign(&self, text: &str) -> Result<(), Failure> {
        if io::stdout().is_terminal() {
            return self.text(&printable(text));
        }
        self.text(text)
    }
}

/// Text without characters that control a terminal, or the order in which it shows others.
pub(crate) fn printable(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => character,
        _ if controls(character) => '\u{fffd}',
        _ => character,
    };
    text.chars().map(shown).collect()
}

/// The same JSON without such characters: they are escaped. JSON itself demands that only for those below U+0020.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        // Between values there are only line feeds and spaces, so that all others are in a string.
        if character != '\n' && controls(character) {
            text.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            text.push(character);
        }
    }
    text
}

/// Whether a terminal obeys a character: control characters, of which U+009B begins a sequence as ESC [ does, and characters that reverse
/// the text after them.
fn controls(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_control_the_terminal() {
        assert_eq!(
            printable("a\u{1b}[31mb\r\n\u{9b}c"),
            "a\u{fffd}[31mb\u{fffd}\n\u{fffd}c"
        );
        assert_eq!(
            printable("txt.\u{202e}exe\u{2066}é\u{200f}ש\t"),
            "txt.\u{fffd}exe\u{fffd}é\u{200f}ש\t"
        );
    }

    #[test]
    fn json_cannot_control_the_terminal_and_is_the_same_json() {
        let value: Vec<String> = (0..=0x2fff)
            .filter_map(char::from_u32)
            .map(|character| format!("a{character}\\b"))
            .collect();
        for json in [
            serde_json::to_string(&value),
            serde_json::to_string_pretty(&value),
        ] {
            let text = escaped(&json.unwrap_or_default());
            let shown = |character: char| character == '\n' || !controls(character);
            assert!(text.chars().all(shown));
            let read: Vec<String> = serde_json::from_str(&text).unwrap_or_default();
            assert_eq!(read, value);
        }
        assert_eq!(
            escaped("{\n  \"a\": \"\u{9b}31m\u{7f}\u{202e}é\"\n}"),
            "{\n  \"a\": \"\\u009b31m\\u007f\\u202eé\"\n}"
        );
    }
}
