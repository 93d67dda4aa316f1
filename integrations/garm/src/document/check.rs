//! Checks a document against the schema of a type, and reports everything that does not fit.
//!
//! Owns the part of JSON Schema that schemars writes for the types of this crate: references, nullable fields, names of enums, objects with
//! known fields or with data as keys, arrays, and ranges of numbers.

use serde_json::{Map, Value};

use super::{
    Mistake,
    node::{Field, Kind, Node, Position},
};

/// Reports every value of `node` that `schema` does not allow.
pub(super) fn against(schema: &Value, node: &Node, mistakes: &mut Vec<Mistake>) {
    let definitions = schema.get("$defs").and_then(Value::as_object);
    let mut check = Check {
        definitions,
        mistakes,
    };
    check.value(schema, node, node.at, "");
}

struct Check<'s, 'm> {
    definitions: Option<&'s Map<String, Value>>,
    mistakes: &'m mut Vec<Mistake>,
}

impl<'s> Check<'s, '_> {
    fn report(&mut self, position: Position, place: &str, what: impl Into<String>) {
        self.mistakes.push(Mistake {
            position,
            place: place.to_owned(),
            what: what.into(),
        });
    }

    /// Returns the schema behind a reference, and that of a nullable field without the null.
    fn resolve(&self, schema: &'s Value) -> &'s Value {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.rsplit('/').next().unwrap_or_default();
            let found = self.definitions.and_then(|all| all.get(name));
            return found.map_or(schema, |found| self.resolve(found));
        }
        let choices = schema.get("anyOf").and_then(Value::as_array);
        let is_null = |choice: &Value| choice.get("type") == Some(&Value::from("null"));
        let other = choices.and_then(|all| all.iter().find(|choice| !is_null(choice)));
        other.map_or(schema, |other| self.resolve(other))
    }

    fn value(&mut self, schema: &'s Value, node: &Node, at: Position, place: &str) {
        let schema = self.resolve(schema);
        if let Some(names) = names(schema) {
            return self.name(&names, node, place);
        }
        match (expected_type(schema), &node.kind) {
            // A field of JSON that is null is one that is absent.
            (_, Kind::Null) if node.at.is_none() => {}
            ("object", Kind::Table(fields)) => self.table(schema, fields, at, place),
            ("array", Kind::List(values)) => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                for (index, value) in values.iter().enumerate() {
                    self.value(items, value, value.at, &format!("{place}[{index}]"));
                }
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
                if (values.len() as u64) < least {
                    self.report(node.at, place, format!("expected at least {least}"));
                }
            }
            ("string", Kind::Text(text)) => {
                let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
                if (text.trim().chars().count() as u64) < least {
                    self.report(
                        node.at,
                        place,
                        "is empty; give a value or leave the field out",
                    );
                }
            }
            ("boolean", Kind::Boolean(_)) | ("any", _) => {}
            ("integer", Kind::Integer(number)) => self.range(schema, *number as f64, node, place),
            ("number", Kind::Integer(number)) => self.range(schema, *number as f64, node, place),
            ("number", Kind::Number(number)) => self.range(schema, *number, node, place),
            (expected, _) => {
                let expected = type_words(expected);
                let what = format!("found {}: expected {expected}", node.type_name());
                self.report(node.at, place, what);
            }
        }
    }

    fn name(&mut self, names: &[&str], node: &Node, place: &str) {
        let expected = format!("one of {}", names.join(", "));
        match &node.kind {
            Kind::Null if node.at.is_none() => {}
            Kind::Text(text) if names.contains(&text.as_str()) => {}
            Kind::Text(text) => {
                let hint = suggestion(text, names);
                let what = format!("{:?} is unknown: expected {expected}{hint}", excerpt(text));
                self.report(node.at, place, what);
            }
            Kind::Null
            | Kind::Boolean(_)
            | Kind::Integer(_)
            | Kind::Number(_)
            | Kind::List(_)
            | Kind::Table(_)
            | Kind::Other(_) => {
                let what = format!("found {}: expected {expected}", node.type_name());
                self.report(node.at, place, what);
            }
        }
    }

    fn range(&mut self, schema: &Value, number: f64, node: &Node, place: &str) {
        let bound = |name| schema.get(name).and_then(Value::as_f64);
        let (least, most) = (bound("minimum"), bound("maximum"));
        if least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most) {
            let least = least.map_or_else(|| "any".to_owned(), |least| least.to_string());
            let most = most.map_or_else(|| "any".to_owned(), |most| most.to_string());
            let what = format!("{number} is out of range: expected {least} to {most}");
            self.report(node.at, place, what);
        }
    }

    fn table(&mut self, schema: &'s Value, fields: &[Field], at: Position, place: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        for field in fields {
            let place = join(place, &field.name);
            match properties.and_then(|all| all.get(&field.name)) {
                Some(schema) => self.value(schema, &field.value, field.at, &place),
                None => match others {
                    Some(schema @ Value::Object(_)) => {
                        self.value(schema, &field.value, field.at, &place);
                    }
                    Some(Value::Bool(false)) => {
                        let known: Vec<_> = properties.into_iter().flat_map(Map::keys).collect();
                        let known: Vec<_> = known.iter().map(|name| name.as_str()).collect();
                        let hint = suggestion(&field.name, &known);
                        let known = known.join(", ");
                        let what = format!("is unknown: expected one of {known}{hint}");
                        self.report(field.at, &place, what);
                    }
                    _ => {}
                },
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !fields.iter().any(|field| field.name == name) {
                let schema = properties.and_then(|all| all.get(name));
                let schema = schema.map_or(&Value::Null, |schema| self.resolve(schema));
                let expected = type_words(expected_type(schema));
                self.report(
                    at,
                    &join(place, name),
                    format!("is missing: expected {expected}"),
                );
            }
        }
    }
}

/// Returns the names that an enum has, or `None` if the schema is not that of an enum.
fn names(schema: &Value) -> Option<Vec<&str>> {
    if let Some(all) = schema.get("enum").and_then(Value::as_array) {
        return Some(all.iter().filter_map(Value::as_str).collect());
    }
    let choices = schema.get("oneOf")?.as_array()?;
    let name = |choice: &'_ Value| choice.get("const").and_then(Value::as_str).map(str::len);
    choices
        .iter()
        .all(|choice| name(choice).is_some())
        .then(|| {
            let constants = choices.iter().filter_map(|choice| choice.get("const"));
            constants.filter_map(Value::as_str).collect()
        })
}

/// Returns the type of a schema, without the null of a nullable one.
fn expected_type(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(all)) => {
            let mut names = all.iter().filter_map(Value::as_str);
            names.find(|name| *name != "null").unwrap_or("any")
        }
        _ => "any",
    }
}

fn type_words(name: &str) -> &str {
    match name {
        "object" => "a table",
        "array" => "an array, as in [\"...\", \"...\"]",
        "string" => "a string in quotes",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        _ => "a value",
    }
}

fn join(place: &str, name: &str) -> String {
    if place.is_empty() {
        excerpt(name)
    } else {
        format!("{place}.{}", excerpt(name))
    }
}

/// Returns the first 60 characters.
fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Returns "; did you mean x?" if one of the names is similar, and an empty string otherwise.
fn suggestion(text: &str, names: &[&str]) -> String {
    if text.len() > 100 {
        return String::new();
    }
    let lower = text.to_lowercase().replace('-', "_");
    let distance = |name: &&str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let closest = names.iter().copied().min_by_key(distance);
    closest
        .filter(|name| distance(name) <= 1 + name.chars().count() / 4)
        .map_or_else(String::new, |name| format!("; did you mean {name}?"))
}
