//! Tags: what Azure can hold, and the two that say whose a machine is. Pure.
//!
//! Owns the names of our own tags. A machine is adopted only if it carries them.

use std::{collections::BTreeMap, num::NonZeroU32};

use fleetwright::{Fingerprint, InvalidValue, KeyCase, LaunchToken, TagLimits, Tags};
use uuid::Uuid;

/// The tag with the digest of the token that launched a machine.
pub(crate) const OWNER: &str = "fleetwright:owner";

/// The tag with the fingerprint of the config that it was launched with, and how many it was a launch of.
pub(crate) const CONFIG: &str = "fleetwright:config";

/// The tag of an image with the id of the machine that it was made of.
pub(crate) const SOURCE: &str = "fleetwright:source";

/// The most tags of a resource.
const MAX_TAGS: usize = 50;

/// How many of them we need.
const OURS: usize = 2;

/// What a tag can be where `own` are set on everything.
pub(crate) fn limits(own: usize) -> TagLimits {
    let mut limits = TagLimits::new(MAX_TAGS.saturating_sub(OURS + own), 512, 256);
    "<>%&\\?/".clone_into(&mut limits.forbidden_in_keys);
    limits.key_case = KeyCase::Folded;
    limits.reserved_prefixes = ["microsoft", "azure", "windows"].map(str::to_owned).into();
    limits
}

/// Whether tags of a launch config can be set on everything.
pub(crate) fn check_own(own: &BTreeMap<String, String>) -> Result<(), InvalidValue> {
    let mut tags = Tags::new();
    for (key, value) in own {
        tags.insert(key.as_str(), value.as_str())?;
    }
    limits(0).check(&tags)
}

/// Whose launch it is, as a tag says it: a token can be a secret to others who may read tags.
pub(crate) fn owner(token: &LaunchToken) -> String {
    token.derive("azure-owner").simple().to_string()
}

/// All tags of a launch.
pub(crate) fn written(
    own: &BTreeMap<String, String>,
    tags: &Tags,
    launch: Option<(&LaunchToken, Fingerprint, NonZeroU32)>,
) -> BTreeMap<String, String> {
    let mut all = own.clone();
    // A launch's own tag takes the place of one that differs only in case, which would be the same one.
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

/// The fingerprint of the config that a machine was launched with, and how many it was a launch of.
pub(crate) fn config_of(tags: &BTreeMap<String, String>) -> Option<(Fingerprint, u32)> {
    let (config, count) = value(tags, CONFIG)?.split_once(':')?;
    let config = Fingerprint::from_uuid(Uuid::parse_str(config).ok()?);
    Some((config, count.parse().ok()?))
}

/// The value of one of our tags, whatever case its name has come back in.
pub(crate) fn value<'a>(tags: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    let mut found = tags.iter().filter(|(key, _)| same_name(key, name));
    found.next().map(|(_, value)| value.as_str())
}

/// What a change leaves: the tags of a caller as they are to be, and those that callers never see as they were.
pub(crate) fn replaced(
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

/// Those of `tags` that are not set on everything, which have their own room.
pub(crate) fn without_own(tags: &Tags, own: &BTreeMap<String, String>) -> Tags {
    let others = tags
        .iter()
        .filter(|(key, _)| !own.keys().any(|one| same_name(one, key)));
    Tags::from_observed(others.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

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
    fn a_launch_carries_whose_it_is_and_what_it_asked_for() {
        let token = LaunchToken::new("golden").unwrap();
        let config = InstanceConfig::builder("a:b:c:d", "Standard_B1s")
            .build()
            .unwrap();
        let config = config.fingerprint(NonZeroU32::MIN);
        let tags = Tags::new().with("team", "Blue").unwrap();
        let own = map(&[("Team", "red"), ("site", "x")]);
        let all = written(&own, &tags, Some((&token, config, NonZeroU32::MIN)));
        assert_eq!(
            value(&all, "FLEETWRIGHT:owner"),
            Some(owner(&token).as_str())
        );
        assert_eq!(config_of(&all), Some((config, 1)));
        assert_eq!(value(&all, "team"), Some("Blue"));
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(!all.values().any(|value| value.contains("golden")));
        let shown = Tags::from_observed(all.clone());
        assert_eq!(shown.len(), 2, "ours are not shown");
        let after = Tags::new().with("new", "").unwrap();
        let mut before = all.clone();
        before.insert("fleetwright:later".to_owned(), "x".to_owned());
        let replaced = replaced(&before, &after);
        assert_eq!(config_of(&replaced), Some((config, 1)));
        assert_eq!((replaced.len(), value(&replaced, "new")), (4, Some("")));
        let others = without_own(&shown, &map(&[("TEAM", "")]));
        assert_eq!(others.iter().collect::<Vec<_>>(), [("site", "x")]);
    }

    #[test]
    fn what_azure_would_alter_or_refuse_is_refused_first() {
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
