//! Tables that fit the terminal: one line for each row. What does not fit is cut off, but never an id.

use comfy_table::{
    Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Row, presets::NOTHING,
};

use crate::output::printable;

/// What a text in a table says about its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Busy,
    Bad,
}

/// A text in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    text: String,
    tone: Tone,
}

impl Text {
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// A table. The first column is never cut off: it is what other commands take.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Text>>,
    shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// One line for each row, with a header.
    List,
    /// Names with values, which may have several lines.
    Fields,
}

impl Table {
    pub(crate) fn list(header: impl Into<Vec<&'static str>>) -> Self {
        Self {
            header: header.into(),
            rows: Vec::new(),
            shape: Shape::List,
        }
    }

    /// The fields of one record.
    pub(crate) fn fields() -> Self {
        Self {
            header: Vec::new(),
            rows: Vec::new(),
            shape: Shape::Fields,
        }
    }

    pub(crate) fn row(mut self, row: impl IntoIterator<Item = Text>) -> Self {
        self.rows.push(row.into_iter().collect());
        self
    }

    pub(crate) fn rows(mut self, rows: impl IntoIterator<Item = Vec<Text>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Adds a field.
    pub(crate) fn field(self, name: &str, value: impl Into<Text>) -> Self {
        self.row([name.into(), value.into()])
    }

    /// Adds a field, if it has a value.
    pub(crate) fn some(self, name: &str, value: Option<impl Into<Text>>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// The text, as wide as the terminal. Without a terminal nothing is cut off.
    pub(crate) fn render(&self, has_color: bool) -> String {
        let width = comfy_table::Table::new().width();
        self.render_within(width, has_color)
    }

    fn render_within(&self, width: Option<u16>, has_color: bool) -> String {
        if self.shape == Shape::List && self.rows.is_empty() {
            return "none\n".to_owned();
        }
        let mut table = comfy_table::Table::new();
        table.load_preset(NOTHING).set_truncation_indicator("…");
        if has_color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        match width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        if !self.header.is_empty() {
            table.set_header(self.header.clone());
        }
        for row in &self.rows {
            let mut shown: Row = row.iter().map(cell).collect::<Vec<_>>().into();
            if self.shape == Shape::List {
                shown.max_height(1);
            }
            table.add_row(shown);
        }
        for (number, column) in table.column_iter_mut().enumerate() {
            // Columns are two spaces apart, without one before the first.
            column
                .set_padding((0, 2))
                .set_cell_alignment(CellAlignment::Left);
            if number == 0 {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned());
        lines.fold(String::new(), |text, line| text + &line + "\n")
    }
}

fn cell(text: &Text) -> Cell {
    let shown = Cell::new(printable(&text.text));
    match text.tone {
        Tone::Plain => shown,
        Tone::Good => shown.fg(Color::Green),
        Tone::Busy => shown.fg(Color::Yellow),
        Tone::Bad => shown.fg(Color::Red),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0198c0de-0000-7000-8000-000000000001";

    fn table() -> Table {
        Table::list(["ID", "NAME", "CONDITION"]).rows([
            vec![ID.into(), "web-1".into(), Text::toned("there is no capacity in the zone: choose another flavor, or wait until there is", Tone::Bad)],
            vec![ID.into(), "a-name-that-is-longer-than-the-terminal-is-wide-enough-for".into(), "".into()],
        ])
    }

    #[test]
    fn a_row_is_one_line_that_fits_and_has_the_whole_id() {
        for width in [60, 80, 120, 300] {
            let text = table().render_within(Some(width), false);
            assert_eq!(text.lines().count(), 3, "{text}");
            for line in text.lines() {
                assert!(
                    line.chars().count() <= usize::from(width),
                    "{width}: {line}"
                );
            }
            assert!(
                text.lines().skip(1).all(|line| line.starts_with(ID)),
                "{text}"
            );
        }
        assert!(table().render_within(Some(80), false).contains('…'));
    }

    #[test]
    fn without_a_terminal_nothing_is_cut_off_or_coloured() {
        let text = table().render_within(None, false);
        assert!(
            text.contains("or wait until there is") && !text.contains(['…', '\u{1b}']),
            "{text}"
        );
        assert!(table().render_within(None, true).contains("\u{1b}["));
    }

    #[test]
    fn a_list_without_rows_says_so() {
        assert_eq!(Table::list(["ID"]).render_within(Some(80), true), "none\n");
    }
}
