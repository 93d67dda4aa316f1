//! Sizes in bytes, which are written with a unit.
//!
//! A GB (10^9 bytes) and a GiB (2^30 bytes) differ by 7 %: a disk of 20 GB does not hold an image of 20 GiB. Sizes are
//! kept in bytes, and a number without a unit is not accepted as a size.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// An exact number of bytes, below 2^64. In JSON it is that number; as text it has a unit.
///
/// ```
/// use fleetwright_region::catalog::{ByteSize, Unit};
///
/// let disk: ByteSize = "100 GB".parse()?;
/// assert_eq!(disk.bytes(), 100_000_000_000);
/// assert_eq!(disk.at_least(Unit::GiB), 94, "rounded up");
/// assert_eq!(disk.exactly(Unit::GiB), None, "not a whole number of GiB");
/// assert_eq!(disk.to_string(), "100 GB");
/// assert!("100".parse::<ByteSize>().is_err(), "the unit is missing");
/// # Ok::<(), fleetwright_region::catalog::InvalidSize>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteSize(u64);

/// A unit of sizes. The names are case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Bytes.
    B,
    /// 10^3 bytes.
    KB,
    /// 10^6 bytes.
    MB,
    /// 10^9 bytes.
    GB,
    /// 10^12 bytes.
    TB,
    /// 2^10 bytes.
    KiB,
    /// 2^20 bytes.
    MiB,
    /// 2^30 bytes.
    GiB,
    /// 2^40 bytes.
    TiB,
}

impl Unit {
    /// All units, the largest first.
    pub const ALL: [Self; 9] = [
        Self::TiB,
        Self::TB,
        Self::GiB,
        Self::GB,
        Self::MiB,
        Self::MB,
        Self::KiB,
        Self::KB,
        Self::B,
    ];

    /// Returns the number of bytes in one unit.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::B => 1,
            Self::KB => 1000,
            Self::MB => 1_000_000,
            Self::GB => 1_000_000_000,
            Self::TB => 1_000_000_000_000,
            Self::KiB => 1 << 10,
            Self::MiB => 1 << 20,
            Self::GiB => 1 << 30,
            Self::TiB => 1 << 40,
        }
    }

    /// Returns the name, as it is written in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::B => "B",
            Self::KB => "KB",
            Self::MB => "MB",
            Self::GB => "GB",
            Self::TB => "TB",
            Self::KiB => "KiB",
            Self::MiB => "MiB",
            Self::GiB => "GiB",
            Self::TiB => "TiB",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl ByteSize {
    /// Creates a size from a number of bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Creates a size from a number of units. Returns `None` if it is 2^64 bytes or more.
    pub const fn new(count: u64, unit: Unit) -> Option<Self> {
        match count.checked_mul(unit.bytes()) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }

    /// Returns the number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Returns the number of units, or `None` if it is not a whole number.
    pub const fn exactly(self, unit: Unit) -> Option<u64> {
        if self.0 % unit.bytes() == 0 {
            Some(self.0 / unit.bytes())
        } else {
            None
        }
    }

    /// Returns the number of units, rounded up.
    pub const fn at_least(self, unit: Unit) -> u64 {
        self.0.div_ceil(unit.bytes())
    }
}

impl fmt::Display for ByteSize {
    /// Writes the exact size in the unit that gives the smallest number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |unit: &Unit| self.exactly(*unit).is_some_and(|count| count > 0);
        let unit = Unit::ALL.into_iter().filter(whole);
        // If two units give the same number, the binary one.
        let unit = unit.min_by_key(|unit| self.0 / unit.bytes());
        let unit = unit.unwrap_or(Unit::B);
        write!(f, "{} {unit}", self.0 / unit.bytes())
    }
}

impl fmt::Debug for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteSize({self})")
    }
}

/// Why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSize {
    /// The text does not begin with a whole number.
    #[error("{0:?} is not a size: expected a whole number and a unit, as in \"16 GiB\"")]
    NoNumber(String),
    /// The unit is missing.
    #[error(
        "{0} has no unit: expected \"{0} GiB\" (2^30 bytes each) or \"{0} GB\" (10^9 bytes each)"
    )]
    NoUnit(String),
    /// The unit is unknown. The second part is empty or suggests a unit.
    #[error("{0:?} is not a unit: expected B, KB, MB, GB, TB, KiB, MiB, GiB or TiB{1}")]
    UnknownUnit(String, String),
    /// The size is 2^64 bytes or more.
    #[error("{0:?} is more than 2^64 bytes")]
    TooLarge(String),
}

impl FromStr for ByteSize {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let excerpt = || text.chars().take(40).collect::<String>();
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        if number.is_empty() || unit.starts_with(['.', ',', '_']) {
            return Err(InvalidSize::NoNumber(excerpt()));
        }
        let unit = unit.trim_matches(' ');
        if unit.is_empty() {
            return Err(InvalidSize::NoUnit(excerpt()));
        }
        let named = Unit::ALL.into_iter().find(|known| known.name() == unit);
        let Some(named) = named else {
            let hint = hint(unit);
            return Err(InvalidSize::UnknownUnit(
                unit.chars().take(40).collect(),
                hint,
            ));
        };
        let count = number.parse().ok();
        let size = count.and_then(|count| Self::new(count, named));
        size.ok_or_else(|| InvalidSize::TooLarge(excerpt()))
    }
}

/// Suggests the unit that differs only in case. "G" gets no suggestion, because GB and GiB are both common meanings.
fn hint(unit: &str) -> String {
    let meant = Unit::ALL
        .into_iter()
        .find(|known| known.name().eq_ignore_ascii_case(unit));
    meant.map_or_else(String::new, |known| format!("; did you mean {known}?"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimal_and_binary_units_are_not_the_same() {
        let size = |text: &str| text.parse::<ByteSize>().unwrap();
        assert!(size("20 GB") < size("20 GiB"));
        assert_eq!(size("20 GiB").bytes(), 21_474_836_480);
        assert_eq!(size("20GB").bytes(), 20_000_000_000);
        assert_eq!(size("1 TiB"), size("1024 GiB"));
        assert_eq!(size("100 GB").exactly(Unit::GiB), None);
        assert_eq!(size("100 GB").at_least(Unit::GiB), 94);
        assert_eq!(size("94 GiB").at_least(Unit::GiB), 94);
        assert_eq!(size("0 GiB").to_string(), "0 B");
        assert_eq!(size("100 GB").to_string(), "100 GB");
        assert_eq!(size("1536 MiB").to_string(), "1536 MiB");
    }

    #[test]
    fn invalid_size_is_refused_with_the_reason() {
        let cases = [
            (
                "16",
                "16 has no unit: expected \"16 GiB\" (2^30 bytes each) or \"16 GB\" (10^9 bytes each)",
            ),
            (
                "",
                "\"\" is not a size: expected a whole number and a unit, as in \"16 GiB\"",
            ),
            (
                "-1 GiB",
                "\"-1 GiB\" is not a size: expected a whole number and a unit, as in \"16 GiB\"",
            ),
            (
                "1.5 TiB",
                "\"1.5 TiB\" is not a size: expected a whole number and a unit, as in \"16 GiB\"",
            ),
            (
                "16 gib",
                "\"gib\" is not a unit: expected B, KB, MB, GB, TB, KiB, MiB, GiB or TiB; did you mean GiB?",
            ),
            (
                "16 G",
                "\"G\" is not a unit: expected B, KB, MB, GB, TB, KiB, MiB, GiB or TiB",
            ),
            ("99999999 TiB", "\"99999999 TiB\" is more than 2^64 bytes"),
            (
                "99999999999999999999 B",
                "\"99999999999999999999 B\" is more than 2^64 bytes",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<ByteSize>().unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn any_size_round_trips_through_text(bytes in any::<u64>(), shift in 0_u32..64) {
            let size = ByteSize::from_bytes(bytes >> shift);
            prop_assert_eq!(size.to_string().parse::<ByteSize>(), Ok(size));
        }

        #[test]
        fn conversions_are_exact_or_none(bytes in any::<u64>(), unit in 0_usize..9) {
            let (size, unit) = (ByteSize::from_bytes(bytes), Unit::ALL[unit]);
            if let Some(count) = size.exactly(unit) {
                prop_assert_eq!(ByteSize::new(count, unit), Some(size));
            }
            let count = size.at_least(unit);
            prop_assert!(u128::from(count) * u128::from(unit.bytes()) >= u128::from(bytes));
            prop_assert!(count.saturating_sub(1) * unit.bytes() <= bytes);
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in ".{0,30}") {
            if let Err(error) = text.parse::<ByteSize>() {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
