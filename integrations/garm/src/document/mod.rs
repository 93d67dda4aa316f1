//! Reads a document that people wrote, and reports all of its mistakes at once.
//!
//! The schema of a type is both what `GetConfigJSONSchema` prints and what a document is checked against, so the two never differ. A
//! document in TOML has positions, and the settings of a pool, in JSON, have only paths.

mod check;
mod node;

use std::fmt;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;

use node::Node;

/// How many mistakes are shown. A file in another format has one in every line.
const MAX_SHOWN: usize = 50;

/// A document that was read, and where its values are.
#[derive(Debug)]
pub(crate) struct Document {
    root: Node,
    mistakes: Vec<Mistake>,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mistake {
    /// Line and column, both counted from 1. `None` in a document without lines.
    pub(crate) position: Option<(usize, usize)>,
    /// The field, such as `ec2.region`. Empty for a mistake of the syntax.
    pub(crate) place: String,
    /// What is wrong, and what is expected.
    pub(crate) what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.what)
    }
}

/// All mistakes of a document, at least one, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistakes(Vec<Mistake>);

#[cfg(test)]
impl Mistakes {
    /// Returns the mistakes.
    pub(crate) fn list(&self) -> &[Mistake] {
        &self.0
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "{count} mistake{plural}")?;
        for mistake in self.0.iter().take(MAX_SHOWN) {
            write!(f, "\n  {mistake}")?;
        }
        match count.saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl Document {
    /// Reads TOML.
    pub(crate) fn toml(text: &str) -> Self {
        let (root, mistakes) = node::from_toml(text);
        Self { root, mistakes }
    }

    /// Takes a value of JSON. Null counts as an empty object.
    pub(crate) fn json(value: &serde_json::Value) -> Self {
        let empty = serde_json::Value::Object(serde_json::Map::new());
        let value = if value.is_null() { &empty } else { value };
        Self {
            root: node::from_json(value),
            mistakes: Vec::new(),
        }
    }

    /// Reads the document as `T`, which then checks what a schema cannot say: it reports each mistake with its path.
    ///
    /// # Errors
    /// All mistakes: of the syntax, of the schema, and those that `check` reports.
    pub(crate) fn read<T: JsonSchema + DeserializeOwned>(
        mut self,
        check: impl FnOnce(&T, &mut dyn FnMut(&[&str], String)),
    ) -> Result<T, Mistakes> {
        // A line that is not TOML makes others seem unknown or missing.
        if self.mistakes.is_empty() {
            check::against(&schema::<T>(), &self.root, &mut self.mistakes);
        }
        let value = match serde_json::from_value::<T>(self.root.to_json()) {
            Ok(value) if self.mistakes.is_empty() => {
                let (root, mistakes) = (&self.root, &mut self.mistakes);
                check(&value, &mut |path, what| {
                    mistakes.push(Mistake {
                        position: root.position_of(path),
                        place: path.join("."),
                        what,
                    });
                });
                Some(value)
            }
            Ok(_) => None,
            Err(error) => {
                if self.mistakes.is_empty() {
                    self.mistakes.push(Mistake {
                        position: None,
                        place: String::new(),
                        what: error.to_string(),
                    });
                }
                None
            }
        };
        self.mistakes.sort();
        self.mistakes.dedup();
        match value {
            Some(value) if self.mistakes.is_empty() => Ok(value),
            _ => Err(Mistakes(self.mistakes)),
        }
    }
}

/// Returns the JSON schema of a type, in the draft that GARM's web interface reads.
pub(crate) fn schema<T: JsonSchema>() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

#[cfg(test)]
mod tests;
