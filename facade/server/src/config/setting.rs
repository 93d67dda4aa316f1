//! Values of settings, as people write them.

use std::{str::FromStr, time::Duration};

/// A duration with its unit: `30 s`, `5 min` or `250 ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period(pub(crate) Duration);

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "{text:?} is no duration: expected a whole number with ms, s or min, as \"30 s\""
            )
        };
        let digits = text
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| expected())?;
        let found = match unit.trim() {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "min" => Duration::from_secs(number.saturating_mul(60)),
            _ => return Err(expected()),
        };
        let range = Duration::from_millis(1)..=Duration::from_secs(3600);
        if range.contains(&found) {
            return Ok(Self(found));
        }
        Err(format!("{text:?} is out of range: expected 1 ms to 60 min"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!("30 s".parse(), Ok(Period(Duration::from_secs(30))));
        assert_eq!("250ms".parse(), Ok(Period(Duration::from_millis(250))));
        assert_eq!("5 min".parse(), Ok(Period(Duration::from_secs(300))));
        for wrong in [
            "",
            "30",
            "s",
            "0 s",
            "2 h",
            "61 min",
            "99999999999999999999 s",
        ] {
            assert!(wrong.parse::<Period>().is_err(), "{wrong}");
        }
    }
}
