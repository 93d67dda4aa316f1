//! Tags, changes of tags, and their limits.

use super::*;
use proptest::prelude::*;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().fold(Tags::new(), |tags, (key, value)| {
        tags.with(*key, *value).unwrap()
    })
}

fn refusal(limits: &TagLimits, pairs: &[(&str, &str)]) -> String {
    limits.check(&tags(pairs)).unwrap_err().to_string()
}

#[test]
fn empty_and_reserved_keys_are_refused_everywhere() {
    for key in ["", "fleetwright:", "fleetwright:token", "FleetWright:Token"] {
        assert!(Tags::new().with(key, "v").is_err(), "{key}");
        let json = serde_json::json!({ key: "v" });
        assert!(serde_json::from_value::<Tags>(json).is_err(), "{key}");
    }
    assert!(Tags::new().with("fleetwright", "v").is_ok());
    assert!(Tags::new().with("fléetwright:", "v").is_ok());
}

#[test]
fn observed_tags_hide_reserved_keys_and_keep_the_rest() {
    let pairs = [("fleetwright:fp", "1"), ("", "2"), ("a\tb", "3")];
    let observed = Tags::from_observed(pairs.map(|(k, v)| (k.to_owned(), v.to_owned())));
    assert_eq!(observed.iter().collect::<Vec<_>>(), [("a\tb", "3")]);
}

#[test]
fn tags_behave_like_a_map() {
    let mut some = tags(&[("b", "2"), ("a", "1")]);
    assert_eq!(some.len(), 2);
    assert!(!some.is_empty());
    assert_eq!(some.insert("a", "3").unwrap().as_deref(), Some("1"));
    assert!(some.contains_all(&tags(&[("a", "3")])));
    assert!(some.contains_all(&Tags::new()));
    assert!(!some.contains_all(&tags(&[("a", "1")])));
    assert!(!some.contains_all(&tags(&[("A", "3")])));
    assert!(!some.contains_all(&tags(&[("a", "3"), ("c", "")])));
    assert_eq!(some.remove("a").as_deref(), Some("3"));
    assert_eq!(some.remove("a"), None);
    assert_eq!((&some).into_iter().collect::<Vec<_>>(), [("b", "2")]);
    assert_eq!(some.remove("b").as_deref(), Some("2"));
    assert!(some.is_empty());
}

#[test]
fn each_limit_error_has_the_tag_and_the_limit() {
    let mut limits = TagLimits::new(2, 4, 3);
    assert!(limits.check(&tags(&[("äöüß", "äöü"), ("b", "")])).is_ok());
    assert_eq!(
        refusal(&limits, &[("a", ""), ("b", ""), ("c", "")]),
        "tags: has 3 entries; the limit is 2"
    );
    assert_eq!(
        refusal(&limits, &[("abcde", "")]),
        "tags[\"abcde\"]: has 5 characters; the limit is 4"
    );
    assert_eq!(
        refusal(&limits, &[("a", "1234")]),
        "tags[\"a\"]: has 4 characters; the limit is 3"
    );
    assert!(refusal(&limits, &[("a", "\n")]).contains("contains '\\n'"));
    assert!(refusal(&limits, &[("\u{7f}", "")]).contains("not control characters"));
    limits.forbidden_in_keys = "/<".into();
    assert!(refusal(&limits, &[("a/b", "")]).contains("contains '/'"));
    assert!(limits.check(&tags(&[("a", "/<")])).is_ok());
    limits.reserved_prefixes = vec!["aws:".into(), "ms".into()];
    assert!(refusal(&limits, &[("MSx", "")]).contains("reserved prefix \"ms\""));
    assert!(limits.check(&tags(&[("aws", "m")])).is_ok());
    assert!(limits.check(&tags(&[("a", ""), ("A", "")])).is_ok());
    limits.key_case = KeyCase::Folded;
    assert!(refusal(&limits, &[("a", ""), ("A", "")]).contains("is the same key as \"A\""));
}

#[test]
fn long_keys_are_cut_in_the_message_only() {
    let message = refusal(&TagLimits::new(9, 50, 9), &[(&"k".repeat(51), "")]);
    assert_eq!(
        message,
        format!(
            "tags[\"{}…\"]: has 51 characters; the limit is 50",
            "k".repeat(40)
        )
    );
    let exact = refusal(&TagLimits::new(9, 39, 9), &[(&"k".repeat(40), "")]);
    assert!(!exact.contains('…'), "{exact}");
}

proptest! {
    #[test]
    fn any_tags_round_trip_exactly(
        map in proptest::collection::btree_map(any::<String>(), any::<String>(), 0..6),
    ) {
        match Tags::try_from(map.clone()) {
            Ok(tags) => {
                let json = serde_json::to_string(&tags).unwrap();
                prop_assert_eq!(&json, &serde_json::to_string(&map).unwrap());
                prop_assert_eq!(&serde_json::from_str::<Tags>(&json).unwrap(), &tags);
                prop_assert_eq!(tags, Tags::from_observed(map));
            }
            Err(error) => prop_assert!(map.contains_key("")
                || map.keys().any(|key| key.to_lowercase().starts_with(RESERVED_PREFIX)), "{}", error),
        }
    }

    #[test]
    fn tags_within_the_limits_pass_and_all_others_do_not(
        map in proptest::collection::btree_map("[a-z]{1,6}", "[a-zé ]{0,6}", 0..6),
        max_tags in 0_usize..6, max_key in 0_usize..8, max_value in 0_usize..8,
    ) {
        let within = map.len() <= max_tags
            && map.keys().all(|key| key.chars().count() <= max_key)
            && map.values().all(|value| value.chars().count() <= max_value);
        let tags = Tags::try_from(map).unwrap();
        prop_assert_eq!(TagLimits::new(max_tags, max_key, max_value).check(&tags).is_ok(), within);
    }
}
