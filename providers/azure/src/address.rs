//! Ids, names and resource ids. Pure.
//!
//! Owns their formats. An id contains the resource id, which people search for; Azure's own id of
//! the machine, because names are reused; the creation time, because Azure keeps no record of
//! deleted machines, and only the age distinguishes a deleted machine from one that does not show
//! yet; and a checksum, so that an id that was never issued is not taken for an issued one.
//!
//! - id: `azure://<resource id>#<vmId>.<milliseconds>.<checksum>`
//! - name of a launch: `fw-` and 24 hexadecimal digits, derived from the token or random
//! - name of a token's machine: the same, with `-0`, `-1` and so on

use std::time::Duration;

use chrono::{DateTime, Utc};
use fleetwright::{InstanceId, LaunchToken, NetworkId, SecurityGroupId};
use uuid::Uuid;

use crate::AzureLaunchConfig;

/// The scheme of an id, as in the provider ids of Kubernetes.
const SCHEME: &str = "azure://";

/// The resource type in the resource id of a machine.
const MACHINES: &str = "/providers/Microsoft.Compute/virtualMachines/";

/// The prefix of every name that a launch creates.
const PREFIX: &str = "fw-";

/// The number of hexadecimal digits in a name.
const DIGITS: usize = 24;

/// Up to how many milliseconds our clock and Azure's count as equal. Azure reports whole seconds.
const SKEW_MILLIS: i64 = 2000;

/// The parts of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The subscription, in lower case.
    pub(crate) subscription: String,
    /// The resource group, in lower case.
    pub(crate) group: String,
    /// The name, which another machine can get after this one is deleted.
    pub(crate) name: String,
    /// Azure's own id, which is never reused.
    pub(crate) vm_id: String,
    /// The creation time in milliseconds since 1970; 0 if Azure did not report it.
    pub(crate) created: i64,
}

impl Address {
    /// Parses an id. Returns `None` for an id that this crate did not issue.
    pub(crate) fn parse(id: &InstanceId) -> Option<Self> {
        let rest = id.as_str().strip_prefix(SCHEME)?;
        let (path, tail) = rest.split_once('#')?;
        let (groups, name) = path.split_once(MACHINES)?;
        let groups = groups.strip_prefix("/subscriptions/")?;
        let (subscription, group) = groups.split_once("/resourceGroups/")?;
        let mut tail = tail.split('.');
        let (Some(vm_id), Some(created), Some(_), None) =
            (tail.next(), tail.next(), tail.next(), tail.next())
        else {
            return None;
        };
        let at = Self {
            subscription: subscription.to_owned(),
            group: group.to_owned(),
            name: name.to_owned(),
            vm_id: vm_id.to_owned(),
            created: created.parse().ok()?,
        };
        let formed = is_guid(subscription) && is_group(group) && is_name(name) && is_guid(vm_id);
        // The checksum covers the whole text, so other spellings of the same parts are refused.
        (formed && at.id().as_ref() == Some(id)).then_some(at)
    }

    /// Formats the id. Returns `None` if it exceeds the length of an [`InstanceId`].
    pub(crate) fn id(&self) -> Option<InstanceId> {
        let text = format!(
            "{SCHEME}{}#{}.{}",
            machine_path(&self.subscription, &self.group, &self.name),
            self.vm_id,
            self.created
        );
        let check = Uuid::new_v5(&Uuid::NAMESPACE_URL, text.as_bytes());
        let check = check.simple().to_string();
        InstanceId::new(format!("{text}.{}", &check[..8])).ok()
    }

    /// Whether the machine was created so recently, at `now`, that a read may not show it yet.
    /// Without a creation time it always counts as recent.
    pub(crate) fn is_recent(&self, window: Duration, now: DateTime<Utc>) -> bool {
        let age = now.timestamp_millis().saturating_sub(self.created);
        self.created == 0 || age < 0 || u128::from(age.unsigned_abs()) < window.as_millis()
    }
}

/// Returns the current time by Azure's clock: our own, which has a finer resolution, unless
/// `reported` differs by more than the skew.
pub(crate) fn azure_time(reported: Option<DateTime<Utc>>) -> DateTime<Utc> {
    let ours = Utc::now();
    reported.map_or(ours, |reported| shift(ours, reported - ours))
}

/// Converts a time of our clock to Azure's, which is `ahead` of ours.
pub(crate) fn shift(ours: DateTime<Utc>, ahead: chrono::Duration) -> DateTime<Utc> {
    if ahead.num_milliseconds().abs() <= SKEW_MILLIS {
        return ours;
    }
    ours.checked_add_signed(ahead).unwrap_or(ours)
}

/// Returns the resource id of a machine.
pub(crate) fn machine_path(subscription: &str, group: &str, name: &str) -> String {
    format!("/subscriptions/{subscription}/resourceGroups/{group}{MACHINES}{name}")
}

/// Returns a resource id for comparison. Azure returns ids in any letter case.
pub(crate) fn lowercase(path: &str) -> String {
    path.to_ascii_lowercase()
}

/// Returns the name of a token's machine. `item` is the index in the batch, 0 for a single launch.
pub(crate) fn name_of(token: &LaunchToken, item: u32) -> String {
    format!("{}{item}", stem_of(token))
}

/// Returns the common prefix of the names of all machines of a token.
pub(crate) fn stem_of(token: &LaunchToken) -> String {
    format!("{PREFIX}{}-", short(token.derive("azure-name")))
}

/// Returns a unique name, for a launch without a token.
pub(crate) fn random_name() -> String {
    format!("{PREFIX}{}", short(Uuid::new_v4()))
}

/// Whether a name is one of [`random_name`], so that no other machine ever has it.
pub(crate) fn is_random_name(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Shortens a digest to 96 bits: enough to be unique, and short enough for a host name.
fn short(digest: Uuid) -> String {
    let mut text = digest.simple().to_string();
    text.truncate(DIGITS);
    text
}

/// Returns the resource id of a subnet, which a config gives in full or as `network/subnet`.
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

/// Returns the resource id of a network security group, which a config gives in full or by name.
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

/// Returns the resource id of a network resource in the configured group.
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

/// Returns the last part of a resource id.
pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether `text` is the resource id of a resource of this kind.
fn is_resource(text: &str, kind: &str) -> bool {
    let lowercase = lowercase(text);
    let clean = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'%' | b'\\');
    lowercase.starts_with("/subscriptions/")
        && lowercase.contains(kind)
        && text.bytes().all(clean)
        && !text.contains("/.")
}

/// Whether `text` is a GUID with hyphens.
pub(crate) fn is_guid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// Whether `text` is a valid name of a resource group, and safe in a URL.
pub(crate) fn is_group(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.()".contains(&byte);
    (1..=90).contains(&text.len()) && text.bytes().all(inside) && !text.ends_with('.')
}

/// Whether `text` is a valid name of a resource, and safe in a URL.
pub(crate) fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=80).contains(&text.len())
        && text.bytes().all(inside)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !text.ends_with(['.', '-'])
}

/// Whether `text` is one word of letters and digits, like locations and zones.
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
            created: 1_790_000_000_000,
        }
    }

    #[test]
    fn ids_round_trip_and_malformed_ids_are_refused() {
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
    fn machine_is_recent_for_the_window_by_the_given_clock() {
        let window = Duration::from_secs(20);
        let at = |millis: i64| DateTime::from_timestamp_millis(1_790_000_000_000 + millis).unwrap();
        for (millis, young) in [(-60_000, true), (0, true), (19_999, true), (20_000, false)] {
            assert_eq!(address().is_recent(window, at(millis)), young, "{millis}");
        }
        let undated = Address {
            created: 0,
            ..address()
        };
        assert!(undated.is_recent(window, at(0)));
        let ours = Utc::now();
        let reported = ours - chrono::Duration::milliseconds(900);
        assert!(azure_time(Some(reported)) >= ours, "the same clock");
        let reported = ours - chrono::Duration::hours(1);
        assert_eq!(azure_time(Some(reported)), reported);
    }

    #[test]
    fn token_names_are_valid_and_their_stem_is_unique() {
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
        assert!(is_random_name(&random_name()));
        for reusable in [name_of(&token, 0), stem_of(&token), "fw-1".to_owned()] {
            assert!(!is_random_name(&reusable), "{reusable}");
        }
    }

    #[test]
    fn networks_and_groups_are_accepted_by_name_and_resource_id() {
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
