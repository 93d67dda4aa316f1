//! The names of the instances of a launch.

use std::{collections::BTreeMap, num::NonZeroU32};

use fleetwright::LaunchToken;

/// Returns the names of the instances of a launch: those that follow from its token, or random ones without a token.
///
/// ```
/// use std::num::NonZeroU32;
/// use fleetwright::LaunchToken;
/// use fleetwright_provider_support::launch::instance_names;
///
/// # fn main() -> Result<(), fleetwright::InvalidValue> {
/// let token = LaunchToken::new("blue/slot-1")?;
/// let name_of = |token: &LaunchToken, item| format!("{}-{item}", token.derive("acme-name").simple());
/// let names = || instance_names(Some(&token), NonZeroU32::MIN, name_of, || "random".to_owned());
/// assert_eq!(names(), names(), "a replay has the same names");
/// # Ok(())
/// # }
/// ```
pub fn instance_names(
    token: Option<&LaunchToken>,
    count: NonZeroU32,
    name_of: impl Fn(&LaunchToken, u32) -> String,
    random_name: impl Fn() -> String,
) -> Vec<String> {
    let name = |item| match token {
        Some(token) => name_of(token, item),
        None => random_name(),
    };
    (0..count.get()).map(name).collect()
}

/// Whether a token has launched something and nothing of it is alive.
///
/// ```
/// use std::collections::BTreeMap;
/// use fleetwright_provider_support::launch::is_spent;
///
/// let states = BTreeMap::from([("vm-1".to_owned(), "deleting"), ("vm-2".to_owned(), "running")]);
/// assert!(!is_spent(&states, |state| *state == "deleting"), "vm-2 is alive");
/// assert!(!is_spent(&BTreeMap::new(), |_: &&str| true), "the token has launched nothing");
/// ```
pub fn is_spent<T>(by_name: &BTreeMap<String, T>, is_ending: impl Fn(&T) -> bool) -> bool {
    !by_name.is_empty() && by_name.values().all(is_ending)
}
