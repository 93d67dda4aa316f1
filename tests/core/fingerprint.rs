//! Two configs have the same fingerprint if and only if they differ in nothing but their tokens.

use std::num::NonZeroU32;

use fleetwright::{InstanceConfig, Tags};
use proptest::{collection::btree_map, prelude::*, sample::Index};

use crate::arbitrary;

fn count() -> impl Strategy<Value = NonZeroU32> {
    (1_u32..4).prop_map(|count| NonZeroU32::new(count).unwrap())
}

/// Returns `one` with the fields that `taken` selects replaced by those of `other`.
fn mixed(one: &InstanceConfig, other: &InstanceConfig, taken: [bool; 11]) -> InstanceConfig {
    let mut mix = one.clone();
    let (to, from) = (&mut mix, other.clone());
    let mut next = taken.into_iter();
    let mut take = move || next.next().unwrap();
    fn put<T>(take: bool, to: &mut T, from: T) {
        if take {
            *to = from;
        }
    }
    put(take(), &mut to.image, from.image);
    put(take(), &mut to.instance_type, from.instance_type);
    put(take(), &mut to.user_data, from.user_data);
    put(take(), &mut to.tags, from.tags);
    put(take(), &mut to.disk_size_gb, from.disk_size_gb);
    put(take(), &mut to.launch_token, from.launch_token);
    let (to, from) = (&mut to.placement, from.placement);
    put(take(), &mut to.zone, from.zone);
    put(take(), &mut to.network, from.network);
    put(take(), &mut to.security_groups, from.security_groups);
    put(take(), &mut to.public_address, from.public_address);
    put(take(), &mut to.market, from.market);
    mix
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fingerprints_are_equal_iff_configs_without_token_are(
        one in arbitrary::config(), other in arbitrary::config(),
        which: Index, several: [bool; 11], (n, m) in (count(), count()),
    ) {
        let mut single = [false; 11];
        single[which.index(11)] = true;
        for taken in [single, several, [false; 11]] {
            let mix = mixed(&one, &other, taken);
            let mut with_token = mix.clone();
            with_token.launch_token.clone_from(&one.launch_token);
            let same = with_token == one;
            prop_assert_eq!(mix.fingerprint(n) == one.fingerprint(n), same, "{:?}", mix);
            prop_assert_eq!(mix.fingerprint(n) == one.fingerprint(m), same && n == m);
        }
    }

    #[test]
    fn adjacent_fields_have_different_fingerprints(
        text in "[a-z]{2,8}", cut: Index, other_cut: Index,
    ) {
        let at = |cut: &Index| 1 + cut.index(text.len() - 1);
        let digest = |cut| {
            let (left, right) = text.split_at(cut);
            let config = InstanceConfig::builder(left, right).build().unwrap();
            let tagged = InstanceConfig::builder("i", "t").tag(left, right).build().unwrap();
            [config, tagged].map(|config| config.fingerprint(NonZeroU32::MIN))
        };
        let (one, other) = (at(&cut), at(&other_cut));
        for (a, b) in digest(one).into_iter().zip(digest(other)) {
            prop_assert_eq!(a == b, one == other);
        }
    }

    #[test]
    fn adjacent_tags_have_different_fingerprints(
        one in btree_map("[a-c]{1,2}", "[a-c]{0,2}", 0..4),
        other in btree_map("[a-c]{1,2}", "[a-c]{0,2}", 0..4),
    ) {
        let digest = |tags| {
            let tags = Tags::try_from(tags).unwrap();
            let config = InstanceConfig::builder("i", "t").tags(&tags).build();
            config.unwrap().fingerprint(NonZeroU32::MIN)
        };
        let same = one == other;
        prop_assert_eq!(digest(one) == digest(other), same);
    }
}
