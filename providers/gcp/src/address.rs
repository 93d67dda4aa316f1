//! Where an instance is, and the names that launches give. Pure.
//!
//! Owns the form of ids and names. An id carries project, zone, name and number, because every call
//! needs the zone, a person looks for the name, and only the number is never used again.

use fleetwright::{InstanceId, LaunchToken, Zone};
use uuid::Uuid;

/// What an id starts with, as in Kubernetes' provider ids.
const SCHEME: &str = "gce://";

/// What the names of launches start with.
const PREFIX: &str = "fw-";

/// All that an id carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) project: String,
    pub(crate) zone: String,
    pub(crate) name: String,
    /// Compute Engine's own id. It takes it wherever it takes the name, and means one instance by it.
    pub(crate) number: u64,
}

impl Address {
    /// What `id` says, if it is one of ours.
    pub(crate) fn parse(id: &InstanceId) -> Option<Self> {
        let parts: Vec<_> = id.as_str().strip_prefix(SCHEME)?.split('/').collect();
        let [project, zone, name, number] = parts[..] else {
            return None;
        };
        let canonical = |number: &u64| number.to_string() == parts[3];
        let number = number.parse().ok().filter(canonical)?;
        (is_project(project) && is_name(zone) && is_name(name)).then(|| Self {
            project: project.to_owned(),
            zone: zone.to_owned(),
            name: name.to_owned(),
            number,
        })
    }

    pub(crate) fn id(&self) -> Option<InstanceId> {
        let Self {
            project,
            zone,
            name,
            number,
        } = self;
        InstanceId::new(format!("{SCHEME}{project}/{zone}/{name}/{number}")).ok()
    }
}

/// The name of what a token launches; `item` is its place in a batch.
pub(crate) fn name_of(token: &LaunchToken, item: Option<u32>) -> String {
    let stem = short(token.derive("gcp-name"));
    match item {
        Some(item) => format!("{PREFIX}{stem}-{item}"),
        None => format!("{PREFIX}{stem}"),
    }
}

/// A name that nobody else has.
pub(crate) fn random_name() -> String {
    format!("{PREFIX}{}", short(Uuid::new_v4()))
}

/// Ninety bits of chance are enough to tell names apart, and leave room for many in a filter.
fn short(digest: Uuid) -> String {
    let mut text = digest.simple().to_string();
    text.truncate(24);
    text
}

/// The expression that matches the names of all that a token launched, alone or in a batch.
pub(crate) fn pattern_of(token: &LaunchToken) -> String {
    format!("{}(-[0-9]+)?", name_of(token, None))
}

/// The last part of a URL or path: Compute Engine shows zones, types and networks as URLs, and takes
/// some of them by name only.
pub(crate) fn last_part(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

/// The region of a zone: `us-central1` of `us-central1-a`.
pub(crate) fn region_of(zone: &Zone) -> &str {
    let name = zone.as_str();
    name.rsplit_once('-').map_or(name, |(region, _)| region)
}

/// Whether `text` is a name as Compute Engine takes it: at most 63 of `a-z0-9-`, a letter in front, no
/// hyphen at the end.
pub(crate) fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let starts_well = text.starts_with(|first: char| first.is_ascii_lowercase());
    starts_well && text.len() <= 63 && !text.ends_with('-') && text.bytes().all(inside)
}

/// Whether `text` is a project id, with or without a domain in front.
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
    fn an_id_goes_both_ways_and_nothing_else_is_one() {
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
        assert_eq!(Address::parse(&id), Some(address));
        for odd in [
            "i-0123",
            "gce://p/z/n",
            "gce://p/z/n/1/2",
            "gce://p/z/n/x",
            "gce://p/z/n/01",
            "gce://p/z/n/+1",
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
    fn a_token_s_names_are_names_and_its_pattern_finds_them_only() {
        let (token, other) = (
            LaunchToken::new("golden").unwrap(),
            LaunchToken::new("Golden").unwrap(),
        );
        let (alone, item) = (name_of(&token, None), name_of(&token, Some(4_294_967_295)));
        for name in [&alone, &item, &random_name()] {
            assert!(is_name(name), "{name}");
        }
        assert!(item.starts_with(&format!("{alone}-")));
        assert_ne!(alone, name_of(&other, None));
        assert_eq!(pattern_of(&token), format!("{alone}(-[0-9]+)?"));
        assert_ne!(random_name(), random_name());
    }

    #[test]
    fn urls_and_zones_are_taken_apart() {
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
