//! Tags as labels and metadata. Pure.
//!
//! Owns how tags with any key and value are stored exactly. A tag that is a valid label is stored
//! as that label. Any other tag is stored in one metadata item, and gets a placeholder label, so
//! that Compute Engine can filter by it and people can recognize it: its key is `fwx-`, the
//! readable part of the tag's key and the start of a digest of key and value; its value is the
//! readable part of the tag's value.
//!
//! | tag | label | metadata |
//! | --- | --- | --- |
//! | `fleet-id` = `blue` | `fleet-id` = `blue` | |
//! | `ManagedBy` = `the README` | `fwx-managedby-<digest>` = `the-readme` | `{"ManagedBy":"the README"}` |
//!
//! Labels that start with `goog` belong to Google and are never tags.

use std::collections::{BTreeMap, HashMap};

use fleetwright::Tags;
use uuid::Uuid;

/// The prefix of the keys of placeholder labels.
const PLACEHOLDER_PREFIX: &str = "fwx-";

/// The prefix of the keys of Google's own labels.
const GOOGLE_PREFIX: &str = "goog";

/// How many characters of a tag's key a placeholder label contains at most.
const READABLE_KEY_LENGTH: usize = 40;

/// The longest key and the longest value of a label, in characters.
const MAX_LABEL_LENGTH: usize = 63;

/// Tags as Compute Engine stores them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EncodedTags {
    /// One label per tag: the tag itself or its placeholder.
    pub(crate) labels: BTreeMap<String, String>,
    /// The tags that are not valid labels, as a JSON object.
    pub(crate) originals: Option<String>,
}

/// Encodes tags as labels and metadata.
pub(crate) fn encode(tags: &Tags) -> EncodedTags {
    let labels = tags.iter().map(|(key, value)| label(key, value)).collect();
    let others: BTreeMap<_, _> = tags
        .iter()
        .filter(|(key, value)| !fits_label(key, value))
        .collect();
    let originals = (!others.is_empty()).then(|| serde_json::json!(others).to_string());
    EncodedTags { labels, originals }
}

/// Decodes the tags in labels and metadata. A label that people set by hand is a tag like any
/// other.
pub(crate) fn decode(labels: &HashMap<String, String>, originals: Option<&str>) -> Tags {
    let originals = originals.and_then(|text| serde_json::from_str(text).ok());
    let mut tags: BTreeMap<String, String> = originals.unwrap_or_default();
    let shown = labels
        .iter()
        .filter(|(key, _)| !is_placeholder(key) && !key.starts_with(GOOGLE_PREFIX));
    tags.extend(shown.map(|(key, value)| (key.clone(), value.clone())));
    Tags::from_observed(tags)
}

/// Returns the label by which an instance with this tag is found.
///
/// The digest covers key and value, so that a filter by label selects few wrong instances. The
/// caller still has to compare the tags.
pub(crate) fn label(key: &str, value: &str) -> (String, String) {
    if fits_label(key, value) {
        return (key.to_owned(), value.to_owned());
    }
    let both = format!("{}:{key}{value}", key.len());
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, both.as_bytes())
        .simple()
        .to_string();
    let (name, digest) = (readable(key, READABLE_KEY_LENGTH), &digest[..16]);
    (
        format!("{PLACEHOLDER_PREFIX}{name}-{digest}"),
        readable(value, MAX_LABEL_LENGTH),
    )
}

/// Whether a label is the placeholder of a tag that is not a valid label.
pub(crate) fn is_placeholder(key: &str) -> bool {
    key.starts_with(PLACEHOLDER_PREFIX)
}

/// Whether a tag is a valid label, and cannot be confused with a placeholder or one of Google's
/// labels.
pub(crate) fn fits_label(key: &str, value: &str) -> bool {
    let inside = |text: &str| {
        let byte = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        };
        text.len() <= MAX_LABEL_LENGTH && text.bytes().all(byte)
    };
    let has_valid_start = key.starts_with(|first: char| first.is_ascii_lowercase());
    let taken = is_placeholder(key) || key.starts_with(GOOGLE_PREFIX);
    has_valid_start && !taken && inside(key) && inside(value)
}

/// Returns the part of `text` that a label can contain, for people to recognize.
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

    fn back(encoded: &EncodedTags) -> Tags {
        let labels = encoded.labels.clone().into_iter().collect();
        decode(&labels, encoded.originals.as_deref())
    }

    #[test]
    fn valid_labels_are_kept_and_other_tags_get_placeholders() {
        let tags = Tags::new()
            .with("fleet-id", "blue")
            .and_then(|tags| tags.with("ManagedBy", "the Kit"))
            .and_then(|tags| tags.with("team", "Zürich"))
            .unwrap();
        let encoded = encode(&tags);
        let labels: Vec<_> = encoded.labels.iter().collect();
        assert_eq!(labels[0].0, "fleet-id");
        assert!(labels[1].0.starts_with("fwx-managedby-"), "{labels:?}");
        assert_eq!(labels[1].1, "the-kit");
        assert_eq!(labels[2].1, "z-rich");
        assert_eq!(
            encoded.originals.as_deref(),
            Some(r#"{"ManagedBy":"the Kit","team":"Zürich"}"#)
        );
        assert_eq!(back(&encoded), tags);
    }

    #[test]
    fn placeholders_and_google_labels_are_not_tags() {
        let labels = [
            ("goog-gke-node", ""),
            ("fwx-team-000000000000", "x"),
            ("team", "red"),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let tags = decode(&HashMap::from(labels), Some(r#"{"team":"Zürich"}"#));
        let tags: Vec<_> = tags.iter().collect();
        assert_eq!(tags, [("team", "red")], "labels set by hand are tags");
        assert_eq!(decode(&HashMap::new(), Some("no JSON")), Tags::new());
    }

    #[test]
    fn reserved_keys_get_placeholders() {
        for key in ["goog-x", "fwx-a", "Team", "9lives", "a b", &"k".repeat(64)] {
            let (label, _) = label(key, "v");
            assert!(label.starts_with(PLACEHOLDER_PREFIX), "{key} is {label}");
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
                // The core refuses this tag.
                if let Ok(with) = tags.clone().with(key, value) {
                    tags = with;
                }
            }
            let encoded = encode(&tags);
            for (key, value) in &encoded.labels {
                prop_assert!(is_native_label(key, value), "{key}={value}");
            }
            prop_assert_eq!(encoded.labels.len(), tags.len());
            prop_assert_eq!(back(&encoded), tags);
        }
    }
}
