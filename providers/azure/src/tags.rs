//! Tags: the limits of Azure, and the crate's own tags. Pure.
//!
//! Owns the names of these tags. A launch adopts a machine only if it has the first two.
//!
//! | tag | value |
//! | --- | --- |
//! | `fleetwright:owner` | a digest of the launch token |
//! | `fleetwright:config` | the fingerprint of the config and the number of machines |
//! | `fleetwright:source` | on images: the VM id of the source machine |
//!
//! They are hidden from callers, and are kept when a caller changes tags.

use std::{collections::BTreeMap, num::NonZeroU32};

use fleetwright::{Fingerprint, InvalidValue, KeyCase, LaunchToken, TagLimits, Tags};
use uuid::Uuid;

/// The tag with the owner mark: a digest of the launch token.
pub(crate) const OWNER: &str = "fleetwright:owner";

/// The tag with the fingerprint of the config, and the number of machines of the launch.
pub(crate) const CONFIG: &str = "fleetwright:config";

/// The tag of an image with the VM id of its machine.
pub(crate) const SOURCE: &str = "fleetwright:source";

/// The largest number of tags of a resource.
const MAX_TAGS: usize = 50;

/// How many of them this crate sets on a machine.
const OWN_TAGS: usize = 2;

/// Returns the limits for the tags of callers, if the launch config itself sets `own` tags on every machine.
pub(crate) fn limits(own: usize) -> TagLimits {
    let mut limits = TagLimits::new(MAX_TAGS.saturating_sub(OWN_TAGS + own), 512, 256);
    "<>%&\\?/".clone_into(&mut limits.forbidden_in_keys);
    limits.key_case = KeyCase::Folded;
    limits.reserved_prefixes = ["microsoft", "azure", "windows"].map(str::to_owned).into();
    limits
}

/// Checks the tags of a launch config.
pub(crate) fn check_own(own: &BTreeMap<String, String>) -> Result<(), InvalidValue> {
    let mut tags = Tags::new();
    for (key, value) in own {
        tags.insert(key.as_str(), value.as_str())?;
    }
    limits(0).check(&tags)
}

/// Returns the owner mark of a token. It does not reveal the token to people who can read tags.
pub(crate) fn owner(token: &LaunchToken) -> String {
    token.derive("azure-owner").simple().to_string()
}

/// Returns all tags of a launch: those of the launch config (`own`), those of the caller (`tags`) and,
/// with a token, those of this crate.
pub(crate) fn encode(
    own: &BTreeMap<String, String>,
    tags: &Tags,
    launch: Option<(&LaunchToken, Fingerprint, NonZeroU32)>,
) -> BTreeMap<String, String> {
    let mut all = own.clone();
    // Names that differ only in case are the same tag to Azure. The caller's tag replaces that of the
    // launch config.
    for (key, value) in tags {
        all.retain(|other, _| !same_name(other, key));
        all.insert(key.to_owned(), value.to_owned());
    }
    if let Some((token, config, count)) = launch {
        all.insert(OWNER.to_owned(), owner(token));
        all.insert(CONFIG.to_owned(), format!("{}:{count}", config.as_uuid()));
    }
    all
}

/// Returns the fingerprint of the config that a machine was launched with, and the number of
/// machines of the launch.
pub(crate) fn config_of(tags: &BTreeMap<String, String>) -> Option<(Fingerprint, u32)> {
    let (config, count) = value(tags, CONFIG)?.split_once(':')?;
    let config = Fingerprint::from_uuid(Uuid::parse_str(config).ok()?);
    Some((config, count.parse().ok()?))
}

/// Returns the value of one of this crate's tags. Azure may return its name in another letter case.
pub(crate) fn value<'a>(tags: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    let mut found = tags.iter().filter(|(key, _)| same_name(key, name));
    found.next().map(|(_, value)| value.as_str())
}

/// Returns all tags after a change: `after`, and the hidden ones of `before` as they were.
pub(crate) fn apply_change(
    before: &BTreeMap<String, String>,
    after: &Tags,
) -> BTreeMap<String, String> {
    let shown = Tags::from_observed(before.clone());
    let kept = before.iter().filter(|(key, _)| shown.get(key).is_none());
    let kept = kept.map(|(key, value)| (key.clone(), value.clone()));
    let given = after
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    kept.chain(given).collect()
}

/// Returns `tags` without those of the launch config, which do not count against the limit of
/// callers.
pub(crate) fn without_own(tags: &Tags, own: &BTreeMap<String, String>) -> Tags {
    let others = tags
        .iter()
        .filter(|(key, _)| !own.keys().any(|own_key| same_name(own_key, key)));
    Tags::from_observed(others.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

/// Whether two names are the same tag to Azure.
fn same_name(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::InstanceConfig;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn launch_has_owner_and_config_marks() {
        let token = LaunchToken::new("golden").unwrap();
        let config = InstanceConfig::builder("a:b:c:d", "Standard_B1s")
            .build()
            .unwrap();
        let config = config.fingerprint(NonZeroU32::MIN);
        let tags = Tags::new().with("team", "Blue").unwrap();
        let own = map(&[("Team", "red"), ("site", "x")]);
        let all = encode(&own, &tags, Some((&token, config, NonZeroU32::MIN)));
        assert_eq!(
            value(&all, "FLEETWRIGHT:owner"),
            Some(owner(&token).as_str())
        );
        assert_eq!(config_of(&all), Some((config, 1)));
        assert_eq!(value(&all, "team"), Some("Blue"));
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(!all.values().any(|value| value.contains("golden")));
        let shown = Tags::from_observed(all.clone());
        assert_eq!(shown.len(), 2, "the marks are hidden");
        let after = Tags::new().with("new", "").unwrap();
        let mut before = all.clone();
        before.insert("fleetwright:later".to_owned(), "x".to_owned());
        let replaced = apply_change(&before, &after);
        assert_eq!(config_of(&replaced), Some((config, 1)));
        assert_eq!((replaced.len(), value(&replaced, "new")), (4, Some("")));
        let others = without_own(&shown, &map(&[("TEAM", "")]));
        assert_eq!(others.iter().collect::<Vec<_>>(), [("site", "x")]);
    }

    #[test]
    fn tags_that_azure_would_change_or_refuse_are_refused() {
        let limits = limits(1);
        let with = |pairs: &[(&str, &str)]| {
            let add = |tags: Tags, (key, value): &(&str, &str)| tags.with(*key, *value).unwrap();
            limits.check(&pairs.iter().fold(Tags::new(), add))
        };
        assert!(with(&[("Größe", ""), ("with space", "a/b?<>")]).is_ok());
        assert!(with(&[("Owner", "a"), ("owner", "b")]).is_err());
        for odd in [
            "a/b",
            "a<b",
            "a%b",
            "a&b",
            "a\\b",
            "a?b",
            "Microsoft.x",
            "azure-x",
        ] {
            assert!(with(&[(odd, "")]).is_err(), "{odd}");
        }
        assert_eq!(limits.max_tags, 47);
        assert!(check_own(&map(&[("fleetwright:owner", "me")])).is_err());
    }
}
