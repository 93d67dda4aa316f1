//! Ids and names of instances. Pure.
//!
//! Owns the format of both. An id contains project, zone, name and number: every call needs the
//! zone, people search for the name, and only the number is never reused.
//!
//! - id: `gce://my-project/us-central1-a/fw-0123456789abcdef01234567/4711`
//! - name of a launch: `fw-` and 24 hexadecimal digits, derived from the token or random
//! - names in a batch: the same, then with `-1`, `-2` and so on

use fleetwright::{InstanceId, LaunchToken, Zone};
use uuid::Uuid;

/// The scheme of an id, as in the provider ids of Kubernetes.
const SCHEME: &str = "gce://";

/// The prefix of every name that a launch creates.
const PREFIX: &str = "fw-";

/// The parts of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The id of the project.
    pub(crate) project: String,
    /// The zone by name, such as `us-central1-a`.
    pub(crate) zone: String,
    /// The name, which another instance can get after this one is deleted.
    pub(crate) name: String,
    /// Compute Engine's own id, which is never reused. Calls accept it in place of the name.
    pub(crate) number: u64,
}

impl Address {
    /// Parses an id. Returns `None` for an id that this crate did not issue.
    pub(crate) fn parse(id: &InstanceId) -> Option<Self> {
        let (project, zone, name, number) = parts(id)?;
        Some(Self {
            project: project.to_owned(),
            zone: zone.to_owned(),
            name: name.to_owned(),
            number,
        })
    }

    /// Formats the id. Returns `None` if it exceeds the length of an [`InstanceId`].
    pub(crate) fn id(&self) -> Option<InstanceId> {
        format_id(&self.project, &self.zone, &self.name, self.number)
    }
}

/// Returns the number in an id of `project`, without a copy of its other parts; `None` for any other id.
pub(crate) fn number_in(id: &InstanceId, project: &str) -> Option<u64> {
    let (of, _, _, number) = parts(id)?;
    (of == project).then_some(number)
}

/// Formats an id from its parts. Returns `None` if it exceeds the length of an [`InstanceId`].
pub(crate) fn format_id(project: &str, zone: &str, name: &str, number: u64) -> Option<InstanceId> {
    InstanceId::new(format!("{SCHEME}{project}/{zone}/{name}/{number}")).ok()
}

/// Returns project, zone, name and number of an id that this crate issued.
fn parts(id: &InstanceId) -> Option<(&str, &str, &str, u64)> {
    let mut parts = id.as_str().strip_prefix(SCHEME)?.split('/');
    let (project, zone, name) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = parts.next().filter(|_| parts.next().is_none())?;
    // One number has one form: without a sign and leading zeros.
    let is_canonical = digits == "0" || !digits.starts_with(['0', '+']);
    let number = digits.parse().ok().filter(|_| is_canonical)?;
    let is_valid = is_project(project) && is_name(zone) && is_name(name);
    is_valid.then_some((project, zone, name, number))
}

/// Returns the name of a token's instance. `item` is the index in a batch, 0 for a single launch. The
/// same token always gives the same names, and a single launch has the first name of a batch: one
/// token cannot be used for both.
pub(crate) fn name_of(token: &LaunchToken, item: u32) -> String {
    item_name(
        &format!("{PREFIX}{}", short(token.derive("gcp-name"))),
        item,
    )
}

/// Returns the name of an item of a batch whose first name is `first`.
pub(crate) fn item_name(first: &str, item: u32) -> String {
    match item {
        0 => first.to_owned(),
        item => format!("{first}-{item}"),
    }
}

/// Returns a unique name, for a launch without a token.
pub(crate) fn random_name() -> String {
    format!("{PREFIX}{}", short(Uuid::new_v4()))
}

/// Shortens a digest to 96 bits: enough to be unique, and short enough for many names in one
/// filter.
fn short(digest: Uuid) -> String {
    let mut text = digest.simple().to_string();
    text.truncate(24);
    text
}

/// Returns the regular expression that matches all names of a token, of single launches and of
/// batches. It cannot match the names of another token, because the digest has a fixed length.
pub(crate) fn pattern_of(token: &LaunchToken) -> String {
    pattern(&name_of(token, 0))
}

/// Returns the regular expression that matches all names of a batch whose first name is `first`.
pub(crate) fn pattern(first: &str) -> String {
    format!("{first}(-[0-9]+)?")
}

/// Returns the last part of a URL or path. Compute Engine returns zones, types and networks as
/// URLs, and accepts some of them only by name.
pub(crate) fn last_part(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

/// Returns the region of a zone: `us-central1` for `us-central1-a`.
pub(crate) fn region_of(zone: &Zone) -> &str {
    let name = zone.as_str();
    name.rsplit_once('-').map_or(name, |(region, _)| region)
}

/// Whether `text` is a valid name: at most 63 of `a-z0-9-`, with a letter at the start and no
/// hyphen at the end.
pub(crate) fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let has_valid_start = text.starts_with(|first: char| first.is_ascii_lowercase());
    has_valid_start && text.len() <= 63 && !text.ends_with('-') && text.bytes().all(inside)
}

/// Whether `text` is a valid project id, with or without a domain prefix.
pub(crate) fn is_project(text: &str) -> bool {
    let inside = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b':')
    };
    !text.is_empty() && text.len() <= 100 && text.bytes().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_malformed_ids_are_refused() {
        let address = Address {
            project: "example.com:fleet-1".to_owned(),
            zone: "us-central1-a".to_owned(),
            name: "fw-1".to_owned(),
            number: u64::MAX,
        };
        let id = address.id().unwrap();
        assert_eq!(
            id.as_str(),
            "gce://example.com:fleet-1/us-central1-a/fw-1/18446744073709551615"
        );
        assert_eq!(number_in(&id, "example.com:fleet-1"), Some(u64::MAX));
        assert_eq!(number_in(&id, "fleet-1"), None);
        assert_eq!(Address::parse(&id), Some(address));
        let zero = InstanceId::new("gce://p/z/n/0").unwrap();
        assert_eq!(number_in(&zero, "p"), Some(0));
        for odd in [
            "i-0123",
            "gce://p/z/n",
            "gce://p/z/n/1/2",
            "gce://p/z/n/x",
            "gce://p/z/n/01",
            "gce://p/z/n/+1",
            "gce://p/z/n/00",
            "gce://p/z/n/",
            "gce://p/z/n/18446744073709551616",
            "gce://p/z/N/1",
            "gce://p/../n/1",
            "gce:///z/n/1",
        ] {
            assert_eq!(
                Address::parse(&InstanceId::new(odd).unwrap()),
                None,
                "{odd}"
            );
        }
    }

    #[test]
    fn token_names_are_valid_and_match_only_their_pattern() {
        let (token, other) = (
            LaunchToken::new("golden").unwrap(),
            LaunchToken::new("Golden").unwrap(),
        );
        let (alone, item) = (name_of(&token, 0), name_of(&token, 4_294_967_295));
        for name in [&alone, &item, &random_name()] {
            assert!(is_name(name), "{name}");
        }
        assert!(item.starts_with(&format!("{alone}-")));
        assert_ne!(alone, name_of(&other, 0));
        assert_eq!(pattern_of(&token), format!("{alone}(-[0-9]+)?"));
        assert_ne!(random_name(), random_name());
    }

    #[test]
    fn urls_zones_and_names_are_parsed() {
        assert_eq!(last_part("https://x/zones/us-central1-a"), "us-central1-a");
        assert_eq!(last_part("us-central1-a"), "us-central1-a");
        let zone = Zone::new("europe-west4-b").unwrap();
        assert_eq!(region_of(&zone), "europe-west4");
        for (text, good) in [
            ("a", true),
            ("a-1", true),
            ("1a", false),
            ("a-", false),
            ("A", false),
        ] {
            assert_eq!(is_name(text), good, "{text}");
        }
        assert!(is_name(&"a".repeat(63)) && !is_name(&"a".repeat(64)));
    }
}
