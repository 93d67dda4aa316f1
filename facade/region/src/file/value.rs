//! The forms that values have in files, and what to say where one has another.

use std::{fmt::Display, ops::RangeInclusive, str::FromStr};

use toml::{Spanned, de::DeValue, value::Datetime};

/// A value in a file.
pub(crate) type Value<'t> = DeValue<'t>;

/// What is wrong with a value, and what would be accepted.
pub(crate) type Wrong = String;

/// The longest text in a file that is read by people alone.
const MAX_TEXT: usize = 128;

/// A text that a person may read: not empty, not endless, on one line.
pub(crate) fn text(value: &Value<'_>) -> Result<String, Wrong> {
    let text = string(value, "a text in quotes")?;
    let fits = (1..=MAX_TEXT).contains(&text.chars().count());
    if fits && text.trim() == text && !text.chars().any(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "want 1 to {MAX_TEXT} characters, without control characters and without spaces around them"
    ))
}

/// What a text says, by the rules of a type.
pub(crate) fn parsed<T: FromStr<Err: Display>>(
    wanted: &str,
    value: &Value<'_>,
) -> Result<T, Wrong> {
    // A number without quotes is told what it lacks in the words of the type: its unit, most often.
    if let Some(Err(wrong)) = written(value).map(|number| number.parse::<T>()) {
        return Err(wrong.to_string());
    }
    let text = string(value, wanted)?;
    text.parse().map_err(|wrong: T::Err| wrong.to_string())
}

/// One of some words.
pub(crate) fn among<T: Copy>(words: &[(&str, T)], value: &Value<'_>) -> Result<T, Wrong> {
    let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    let wanted = match known.as_slice() {
        [only] => format!("{only:?}"),
        [] | [_, ..] => format!("one of {}", known.join(", ")),
    };
    let text = string(value, &wanted)?;
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let hint = nearest(text, &known);
        format!("{:?} is not known: want {wanted}{hint}", shortened(text))
    })
}

/// A whole number between two.
pub(crate) fn whole(range: &RangeInclusive<u32>, value: &Value<'_>) -> Result<u32, Wrong> {
    let wanted = format!("a whole number from {} to {}", range.start(), range.end());
    let Value::Integer(number) = value else {
        return Err(found_instead(value, &wanted));
    };
    let read = u32::from_str_radix(number.as_str(), number.radix()).ok();
    read.filter(|number| range.contains(number)).ok_or_else(|| {
        format!(
            "{} is out of range: want {wanted}",
            shortened(number.as_str())
        )
    })
}

/// True or false.
pub(crate) fn flag(value: &Value<'_>) -> Result<bool, Wrong> {
    value
        .as_bool()
        .ok_or_else(|| found_instead(value, "true or false"))
}

/// The values of an array, with their places.
pub(crate) fn pieces<'v, 't>(value: &'v Value<'t>) -> Result<&'v [Spanned<Value<'t>>], Wrong> {
    let values = value.as_array();
    values
        .map(|values| &**values)
        .ok_or_else(|| found_instead(value, "an array, as in [\"...\", \"...\"]"))
}

fn string<'v>(value: &'v Value<'_>, wanted: &str) -> Result<&'v str, Wrong> {
    value.as_str().ok_or_else(|| found_instead(value, wanted))
}

/// What stands where nothing does. No reader takes a date, so each tells what it wants instead.
static NOTHING: Value<'static> = Value::Datetime(Datetime {
    date: None,
    time: None,
    offset: None,
});

/// What a reader wants, in its own words.
pub(super) fn wanted_by<'n, 't: 'n, T>(
    read: impl FnOnce(&'n Value<'t>) -> Result<T, Wrong>,
) -> String {
    let wrong = read(&NOTHING).err().unwrap_or_default();
    let wanted = wrong.split_once(": want ");
    wanted.map_or_else(|| "a value".to_owned(), |(_, wanted)| wanted.to_owned())
}

pub(crate) fn found_instead(value: &Value<'_>, wanted: &str) -> Wrong {
    let found = match value {
        Value::String(_) => "a text",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "an array",
        Value::Table(_) => "a table",
    };
    format!("{found} stands here: want {wanted}")
}

/// A number as it was written, but for its underscores.
fn written(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Integer(number) => Some(shortened(number.as_str())),
        Value::Float(number) => Some(shortened(number.as_str())),
        Value::String(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_)
        | Value::Table(_) => None,
    }
}

pub(super) fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// "; did you mean x?" if one of the words is near enough to have been meant.
pub(super) fn nearest(text: &str, words: &[&str]) -> String {
    // Longer texts are no slips of a pen, and the distance costs the product of the lengths.
    if text.len() > 100 {
        return String::new();
    }
    let lower = text.to_lowercase().replace('_', "-");
    let far = |word: &&str| strsim::damerau_levenshtein(&lower, &word.to_lowercase());
    let near = words.iter().copied().min_by_key(far);
    near.filter(|word| far(word) <= 1 + word.chars().count() / 4)
        .map_or_else(String::new, |word| format!("; did you mean {word}?"))
}
