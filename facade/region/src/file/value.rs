//! The types of values in files, and the messages for values of another type.

use std::{fmt::Display, ops::RangeInclusive, str::FromStr};

use toml::{Spanned, de::DeValue, value::Datetime};

/// A value in a file.
pub type Value<'t> = DeValue<'t>;

/// What is wrong with a value, and what is expected.
pub type Message = String;

/// The longest display text, in characters.
const MAX_TEXT: usize = 128;

/// Reads a display text: 1 to 128 characters on one line.
///
/// [`reader`](super::reader) has an example.
pub fn text(value: &Value<'_>) -> Result<String, Message> {
    let text = string(value, "a string in quotes")?;
    let fits = (1..=MAX_TEXT).contains(&text.chars().count());
    if fits && text.trim() == text && !text.chars().any(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected 1 to {MAX_TEXT} characters, without control characters and without spaces around them"
    ))
}

/// Parses a string as `T`.
///
/// [`reader`](super::reader) has an example.
pub fn parse_text<T: FromStr<Err: Display>>(
    expected: &str,
    value: &Value<'_>,
) -> Result<T, Message> {
    // A number without quotes gets the message of the type, which says what it lacks: most often its unit.
    if let Some(Err(error)) = number_text(value).map(|number| number.parse::<T>()) {
        return Err(error.to_string());
    }
    let text = string(value, expected)?;
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Reads one of several names.
///
/// [`reader`](super::reader) has an example.
pub fn one_of<T: Copy>(names: &[(&str, T)], value: &Value<'_>) -> Result<T, Message> {
    let known: Vec<_> = names.iter().map(|(name, _)| *name).collect();
    let expected = match known.as_slice() {
        [only] => format!("{only:?}"),
        [] | [_, ..] => format!("one of {}", known.join(", ")),
    };
    let text = string(value, &expected)?;
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let hint = suggestion(text, &known);
        format!("{:?} is unknown: expected {expected}{hint}", excerpt(text))
    })
}

/// Reads a whole number in a range.
///
/// [`reader`](super::reader) has an example.
pub fn integer(range: &RangeInclusive<u32>, value: &Value<'_>) -> Result<u32, Message> {
    let expected = format!("a whole number from {} to {}", range.start(), range.end());
    let Value::Integer(number) = value else {
        return Err(wrong_type(value, &expected));
    };
    let read = u32::from_str_radix(number.as_str(), number.radix()).ok();
    read.filter(|number| range.contains(number)).ok_or_else(|| {
        format!(
            "{} is out of range: expected {expected}",
            excerpt(number.as_str())
        )
    })
}

/// Reads true or false.
///
/// [`reader`](super::reader) has an example.
pub fn boolean(value: &Value<'_>) -> Result<bool, Message> {
    value
        .as_bool()
        .ok_or_else(|| wrong_type(value, "true or false"))
}

/// Reads the values of an array, with their positions.
///
/// [`reader`](super::reader) has an example.
pub fn array<'v, 't>(value: &'v Value<'t>) -> Result<&'v [Spanned<Value<'t>>], Message> {
    let values = value.as_array();
    values
        .map(|values| &**values)
        .ok_or_else(|| wrong_type(value, "an array, as in [\"...\", \"...\"]"))
}

fn string<'v>(value: &'v Value<'_>, expected: &str) -> Result<&'v str, Message> {
    value.as_str().ok_or_else(|| wrong_type(value, expected))
}

/// A value that no reader accepts, so that each one returns its message.
static REJECTED: Value<'static> = Value::Datetime(Datetime {
    date: None,
    time: None,
    offset: None,
});

/// Returns what a reader expects, from its message.
pub(super) fn expected_by<'n, 't: 'n, T>(
    read: impl FnOnce(&'n Value<'t>) -> Result<T, Message>,
) -> String {
    let message = read(&REJECTED).err().unwrap_or_default();
    let expected = message.split_once(": expected ");
    expected.map_or_else(|| "a value".to_owned(), |(_, expected)| expected.to_owned())
}

/// Returns the message for a value of another type.
///
/// [`reader`](super::reader) has an example.
pub fn wrong_type(value: &Value<'_>, expected: &str) -> Message {
    let found = match value {
        Value::String(_) => "a string",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "a boolean",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "an array",
        Value::Table(_) => "a table",
    };
    format!("found {found}: expected {expected}")
}

/// Returns the text of a number, without underscores.
fn number_text(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Integer(number) => Some(excerpt(number.as_str())),
        Value::Float(number) => Some(excerpt(number.as_str())),
        Value::String(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_)
        | Value::Table(_) => None,
    }
}

/// Returns the first 60 characters.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Returns "; did you mean x?" if one of the names is similar, and an empty string otherwise.
pub(super) fn suggestion(text: &str, names: &[&str]) -> String {
    // A longer text is not a typing error, and the distance costs the product of the lengths.
    if text.len() > 100 {
        return String::new();
    }
    let lower = text.to_lowercase().replace('_', "-");
    let distance = |name: &&str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let closest = names.iter().copied().min_by_key(distance);
    closest
        .filter(|name| distance(name) <= 1 + name.chars().count() / 4)
        .map_or_else(String::new, |name| format!("; did you mean {name}?"))
}
