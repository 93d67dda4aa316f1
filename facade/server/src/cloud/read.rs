//! What the tables of several clouds have.

use std::time::Duration;

use fleetwright::{InvalidValue, PublicAddress};
use fleetwright_region::file::reader::{self, Fields, Value};

use crate::config::Period;

/// The longest text: ids of resources and keys are longer than names.
const MAX_TEXT: usize = 4096;

/// Reads a text on one line.
pub(super) fn line(value: &Value<'_>) -> Result<String, String> {
    let Some(text) = value.as_str() else {
        return Err(reader::wrong_type(value, "a string in quotes"));
    };
    let fits = (1..=MAX_TEXT).contains(&text.len());
    if fits && text.trim() == text && !text.chars().any(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected 1 to {MAX_TEXT} bytes on one line, without spaces around them"
    ))
}

/// Reads a text as a value of the core.
pub(super) fn checked<T>(
    new: impl Fn(String) -> Result<T, InvalidValue>,
) -> impl Fn(&Value<'_>) -> Result<T, String> {
    move |value| new(line(value)?).map_err(|invalid| invalid.to_string())
}

/// Reads whether machines have a public address.
pub(super) fn public_address(value: &Value<'_>) -> Result<PublicAddress, String> {
    let names = [
        ("assigned", PublicAddress::Assigned),
        ("absent", PublicAddress::Absent),
    ];
    reader::one_of(&names, value)
}

/// Reads the address of an API. Credentials are sent there, so it is HTTPS, or an emulator on this machine.
pub(super) fn endpoint(value: &Value<'_>) -> Result<String, String> {
    crate::config::url(value).map(|url| url.to_string().trim_end_matches('/').to_owned())
}

/// The times that every cloud has.
pub(super) struct Times<'o> {
    pub(super) consistency_window: &'o mut Duration,
    pub(super) poll_interval: &'o mut Duration,
    pub(super) call_timeout: &'o mut Duration,
}

impl Times<'_> {
    /// Replaces those that the table has.
    pub(super) fn read(self, table: &mut Fields<'_, '_>) {
        for (name, time) in [
            ("consistency-window", self.consistency_window),
            ("poll-interval", self.poll_interval),
            ("call-timeout", self.call_timeout),
        ] {
            let read = table.optional(name, |value| {
                reader::parse_text::<Period>("a duration in quotes, as \"30 s\"", value)
            });
            if let Some(Period(read)) = read {
                *time = read;
            }
        }
    }
}

/// Reports a value that the provider refuses.
pub(super) fn report(table: &Fields<'_, '_>, result: Result<(), InvalidValue>) -> Option<()> {
    let Err(invalid) = result else {
        return Some(());
    };
    // `labels["x"]` is in the table `labels`.
    let field = invalid.field();
    let field = field.split('[').next().unwrap_or_default();
    table.report_field(&field.replace(['_', '.'], "-"), invalid.to_string());
    None
}
