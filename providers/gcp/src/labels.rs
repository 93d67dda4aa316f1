//! The caller's tags as labels and metadata. Pure.
//!
//! Owns how tags of any key and value are kept exactly. One that a label can hold is that label. Any
//! other is kept as it is in one metadata item, and has beside it a label that stands in for it, so that
//! Compute Engine can select by it and a person can recognize it: its key is `fwx-`, what is left of the
//! tag's key and the start of a digest of both, its value what is left of the tag's value.

use std::collections::{BTreeMap, HashMap};

use fleetwright::Tags;
use uuid::Uuid;

/// What the keys of labels that stand for another tag start with.
const STAND_IN: &str = "fwx-";

/// What the keys of Google's own labels start with.
const GOOGLES: &str = "goog";

/// How much of a tag's key is left to read in the label that stands in for it.
const READABLE_KEY: usize = 40;

/// The longest value of a label.
const LONGEST: usize = 63;

/// Tags as Compute Engine keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) labels: BTreeMap<String, String>,
    /// The tags that no label can hold, as a JSON object.
    pub(crate) originals: Option<String>,
}

/// `tags` as labels and metadata.
pub(crate) fn written(tags: &Tags) -> Written {
    let labels = tags.iter().map(|(key, value)| label(key, value)).collect();
    let odd: BTreeMap<_, _> = tags
        .iter()
        .filter(|(key, value)| !fits(key, value))
        .collect();
    let originals = (!odd.is_empty()).then(|| serde_json::json!(odd).to_string());
    Written { labels, originals }
}

/// The tags that labels and metadata say. A label that somebody sets by hand is a tag like any other.
pub(crate) fn read(labels: &HashMap<String, String>, originals: Option<&str>) -> Tags {
    let originals = originals.and_then(|text| serde_json::from_str(text).ok());
    let mut tags: BTreeMap<String, String> = originals.unwrap_or_default();
    let shown = labels
        .iter()
        .filter(|(key, _)| !stands_in(key) && !key.starts_with(GOOGLES));
    tags.extend(shown.map(|(key, value)| (key.clone(), value.clone())));
    Tags::from_observed(tags)
}

/// The label by which an instance with this tag is found.
pub(crate) fn label(key: &str, value: &str) -> (String, String) {
    if fits(key, value) {
        return (key.to_owned(), value.to_owned());
    }
    let both = format!("{}:{key}{value}", key.len());
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, both.as_bytes())
        .simple()
        .to_string();
    let (name, digest) = (readable(key, READABLE_KEY), &digest[..16]);
    (
        format!("{STAND_IN}{name}-{digest}"),
        readable(value, LONGEST),
    )
}

/// Whether a label stands in for a tag that no label can hold.
pub(crate) fn stands_in(key: &str) -> bool {
    key.starts_with(STAND_IN)
}

/// Whether a label can hold a tag as it is, without being taken for a label of ours or Google's.
pub(crate) fn fits(key: &str, value: &str) -> bool {
    let inside = |text: &str| {
        let byte = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        };
        text.len() <= LONGEST && text.bytes().all(byte)
    };
    let starts_well = key.starts_with(|first: char| first.is_ascii_lowercase());
    let taken = stands_in(key) || key.starts_with(GOOGLES);
    starts_well && !taken && inside(key) && inside(value)
}

/// What a label can hold of `text`, for a person to recognize.
fn readable(text: &str, most: usize) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        let kept = c.is_ascii_lowercase() || c.is_ascii_digit();
        let next = if kept { c } else { '-' };
        if next != '-' || !(slug.is_empty() || slug.ends_with('-')) {
            slug.push(next);
        }
        if slug.len() >= most {
            break;
        }
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_native_label(key: &str, value: &str) -> bool {
        let inside = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
        };
        let first = key.chars().next().is_some_and(|c| c.is_ascii_lowercase());
        first && key.len() <= 63 && value.len() <= 63 && inside(key) && inside(value)
    }

    fn back(written: &Written) -> Tags {
        let labels = written.labels.clone().into_iter().collect();
        read(&labels, written.originals.as_deref())
    }

    #[test]
    fn what_fits_is_a_label_and_the_rest_can_be_recognized() {
        let tags = Tags::new()
            .with("fleet-id", "blue")
            .and_then(|tags| tags.with("ManagedBy", "the Kit"))
            .and_then(|tags| tags.with("team", "Zürich"))
            .unwrap();
        let written = written(&tags);
        let labels: Vec<_> = written.labels.iter().collect();
        assert_eq!(labels[0].0, "fleet-id");
        assert!(labels[1].0.starts_with("fwx-managedby-"), "{labels:?}");
        assert_eq!(labels[1].1, "the-kit");
        assert_eq!(labels[2].1, "z-rich");
        assert_eq!(
            written.originals.as_deref(),
            Some(r#"{"ManagedBy":"the Kit","team":"Zürich"}"#)
        );
        assert_eq!(back(&written), tags);
    }

    #[test]
    fn labels_of_others_are_told_from_tags() {
        let labels = [
            ("goog-gke-node", ""),
            ("fwx-team-000000000000", "x"),
            ("team", "red"),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let tags = read(&HashMap::from(labels), Some(r#"{"team":"Zürich"}"#));
        let tags: Vec<_> = tags.iter().collect();
        assert_eq!(tags, [("team", "red")], "what somebody sets by hand counts");
        assert_eq!(read(&HashMap::new(), Some("no JSON")), Tags::new());
    }

    #[test]
    fn taken_keys_stand_in_for_themselves() {
        for key in ["goog-x", "fwx-a", "Team", "9lives", "a b", &"k".repeat(64)] {
            let (label, _) = label(key, "v");
            assert!(label.starts_with(STAND_IN), "{key} is {label}");
        }
        assert_ne!(label("Team", "v").0, label("tEam", "v").0);
        assert_ne!(
            label("Team", "v").0,
            label("Team", "w").0,
            "both can be there for a while"
        );
    }

    proptest! {
        #[test]
        fn any_tags_come_back_exactly(
            pairs in proptest::collection::btree_map("\\PC{1,80}", "\\PC{0,200}", 0..8)
        ) {
            let mut tags = Tags::new();
            for (key, value) in pairs {
                // What the core refuses is not ours to keep.
                if let Ok(with) = tags.clone().with(key, value) {
                    tags = with;
                }
            }
            let written = written(&tags);
            for (key, value) in &written.labels {
                prop_assert!(is_native_label(key, value), "{key}={value}");
            }
            prop_assert_eq!(written.labels.len(), tags.len());
            prop_assert_eq!(back(&written), tags);
        }
    }
}
