//! What every command needs.

use std::time::Duration;

use fleetwright_client::Client;

use crate::{output::Output, settings::Defaults};

/// The service, the output, and what arguments can leave out.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) output: Output,
    pub(crate) defaults: Defaults,
}

/// A duration such as `90`, `90s`, `10m` or `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err("expected seconds, or a number with s, m or h".to_owned()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "expected seconds, or a number with s, m or h".to_owned())?;
    let seconds = number
        .checked_mul(unit)
        .filter(|seconds| *seconds <= 365 * 86400);
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "expected at most a year".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, seconds) in [("90", 90), ("5s", 5), ("10m", 600), ("2h", 7200)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)));
        }
        for text in [
            "",
            "m",
            "-1",
            "1d",
            "1.5h",
            "99999999999999999999",
            "9999999999h",
            "1é",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
