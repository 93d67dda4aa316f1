//! The rules of labels and metadata, and the fingerprints that a change must name.
//!
//! The refusals here are all 400 `invalid`, with the path of the field.

use base64::{Engine as _, engine::general_purpose::URL_SAFE};

use super::record::Labels;
use crate::gcp::error::Refusal;

/// The maximum number of labels of a resource.
const MAX_LABELS: usize = 64;
/// The maximum length of a label's key or value, in characters.
const MAX_LABEL_CHARS: usize = 63;
/// The length in bytes that the key of a metadata entry must stay below.
const KEY_BYTES_LIMIT: usize = 128;
/// The maximum size of the value of a metadata entry, in bytes.
const MAX_VALUE_BYTES: usize = 256 * 1024;
/// The maximum size of all metadata of an instance, keys and values together, in bytes.
const MAX_METADATA_BYTES: usize = 512 * 1024;

/// The metadata entries, in the order of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata(pub(crate) Vec<(String, String)>);

/// Refuses labels that Compute Engine does not accept. `field` is the path of the labels in the
/// body.
///
/// A key begins with a letter. Keys and values have at most 63 characters: letters that are not
/// upper case, digits, underscores and dashes. A value can be empty.
pub(crate) fn check_labels(field: &str, labels: &Labels) -> Result<(), Refusal> {
    if labels.len() > MAX_LABELS {
        let problem = format!("The number of labels must be at most {MAX_LABELS}.");
        return Err(Refusal::invalid(field, &labels.len().to_string(), &problem));
    }
    for (key, value) in labels {
        if !is_label(key) || !key.starts_with(|first: char| first.is_alphabetic()) {
            let problem = "Label keys must begin with a letter, be at most 63 characters long, and have only lowercase \
                       letters, numeric characters, underscores and dashes.";
            return Err(Refusal::invalid(&format!("{field}.{key}"), key, problem));
        }
        if !is_label(value) {
            let problem = "Label values must be at most 63 characters long, and have only lowercase letters, numeric \
                       characters, underscores and dashes.";
            return Err(Refusal::invalid(&format!("{field}.{key}"), value, problem));
        }
    }
    Ok(())
}

/// Returns whether a text has only the characters of a label. International letters are accepted,
/// unless they are upper case.
fn is_label(text: &str) -> bool {
    let ok = |c: char| (c.is_alphanumeric() && !c.is_uppercase()) || matches!(c, '_' | '-');
    text.chars().count() <= MAX_LABEL_CHARS && text.chars().all(ok)
}

/// Refuses metadata that Compute Engine does not accept. `field` is the path of the metadata in
/// the body.
///
/// Keys match `[a-zA-Z0-9-_]{1,127}` and do not repeat; the sizes are limited.
pub(crate) fn check_metadata(field: &str, metadata: &Metadata) -> Result<(), Refusal> {
    let mut size = 0;
    let mut keys = std::collections::BTreeSet::new();
    for (number, (key, value)) in metadata.0.iter().enumerate() {
        let ok = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if key.is_empty() || key.len() >= KEY_BYTES_LIMIT || !key.bytes().all(ok) {
            let problem = "Must be a match of regex '[a-zA-Z0-9-_]{1,127}'";
            return Err(Refusal::invalid(
                &format!("{field}.items[{number}].key"),
                key,
                problem,
            ));
        }
        if value.len() > MAX_VALUE_BYTES {
            let problem =
                format!("Value is too large: at most {MAX_VALUE_BYTES} bytes are allowed.");
            let field = format!("{field}.items[{number}].value");
            return Err(Refusal::invalid(
                &field,
                &format!("{} bytes", value.len()),
                &problem,
            ));
        }
        if !keys.insert(key) {
            let problem = format!("Metadata has duplicate key: {key}");
            return Err(Refusal::invalid(field, key, &problem));
        }
        size += key.len() + value.len();
    }
    if size > MAX_METADATA_BYTES {
        let problem =
            format!("Metadata is too large: at most {MAX_METADATA_BYTES} bytes are allowed.");
        return Err(Refusal::invalid(field, &format!("{size} bytes"), &problem));
    }
    Ok(())
}

/// Returns the fingerprint that a change of labels must name.
pub(crate) fn label_fingerprint(labels: &Labels) -> String {
    fingerprint(labels.iter().flat_map(|(key, value)| [key, value]))
}

impl Metadata {
    /// Returns the fingerprint that a change of metadata must name.
    pub(crate) fn fingerprint(&self) -> String {
        fingerprint(self.0.iter().flat_map(|(key, value)| [key, value]))
    }
}

/// Converts a fingerprint to URL-safe base64, because clients may write bytes in either alphabet.
pub(crate) fn to_url_safe(fingerprint: &str) -> String {
    fingerprint.replace('+', "-").replace('/', "_")
}

/// Returns a fingerprint of some texts: eight bytes in URL-safe base64, which change with any text
/// and with their boundaries.
pub(crate) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    // FNV-1a: every document has several fingerprints, and they need not be unpredictable.
    let mut fingerprint = 0xcbf2_9ce4_8422_2325_u64;
    for text in texts {
        let length = (text.len() as u64).to_be_bytes();
        for byte in length.iter().chain(text.as_bytes()) {
            fingerprint = (fingerprint ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    // Google's JSON uses URL-safe base64; its own clients refuse the other alphabet.
    URL_SAFE.encode(fingerprint.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn labels_are_small_letters_digits_and_two_marks() {
        let long = "a".repeat(63);
        for good in [("a", ""), ("a_b-1", "9-_z"), ("é", "ü"), (&long, &long)] {
            assert_eq!(check_labels("labels", &labels(&[good])), Ok(()), "{good:?}");
        }
        let longer = "a".repeat(64);
        for bad in [
            ("", "v"),
            ("1a", "v"),
            ("-a", "v"),
            ("A", "v"),
            ("a.b", "v"),
            ("a", "V"),
            ("a", "x y"),
            (&longer, "v"),
            ("a", &longer),
        ] {
            let refusal = check_labels("labels", &labels(&[bad])).unwrap_err();
            assert_eq!(
                (refusal.status, &*refusal.reason),
                (400, "invalid"),
                "{bad:?}"
            );
        }
        let many = |count: usize| {
            (0..count)
                .map(|n| (format!("k{n}"), String::new()))
                .collect()
        };
        assert!(check_labels("labels", &many(64)).is_ok());
        assert!(check_labels("labels", &many(65)).is_err());
    }

    #[test]
    fn metadata_has_limits() {
        let one = |key: &str, size: usize| Metadata(vec![(key.to_owned(), "x".repeat(size))]);
        assert!(check_metadata("m", &one("startup-script", MAX_VALUE_BYTES)).is_ok());
        assert!(check_metadata("m", &one("a", MAX_VALUE_BYTES + 1)).is_err());
        assert!(check_metadata("m", &one("a.b", 1)).is_err());
        assert!(check_metadata("m", &one("", 1)).is_err());
        assert!(check_metadata("m", &one(&"k".repeat(128), 1)).is_err());
        let mut two = one("a", MAX_VALUE_BYTES);
        two.0.push(("b".to_owned(), "x".repeat(MAX_VALUE_BYTES)));
        assert!(check_metadata("m", &two).is_err());
        two.0[1] = ("a".to_owned(), String::new());
        assert!(check_metadata("m", &two).is_err());
    }

    #[test]
    fn fingerprints_follow_the_contents() {
        let (a, b) = (labels(&[("a", "bc")]), labels(&[("ab", "c")]));
        assert_ne!(label_fingerprint(&a), label_fingerprint(&b));
        assert_eq!(label_fingerprint(&a), label_fingerprint(&a.clone()));
        assert_eq!(label_fingerprint(&a).len(), 12);
        assert_eq!(to_url_safe("a+/="), "a-_=");
    }
}
