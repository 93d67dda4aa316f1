//! The members of documents, as Azure's models have them, and what the emulator does with each.
//!
//! A member that the models know is never called unknown: it is kept, dropped because only Azure
//! writes it, or, if it is not emulated, accepted at its default and otherwise refused by name.

use serde_json::{Map, Value};

use crate::azure::error::Refusal;

/// A member of an object: its name, and what happens to it.
#[derive(Debug)]
pub(crate) struct Member(pub(super) &'static str, pub(super) Treatment);

/// What happens to a member.
#[derive(Debug)]
pub(crate) enum Treatment {
    /// It is kept as it is.
    Kept,
    /// Only the cloud writes it: it is dropped.
    ReadOnly,
    /// Not emulated. It is dropped if it is empty, false, zero or one of these texts, and refused
    /// with 400 `NotSupported` otherwise.
    NotEmulated(&'static [&'static str]),
    /// An object with these members.
    Object(&'static [Member]),
    /// A list of objects with these members.
    List(&'static [Member]),
}

/// What happens to a member that a table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// It is kept: the parser of the document decides.
    Kept,
    /// It is refused with 400 `BadRequest`.
    Refused,
}

/// Applies a table to a document. `path` is the path of the document, for errors.
///
/// # Errors
///
/// 400 `NotSupported` for a member that is not emulated, 400 `BadRequest` for an unknown one.
pub(super) fn apply(
    value: &mut Value,
    members: &'static [Member],
    others: Others,
    path: &str,
) -> Result<(), Refusal> {
    let Value::Object(document) = value else {
        return match others {
            Others::Kept => Ok(()),
            Others::Refused => Err(Refusal::client(
                "BadRequest",
                format!("'{path}' is not an object"),
            )),
        };
    };
    let names: Vec<String> = document.keys().cloned().collect();
    for name in names {
        let Some(Member(_, treatment)) = members.iter().find(|Member(known, _)| *known == name)
        else {
            match others {
                Others::Kept => continue,
                Others::Refused => return Err(unknown(&name, members, path)),
            }
        };
        treat(document, &name, treatment, others, &join(path, &name))?;
    }
    Ok(())
}

/// Applies its treatment to one member of an object.
fn treat(
    document: &mut Map<String, Value>,
    name: &str,
    treatment: &'static Treatment,
    others: Others,
    path: &str,
) -> Result<(), Refusal> {
    match treatment {
        Treatment::Kept => {}
        Treatment::ReadOnly => drop(document.remove(name)),
        Treatment::NotEmulated(defaults) => {
            let value = document.remove(name).unwrap_or(Value::Null);
            if !is_default(&value, defaults) {
                return Err(Refusal::unsupported(path));
            }
        }
        Treatment::Object(members) => {
            if let Some(value) = document.get_mut(name) {
                apply(value, members, others, path)?;
            }
        }
        Treatment::List(members) => match document.get_mut(name) {
            Some(Value::Array(items)) => {
                for (place, item) in items.iter_mut().enumerate() {
                    apply(item, members, others, &format!("{path}[{place}]"))?;
                }
            }
            Some(_) if others == Others::Refused => {
                return Err(Refusal::client(
                    "BadRequest",
                    format!("'{path}' is not a list"),
                ));
            }
            Some(_) | None => {}
        },
    }
    Ok(())
}

/// Whether a value requests nothing: it is empty, or what Azure would choose itself.
fn is_default(value: &Value, defaults: &[&str]) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => defaults.contains(&"true"),
        Value::Number(number) => {
            number.as_f64() == Some(0.0) || defaults.contains(&&*number.to_string())
        }
        Value::String(text) => {
            text.is_empty()
                || defaults
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(text))
        }
        Value::Array(items) => items.iter().all(|item| is_default(item, defaults)),
        Value::Object(members) => members.values().all(|member| is_default(member, defaults)),
    }
}

/// Returns 400 `BadRequest`, in the words of the parser of the other documents.
fn unknown(name: &str, members: &[Member], path: &str) -> Refusal {
    let known: Vec<_> = members
        .iter()
        .map(|Member(known, _)| format!("`{known}`"))
        .collect();
    let message = format!(
        "unknown field `{}`, expected one of {}",
        join(path, name),
        known.join(", ")
    );
    Refusal::client("BadRequest", message)
}

/// Returns the path of a member.
fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Returns the JSON pointers of the members that are not emulated.
#[cfg(test)]
pub(crate) fn not_emulated(members: &[Member]) -> Vec<String> {
    let mut found = Vec::new();
    for Member(name, treatment) in members {
        let (inner, start) = match treatment {
            Treatment::Kept | Treatment::ReadOnly => continue,
            Treatment::NotEmulated(_) => {
                found.push(format!("/{name}"));
                continue;
            }
            Treatment::Object(inner) => (inner, format!("/{name}")),
            Treatment::List(inner) => (inner, format!("/{name}/0")),
        };
        found.extend(
            not_emulated(inner)
                .into_iter()
                .map(|rest| format!("{start}{rest}")),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: &[Member] = &[
        Member("kept", Treatment::Kept),
        Member("state", Treatment::ReadOnly),
        Member("mode", Treatment::NotEmulated(&["Basic"])),
        Member(
            "items",
            Treatment::List(&[Member("other", Treatment::NotEmulated(&[]))]),
        ),
    ];

    fn applied(mut document: Value) -> Result<Value, Refusal> {
        apply(&mut document, TABLE, Others::Refused, "")?;
        Ok(document)
    }

    #[test]
    fn defaults_are_dropped_and_the_rest_is_refused_by_name() {
        let document =
            json!({ "kept": 1, "state": "x", "mode": "basic", "items": [{ "other": {} }] });
        assert_eq!(applied(document), Ok(json!({ "kept": 1, "items": [{}] })));
        let refusal = applied(json!({ "items": [{}, { "other": [{ "a": 1 }] }] })).unwrap_err();
        assert_eq!(&*refusal.code, "NotSupported");
        assert_eq!(refusal.target.as_deref(), Some("items[1].other"));
        let refusal = applied(json!({ "colour": "red" })).unwrap_err();
        assert_eq!(&*refusal.code, "BadRequest");
        assert!(refusal.message.contains("`colour`"));
        assert_eq!(&*applied(json!([])).unwrap_err().code, "BadRequest");
    }
}
