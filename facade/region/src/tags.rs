//! Reserved tags: the keys that only the system writes, in one list for the code that refuses them and the code that
//! strips them.
//!
//! A tenant who could set a reserved tag could pretend to be another server, or the system itself. Upper and lower case
//! make no difference, because some clouds ignore the case of keys.

use fleetwright::{InvalidValue, RESERVED_PREFIX, Tags};

/// The prefixes of the keys that no tenant may set, in any case: the providers' own tags, the same as a path, and
/// [the region's](crate::controller::tags).
pub const RESERVED_PREFIXES: [&str; 3] = [RESERVED_PREFIX, "fleetwright/", "fleetwright-"];

/// Returns whether a key is reserved. Check every key that a tenant gives before it is stored.
///
/// ```
/// use fleetwright_region::tags::is_reserved;
///
/// assert!(is_reserved("fleetwright:token") && is_reserved("Fleetwright/server"));
/// assert!(is_reserved("fleetwright-server") && !is_reserved("fleetwrights"));
/// ```
pub fn is_reserved(key: &str) -> bool {
    RESERVED_PREFIXES.iter().any(|prefix| {
        key.get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    })
}

/// Returns the tags without the reserved ones. The others are unchanged; of equal keys the last one counts.
///
/// The argument is pairs, because [`Tags`] cannot hold every reserved key; a `&Tags` is accepted too.
///
/// ```
/// use fleetwright_region::tags::strip_reserved;
///
/// let tags = strip_reserved([("team", "blue"), ("fleetwright/server", "x")])?;
/// assert_eq!(tags.iter().collect::<Vec<_>>(), [("team", "blue")]);
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
///
/// # Errors
///
/// A key is empty.
pub fn strip_reserved<K, V>(tags: impl IntoIterator<Item = (K, V)>) -> Result<Tags, InvalidValue>
where
    K: Into<String>,
    V: Into<String>,
{
    let mut kept = Tags::new();
    for (key, value) in tags {
        let key = key.into();
        if !is_reserved(&key) {
            kept.insert(key, value)?;
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::controller::tags;

    #[test]
    fn keys_that_the_region_writes_are_reserved_in_any_case() {
        for key in [tags::REGION, tags::SERVER, tags::MACHINE] {
            assert!(
                is_reserved(key) && is_reserved(&key.to_uppercase()),
                "{key}"
            );
        }
        for prefix in RESERVED_PREFIXES {
            assert!(is_reserved(prefix), "{prefix}");
            assert!(!is_reserved(&prefix[1..]), "{prefix}");
        }
        assert!(!is_reserved("") && !is_reserved("fleetwright"));
    }

    /// Keys of which about half are reserved, in one form or another.
    fn keys() -> impl Strategy<Value = String> {
        let forms = prop::sample::select(vec!["fleetwright", "FleetWright", "fléetwright", "x"]);
        let marks = prop::sample::select(vec![":", "/", "-", ".", ""]);
        (forms, marks, "[a-zA-Zé:/-]{0,6}")
            .prop_map(|(form, mark, rest)| form.to_owned() + mark + &rest)
    }

    proptest! {
        #[test]
        fn stripping_removes_exactly_the_reserved_tags(
            tags in prop::collection::btree_map(keys(), ".{0,8}", 0..12),
        ) {
            let kept = strip_reserved(tags.clone()).unwrap();
            prop_assert!(kept.iter().all(|(key, _)| !is_reserved(key)));
            let lower = |key: &str| key.to_ascii_lowercase();
            let others: BTreeMap<_, _> = tags
                .iter()
                .filter(|(key, _)| {
                    let key = lower(key);
                    !["fleetwright:", "fleetwright/", "fleetwright-"].iter().any(|prefix| key.starts_with(prefix))
                })
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect();
            prop_assert_eq!(kept.iter().collect::<BTreeMap<_, _>>(), others);
            prop_assert_eq!(strip_reserved(&kept).unwrap(), kept);
        }
    }
}
