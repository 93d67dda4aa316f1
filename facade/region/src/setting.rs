//! Checking the settings of policies, so that a mistake is refused instead of making a loop busy or a protection void.

use std::time::Duration;

/// A setting that cannot be used. `Display` says which, why, and what to set instead.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_region::monitor::Policy;
///
/// let mut policy = Policy::default();
/// policy.tick = Duration::ZERO;
/// assert_eq!(policy.check().unwrap_err().to_string(), "tick is zero: set a longer time");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} {problem}")]
#[non_exhaustive]
pub struct InvalidSetting {
    /// The field of the policy.
    pub name: &'static str,
    /// What is wrong with it, and what would be accepted.
    pub problem: &'static str,
}

impl InvalidSetting {
    /// Creates an error.
    pub fn new(name: &'static str, problem: &'static str) -> Self {
        Self { name, problem }
    }
}

/// Refuses durations of zero.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_region::setting::check_positive;
///
/// let second = Duration::from_secs(1);
/// assert!(check_positive(&[("tick", second)]).is_ok());
/// assert_eq!(check_positive(&[("tick", second), ("age", Duration::ZERO)]).unwrap_err().name, "age");
/// ```
///
/// # Errors
///
/// The first setting that is zero.
pub fn check_positive(settings: &[(&'static str, Duration)]) -> Result<(), InvalidSetting> {
    match settings.iter().find(|(_, value)| value.is_zero()) {
        Some((name, _)) => Err(InvalidSetting::new(name, "is zero: set a longer time")),
        None => Ok(()),
    }
}

/// Refuses delays that are zero, or whose first is longer than the longest.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_region::setting::check_backoff;
///
/// let [first, max] = [2, 300].map(Duration::from_secs);
/// assert!(check_backoff(first, max).is_ok());
/// assert_eq!(check_backoff(max, first).unwrap_err().name, "max_backoff");
/// ```
///
/// # Errors
///
/// The delay that has to change.
pub fn check_backoff(first: Duration, max: Duration) -> Result<(), InvalidSetting> {
    check_positive(&[("first_backoff", first)])?;
    if max < first {
        let problem = "is shorter than first_backoff: set a time that is at least as long";
        return Err(InvalidSetting::new("max_backoff", problem));
    }
    Ok(())
}
