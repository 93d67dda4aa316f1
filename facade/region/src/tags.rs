//! Which tags are the system's own: one list, for whoever refuses such keys and for whoever strips them.
//!
//! A key is reserved in each form that a system of this sort writes its own tags in, because a tenant that can write one of
//! them can pass for another server, or for the system itself. The case of a key is no way around it: some clouds fold it.

use fleetwright::{InvalidValue, RESERVED_PREFIX, Tags};

/// What the keys that no tenant may set begin with, in any case: the providers' own tags, the same in the form of a path, and
/// [the region's](crate::controller::tags).
pub const RESERVED_PREFIXES: [&str; 3] = [RESERVED_PREFIX, "fleetwright/", "fleetwright-"];

/// Whether a key is the system's. To be asked of every key that a tenant gives, before it is stored.
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

/// The tags that are left when the system's are taken out; the others are as they were. Of equal keys the last one counts.
/// Fails only for a key that is empty.
///
/// It takes pairs, since [`Tags`] cannot hold all that is to be stripped; those of a `&Tags` will do.
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
    fn every_key_that_the_region_writes_is_reserved_in_every_case() {
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
        fn what_is_stripped_holds_nothing_reserved_and_everything_else(
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
