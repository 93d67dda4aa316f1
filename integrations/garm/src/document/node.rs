//! The values of a document, with their positions.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::Mistake;

/// Line and column, both counted from 1.
pub(super) type Position = Option<(usize, usize)>;

/// A value and where it is.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: Position,
    pub(super) kind: Kind,
}

/// A value.
#[derive(Debug)]
pub(super) enum Kind {
    Null,
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Field>),
    /// One that JSON does not have: a date, or a number that is too large.
    Other(&'static str),
}

/// A field of a table.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) at: Position,
    pub(super) value: Node,
}

impl Node {
    /// Returns the value without its positions.
    pub(super) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.kind {
            Kind::Null | Kind::Other(_) => Value::Null,
            Kind::Boolean(value) => Value::from(*value),
            Kind::Integer(value) => Value::from(*value),
            Kind::Number(value) => Value::from(*value),
            Kind::Text(value) => Value::from(value.as_str()),
            Kind::List(values) => values.iter().map(Self::to_json).collect(),
            Kind::Table(fields) => {
                let pair = |field: &Field| (field.name.clone(), field.value.to_json());
                Value::Object(fields.iter().map(pair).collect())
            }
        }
    }

    /// Returns the type for messages.
    pub(super) const fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Boolean(_) => "a boolean",
            Kind::Integer(_) => "a whole number",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "an array",
            Kind::Table(_) => "a table",
            Kind::Other(name) => name,
        }
    }

    /// Returns where the value at a path is, or the closest one above it.
    pub(super) fn position_of(&self, path: &[&str]) -> Position {
        let Some((first, rest)) = path.split_first() else {
            return self.at;
        };
        match &self.kind {
            Kind::Table(fields) => {
                let field = fields.iter().find(|field| field.name == *first);
                field.map_or(self.at, |field| field.value.position_of(rest).or(field.at))
            }
            Kind::List(values) => {
                let index: Option<usize> = first.parse().ok();
                let value = index.and_then(|index| values.get(index));
                value.map_or(self.at, |value| value.position_of(rest))
            }
            Kind::Null
            | Kind::Boolean(_)
            | Kind::Integer(_)
            | Kind::Number(_)
            | Kind::Text(_)
            | Kind::Other(_) => self.at,
        }
    }
}

/// Converts JSON, which has no positions here.
pub(super) fn from_json(value: &serde_json::Value) -> Node {
    use serde_json::Value;
    let kind = match value {
        Value::Null => Kind::Null,
        Value::Bool(value) => Kind::Boolean(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Kind::Integer(integer),
            (None, Some(float)) => Kind::Number(float),
            (None, None) => Kind::Other("a number that is too large"),
        },
        Value::String(text) => Kind::Text(text.clone()),
        Value::Array(values) => Kind::List(values.iter().map(from_json).collect()),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| Field {
                name: name.clone(),
                at: None,
                value: from_json(value),
            };
            Kind::Table(fields.iter().map(field).collect())
        }
    };
    Node { at: None, kind }
}

/// Parses TOML. Returns what could be read, and the mistakes of the syntax.
pub(super) fn from_toml(text: &str) -> (Node, Vec<Mistake>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let lines = Lines::new(text);
    let mistakes = errors.iter().map(|error| Mistake {
        position: lines.position(error.span().map_or(0, |span| span.start)),
        place: String::new(),
        what: error.message().replace('\n', ", "),
    });
    let mistakes = mistakes.collect();
    let kind = lines.table(table.get_ref());
    let at = Some((1, 1));
    (Node { at, kind }, mistakes)
}

/// The lines of a text.
struct Lines<'t> {
    text: &'t str,
    begins: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let begins = std::iter::once(0).chain(ends.map(|(place, _)| place + 1));
        Self {
            text,
            begins: begins.collect(),
        }
    }

    fn position(&self, byte: usize) -> Position {
        let line = self.begins.partition_point(|begins| *begins <= byte);
        let begins = self.begins.get(line.saturating_sub(1)).copied();
        let before = self.text.get(begins.unwrap_or_default()..byte);
        Some((line, before.unwrap_or_default().chars().count() + 1))
    }

    fn table(&self, table: &DeTable<'_>) -> Kind {
        let fields = table.iter().map(|(name, value)| Field {
            name: name.get_ref().to_string(),
            at: self.position(name.span().start),
            value: self.value(value),
        });
        Kind::Table(fields.collect())
    }

    fn value(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let kind = match value.get_ref() {
            DeValue::String(text) => Kind::Text(text.to_string()),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                parsed.map_or(Kind::Other("a number that is too large"), Kind::Integer)
            }
            DeValue::Float(number) => {
                let parsed = number
                    .as_str()
                    .parse()
                    .ok()
                    .filter(|it: &f64| it.is_finite());
                parsed.map_or(Kind::Other("an infinite number"), Kind::Number)
            }
            DeValue::Boolean(value) => Kind::Boolean(*value),
            DeValue::Datetime(_) => Kind::Other("a date"),
            DeValue::Array(values) => Kind::List(values.iter().map(|it| self.value(it)).collect()),
            DeValue::Table(table) => self.table(table),
        };
        Node {
            at: self.position(value.span().start),
            kind,
        }
    }
}
