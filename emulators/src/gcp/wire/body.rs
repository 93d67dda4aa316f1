//! Parses bodies: JSON that matches a schema, or the front end's refusal.
//!
//! After [`read`] a body has only fields that its schema knows, of the right types: no nulls, no
//! output fields, 64-bit numbers as text. A known field that is not emulated is refused, never
//! dropped.

use serde_json::{Map, Value};

use crate::gcp::error::Refusal;

/// A field of a body: its name and the type of its value.
#[derive(Debug)]
pub(crate) struct Field(pub(crate) &'static str, pub(crate) Kind);

/// The type of a field's value.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A text. An empty one counts as missing.
    Text,
    /// One of these texts, of an enum.
    Choice(&'static [&'static str]),
    /// A boolean.
    Flag,
    /// A 32-bit number, as text or as a number.
    Int,
    /// A 64-bit number, as text or as a number.
    Long,
    /// An object whose values are texts, such as labels.
    Texts,
    /// A list whose elements have this type.
    Many(&'static Kind),
    /// An object whose values are objects with these fields.
    Each(&'static [Field]),
    /// An object with these fields.
    Object(&'static [Field]),
    /// An output field: accepted and dropped, as Compute Engine does.
    Output,
    /// A field that the emulator does not support: refused, unless it is empty.
    NotEmulated,
}

/// Parses a body that is an object with these fields.
///
/// # Errors
///
/// 400 `required` for an empty body, 400 `badRequest` for anything that is not JSON, an unknown
/// field or a wrong type, and 400 `notSupported` for a field that is not emulated.
pub(crate) fn read(bytes: &[u8], fields: &[Field]) -> Result<Map<String, Value>, Refusal> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::required("resource"));
    }
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Refusal::payload(format!("Invalid JSON payload received. {error}")))?;
    object(value, fields, "resource")
}

/// Checks and converts an object. `at` is its path, for errors.
///
/// Nulls and output fields are dropped.
fn object(value: Value, fields: &[Field], at: &str) -> Result<Map<String, Value>, Refusal> {
    let Value::Object(given) = value else {
        return Err(mismatch(at, "an object", &value));
    };
    let mut accepted = Map::new();
    for (name, value) in given {
        let Some(Field(_, kind)) = fields.iter().find(|Field(known, _)| *known == name) else {
            return Err(Refusal::payload(format!(
                "Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot find field."
            )));
        };
        let at = format!("{at}.{name}");
        let is_dropped = match kind {
            Kind::Output => true,
            Kind::NotEmulated => is_empty(&value),
            Kind::Text
            | Kind::Choice(_)
            | Kind::Flag
            | Kind::Int
            | Kind::Long
            | Kind::Texts
            | Kind::Many(_)
            | Kind::Each(_)
            | Kind::Object(_) => value.is_null(),
        };
        if !is_dropped {
            accepted.insert(name, convert(value, kind, &at)?);
        }
    }
    Ok(accepted)
}

/// Checks a value and converts it to its canonical form: 64-bit numbers to text.
fn convert(value: Value, kind: &Kind, at: &str) -> Result<Value, Refusal> {
    match (kind, value) {
        (Kind::Text, value @ Value::String(_)) | (Kind::Flag, value @ Value::Bool(_)) => Ok(value),
        (Kind::Choice(choices), Value::String(text)) => {
            if choices.contains(&&*text) {
                return Ok(Value::String(text));
            }
            Err(mismatch(
                at,
                "one of the enum's values",
                &Value::String(text),
            ))
        }
        (Kind::Int, value) => match number(&value).and_then(|n| i32::try_from(n).ok()) {
            Some(number) => Ok(number.into()),
            None => Err(mismatch(at, "TYPE_INT32", &value)),
        },
        (Kind::Long, value) => match number(&value) {
            Some(number) => Ok(number.to_string().into()),
            None => Err(mismatch(at, "TYPE_INT64", &value)),
        },
        (Kind::Texts, Value::Object(given)) => {
            for (name, value) in &given {
                if !value.is_string() {
                    return Err(mismatch(&format!("{at}.{name}"), "TYPE_STRING", value));
                }
            }
            Ok(Value::Object(given))
        }
        (Kind::Many(kind), Value::Array(values)) => {
            let converted = values.into_iter().enumerate();
            let converted =
                converted.map(|(number, value)| convert(value, kind, &format!("{at}[{number}]")));
            converted.collect::<Result<_, _>>().map(Value::Array)
        }
        (Kind::Each(fields), Value::Object(given)) => {
            let converted = given.into_iter().map(|(name, value)| {
                let value = object(value, fields, &format!("{at}.{name}"))?;
                Ok((name, Value::Object(value)))
            });
            converted.collect::<Result<_, _>>().map(Value::Object)
        }
        (Kind::Object(fields), value) => object(value, fields, at).map(Value::Object),
        (Kind::Output, _) => Ok(Value::Null),
        (Kind::NotEmulated, _) => Err(Refusal::not_emulated(&format!("The field '{at}'"))),
        (Kind::Text | Kind::Choice(_), value) => Err(mismatch(at, "TYPE_STRING", &value)),
        (Kind::Flag, value) => Err(mismatch(at, "TYPE_BOOL", &value)),
        (Kind::Texts | Kind::Each(_), value) => Err(mismatch(at, "an object", &value)),
        (Kind::Many(_), value) => Err(mismatch(at, "a list", &value)),
    }
}

/// Returns whether a value means the same as a missing field: null, false or empty.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Returns a whole number, written as one or as text.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_i64(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the refusal of a value of a wrong type: 400 `badRequest`.
fn mismatch(at: &str, expected: &str, value: &Value) -> Refusal {
    Refusal::payload(format!("Invalid value at '{at}' ({expected}), {value}"))
}

/// Reads the fields of a body that `read` has checked.
pub(crate) trait Fields {
    /// Returns the text under a name; `None` for a missing or empty one.
    fn text(&self, name: &str) -> Option<&str>;
    /// Returns the flag under a name.
    fn flag(&self, name: &str) -> Option<bool>;
    /// Returns the 64-bit number under a name.
    fn long(&self, name: &str) -> Option<i64>;
    /// Returns the object under a name.
    fn object(&self, name: &str) -> Option<&Map<String, Value>>;
    /// Returns the objects in the list under a name; empty if it is missing.
    fn objects(&self, name: &str) -> Vec<&Map<String, Value>>;
    /// Returns the texts in the list under a name; empty if it is missing.
    fn list(&self, name: &str) -> Vec<String>;
    /// Returns the texts by key in the object under a name; empty if it is missing.
    fn texts(&self, name: &str) -> std::collections::BTreeMap<String, String>;
}

impl Fields for Map<String, Value> {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.get(name)?.as_bool()
    }

    fn long(&self, name: &str) -> Option<i64> {
        number(self.get(name)?)
    }

    fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.get(name)?.as_object()
    }

    fn objects(&self, name: &str) -> Vec<&Map<String, Value>> {
        let values = self.get(name).and_then(Value::as_array);
        let values = values.map(Vec::as_slice).unwrap_or_default();
        values.iter().filter_map(Value::as_object).collect()
    }

    fn list(&self, name: &str) -> Vec<String> {
        let values = self.get(name).and_then(Value::as_array);
        let values = values.map(Vec::as_slice).unwrap_or_default();
        let texts = values.iter().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    fn texts(&self, name: &str) -> std::collections::BTreeMap<String, String> {
        let texts = self.object(name).into_iter().flatten();
        texts
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: &[Field] = &[Field("size", Kind::Long), Field("boot", Kind::Flag)];
    const OUTER: &[Field] = &[
        Field("name", Kind::Text),
        Field("id", Kind::Output),
        Field("count", Kind::Int),
        Field("mode", Kind::Choice(&["A", "B"])),
        Field("labels", Kind::Texts),
        Field("disks", Kind::Many(&Kind::Object(INNER))),
        Field("gpu", Kind::NotEmulated),
    ];

    fn refused(text: &str) -> String {
        read(text.as_bytes(), OUTER).unwrap_err().message
    }

    #[test]
    fn irrelevant_members_are_removed_from_a_body() {
        let text = r#"{"name":"n","id":5,"gpu":{},"labels":{"a":"b"},"mode":null,"count":3,
            "disks":[{"size":7,"boot":true},{"size":"8"}]}"#;
        let body = read(text.as_bytes(), OUTER).unwrap();
        assert_eq!(body.text("name"), Some("n"));
        assert_eq!((body.get("id"), body.get("mode")), (None, None));
        let sizes: Vec<_> = body
            .objects("disks")
            .iter()
            .map(|disk| disk.long("size"))
            .collect();
        assert_eq!(sizes, [Some(7), Some(8)]);
        assert_eq!(body.texts("labels")["a"], "b");
        assert_eq!(body.long("count"), Some(3));
    }

    #[test]
    fn schema_violations_name_the_field() {
        let unknown = r#"{"disks":[{},{"sise":1}]}"#;
        assert!(refused(unknown).contains("Unknown name \"sise\" at 'resource.disks[1]'"));
        assert!(refused(r#"{"disks":[{"size":"x"}]}"#).contains("resource.disks[0].size"));
        assert!(refused(r#"{"mode":"C"}"#).contains("resource.mode"));
        assert!(refused(r#"{"gpu":{"a":1}}"#).contains("not emulated"));
        assert!(refused(r#"{"labels":{"a":1}}"#).contains("resource.labels.a"));
        for bad in [
            "",
            "  ",
            "{",
            "[]",
            "7",
            r#"{"name":7}"#,
            r#"{"disks":{}}"#,
            r#"{"count":1.5}"#,
        ] {
            assert_eq!(
                read(bad.as_bytes(), OUTER).unwrap_err().status,
                400,
                "{bad}"
            );
        }
    }
}
