//! Where a machine is, and the names that launches give. Pure.
//!
//! Owns the form of ids, names and resource ids. An id carries the resource id, because a person looks for
//! it; Azure's own id of the machine, because a name is used again; when it was made, because Azure keeps
//! no record of what is gone and only its age tells that from what is not shown yet; and a check of all
//! that, so that an id that was never given is not taken for one that was.

use std::time::Duration;

use chrono::{DateTime, Utc};
use fleetwright::{InstanceId, LaunchToken, NetworkId, SecurityGroupId};
use uuid::Uuid;

use crate::AzureLaunchConfig;

/// What an id starts with, as in Kubernetes' provider ids.
const SCHEME: &str = "azure://";

/// The kind of resource that an id is of.
const MACHINES: &str = "/providers/Microsoft.Compute/virtualMachines/";

/// What the names of launches start with.
const PREFIX: &str = "fw-";

/// How far our clock may be from Azure's, which says no fractions of a second, and be the same.
const SKEW_MILLIS: i64 = 2000;

/// All that an id carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) subscription: String,
    pub(crate) group: String,
    pub(crate) name: String,
    /// Azure's own id, which is never used again.
    pub(crate) vm_id: String,
    /// When it was made, in milliseconds since 1970.
    pub(crate) made: i64,
}

impl Address {
    /// What `id` says, if it is one that we gave.
    pub(crate) fn parse(id: &InstanceId) -> Option<Self> {
        let rest = id.as_str().strip_prefix(SCHEME)?;
        let (path, tail) = rest.split_once('#')?;
        let (groups, name) = path.split_once(MACHINES)?;
        let groups = groups.strip_prefix("/subscriptions/")?;
        let (subscription, group) = groups.split_once("/resourceGroups/")?;
        let mut tail = tail.split('.');
        let (Some(vm_id), Some(made), Some(_), None) =
            (tail.next(), tail.next(), tail.next(), tail.next())
        else {
            return None;
        };
        let at = Self {
            subscription: subscription.to_owned(),
            group: group.to_owned(),
            name: name.to_owned(),
            vm_id: vm_id.to_owned(),
            made: made.parse().ok()?,
        };
        let formed = is_guid(subscription) && is_group(group) && is_name(name) && is_guid(vm_id);
        // The check is of the whole text, so that it says what we wrote and nothing that only means the same.
        (formed && at.id().as_ref() == Some(id)).then_some(at)
    }

    pub(crate) fn id(&self) -> Option<InstanceId> {
        let text = format!(
            "{SCHEME}{}#{}.{}",
            machine_path(&self.subscription, &self.group, &self.name),
            self.vm_id,
            self.made
        );
        let check = Uuid::new_v5(&Uuid::NAMESPACE_URL, text.as_bytes());
        let check = check.simple().to_string();
        InstanceId::new(format!("{text}.{}", &check[..8])).ok()
    }

    /// Whether it was made so lately, at `now`, that a read may not show it yet. Nobody knows how old one is of which
    /// Azure did not say when it was made.
    pub(crate) fn is_younger(&self, window: Duration, now: DateTime<Utc>) -> bool {
        let age = now.timestamp_millis().saturating_sub(self.made);
        self.made == 0 || age < 0 || u128::from(age.unsigned_abs()) < window.as_millis()
    }
}

/// The time at Azure's: ours, which is finer, unless what Azure says is another one.
pub(crate) fn moment(told: Option<DateTime<Utc>>) -> DateTime<Utc> {
    let ours = Utc::now();
    told.map_or(ours, |told| shifted(ours, told - ours))
}

/// A time of ours at Azure's, whose clock is `ahead` of ours.
pub(crate) fn shifted(ours: DateTime<Utc>, ahead: chrono::Duration) -> DateTime<Utc> {
    if ahead.num_milliseconds().abs() <= SKEW_MILLIS {
        return ours;
    }
    ours.checked_add_signed(ahead).unwrap_or(ours)
}

/// The resource id of a machine.
pub(crate) fn machine_path(subscription: &str, group: &str, name: &str) -> String {
    format!("/subscriptions/{subscription}/resourceGroups/{group}{MACHINES}{name}")
}

/// A resource id as it is compared: Azure shows its letters in any case.
pub(crate) fn folded(path: &str) -> String {
    path.to_ascii_lowercase()
}

/// The name of what a token launches; `item` is its place in a batch.
pub(crate) fn name_of(token: &LaunchToken, item: u32) -> String {
    format!("{}{item}", stem_of(token))
}

/// What the names of all that a token launched begin with.
pub(crate) fn stem_of(token: &LaunchToken) -> String {
    format!("{PREFIX}{}-", short(token.derive("azure-name")))
}

/// A name that nobody else has.
pub(crate) fn random_name() -> String {
    format!("{PREFIX}{}", short(Uuid::new_v4()))
}

/// Ninety bits of chance are enough to tell names apart, and leave names that are hosts' too.
fn short(digest: Uuid) -> String {
    let mut text = digest.simple().to_string();
    text.truncate(24);
    text
}

/// The resource id of a subnet, which is given so or as `network/subnet`.
pub(crate) fn subnet(config: &AzureLaunchConfig, subnet: &NetworkId) -> Option<String> {
    let text = subnet.as_str();
    if text.starts_with('/') {
        return is_resource(text, "/virtualnetworks/").then(|| text.to_owned());
    }
    let (network, subnet) = text.split_once('/')?;
    (is_name(network) && is_name(subnet)).then(|| {
        let path = format!("virtualNetworks/{network}/subnets/{subnet}");
        network_path(config, &path)
    })
}

/// The resource id of a network security group, which is given so or by name.
pub(crate) fn security_group(
    config: &AzureLaunchConfig,
    group: &SecurityGroupId,
) -> Option<String> {
    let text = group.as_str();
    if text.starts_with('/') {
        return is_resource(text, "/networksecuritygroups/").then(|| text.to_owned());
    }
    is_name(text).then(|| network_path(config, &format!("networkSecurityGroups/{text}")))
}

fn network_path(config: &AzureLaunchConfig, rest: &str) -> String {
    let AzureLaunchConfig {
        subscription,
        resource_group,
        ..
    } = config;
    format!(
        "/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/Microsoft.Network/{rest}"
    )
}

/// The last part of a resource id.
pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_resource(text: &str, kind: &str) -> bool {
    let folded = folded(text);
    let clean = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'%' | b'\\');
    folded.starts_with("/subscriptions/")
        && folded.contains(kind)
        && text.bytes().all(clean)
        && !text.contains("/.")
}

/// Whether `text` is a GUID in its common form.
pub(crate) fn is_guid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// Whether `text` can be the name of a resource group, and a part of a URL as it is.
pub(crate) fn is_group(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.()".contains(&byte);
    (1..=90).contains(&text.len()) && text.bytes().all(inside) && !text.ends_with('.')
}

/// Whether `text` can be the name of a machine or of another resource, and a part of a URL as it is.
pub(crate) fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=80).contains(&text.len())
        && text.bytes().all(inside)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !text.ends_with(['.', '-'])
}

/// Whether `text` is one word, as locations and zones are.
pub(crate) fn is_word(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    const SUBSCRIPTION: &str = "00000000-0000-0000-0000-00000000000a";
    const VM_ID: &str = "61ca152e-8a94-4455-b97f-c3ec52a06884";

    fn address() -> Address {
        Address {
            subscription: SUBSCRIPTION.to_owned(),
            group: "rg (1)".replace(' ', "_"),
            name: "fw-1".to_owned(),
            vm_id: VM_ID.to_owned(),
            made: 1_790_000_000_000,
        }
    }

    #[test]
    fn an_id_goes_both_ways_and_nothing_else_is_one() {
        let id = address().id().unwrap();
        let path = machine_path(SUBSCRIPTION, "rg_(1)", "fw-1");
        let start = format!("azure://{path}#{VM_ID}.1790000000000.");
        assert!(id.as_str().starts_with(&start), "{id}");
        assert_eq!(Address::parse(&id), Some(address()));
        let text = id.as_str();
        let odd = [
            "i-0123".to_owned(),
            text[..text.len() - 9].to_owned(),
            text.replace("1790000000000", "1790000000001"),
            text.replace("fw-1", "fw-2"),
            text.replace("fw-1", "../fw-1"),
            text.replace(VM_ID, &VM_ID.to_uppercase()),
            text.replace(".1790000000000", ".01790000000000"),
            format!("{text}.1"),
        ];
        for odd in odd {
            let id = InstanceId::new(&odd).unwrap();
            assert_eq!(Address::parse(&id), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_parsing_panic(text in "\\PC{0,200}") {
            if let Ok(id) = InstanceId::new(&text) {
                prop_assert_eq!(Address::parse(&id), None);
            }
        }
    }

    #[test]
    fn a_machine_is_young_for_the_window_by_the_clock_that_is_asked() {
        let window = Duration::from_secs(20);
        let at = |millis: i64| DateTime::from_timestamp_millis(1_790_000_000_000 + millis).unwrap();
        for (millis, young) in [(-60_000, true), (0, true), (19_999, true), (20_000, false)] {
            assert_eq!(address().is_younger(window, at(millis)), young, "{millis}");
        }
        let undated = Address {
            made: 0,
            ..address()
        };
        assert!(undated.is_younger(window, at(0)));
        let ours = Utc::now();
        let told = ours - chrono::Duration::milliseconds(900);
        assert!(moment(Some(told)) >= ours, "the same clock");
        let told = ours - chrono::Duration::hours(1);
        assert_eq!(moment(Some(told)), told);
    }

    #[test]
    fn a_token_s_names_are_names_and_its_stem_is_its_own() {
        let (token, other) = (
            LaunchToken::new("golden").unwrap(),
            LaunchToken::new("Golden").unwrap(),
        );
        for name in [name_of(&token, 0), name_of(&token, u32::MAX), random_name()] {
            assert!(is_name(&name) && name.len() <= 64, "{name}");
        }
        assert!(name_of(&token, 7).starts_with(&stem_of(&token)));
        assert_ne!(stem_of(&token), stem_of(&other));
        assert!(!random_name().starts_with(&stem_of(&token)));
    }

    #[test]
    fn networks_and_groups_are_found_by_name_and_by_resource_id() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ";
        let net = NetworkId::new("vnet/default").unwrap();
        let config = AzureLaunchConfig::new(SUBSCRIPTION, "rg", "eastus", net.clone(), key);
        let path = subnet(&config, &net).unwrap();
        assert!(path.ends_with("/Microsoft.Network/virtualNetworks/vnet/subnets/default"));
        let again = NetworkId::new(&path).unwrap();
        assert_eq!(subnet(&config, &again), Some(path));
        let group = security_group(&config, &SecurityGroupId::new("nsg").unwrap()).unwrap();
        assert!(group.ends_with("/networkSecurityGroups/nsg"));
        let odd = SecurityGroupId::new(format!("{group}/../x?y")).unwrap();
        assert_eq!(security_group(&config, &odd), None);
        assert_eq!(last_part(&group), "nsg");
    }
}
