//! Conversion between EC2's types and the shared ones. Pure.
//!
//! Owns which of EC2's tags are ours and which callers see. Tags of AWS and of this system are hidden
//! on read. Values that the shared types refuse, such as a malformed address, are left out; only a
//! missing id or state is an error.

use aws_sdk_ec2::{
    primitives::DateTime as NativeTime,
    types::{Filter, Instance, ResourceType, Tag, TagSpecification},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::{DateTime, Utc};
use fleetwright::{
    Fingerprint, ImageId, InstanceFilter, InstanceId, InstanceInfo, InstanceType, Market,
    NetworkId, Placement, RESERVED_PREFIX, SecurityGroupId, Tags, UserData, Zone,
};

use crate::{late, state};

/// The tag with the fingerprint of the config that an instance was launched with.
pub(crate) const FINGERPRINT_TAG: &str = "fleetwright:config";

/// The prefix of tags that AWS sets.
const NATIVE_PREFIX: &str = "aws:";

/// Converts an instance. A stopped or ended instance has no public address, even while EC2 still
/// shows one. The MAC address is that of the first network card.
///
/// # Errors
///
/// What is missing, if EC2 left out the id or the state.
pub(crate) fn info(native: &Instance) -> Result<InstanceInfo, String> {
    let id = native
        .instance_id()
        .ok_or("EC2 returned an instance without id")?;
    let id = InstanceId::new(id).map_err(|error| error.to_string())?;
    let name = native
        .state()
        .and_then(|state| state.name())
        .map(|name| name.as_str());
    let name = name.ok_or_else(|| format!("EC2 returned {id} without a state"))?;
    let state = state::normalize(name);
    let mut info = InstanceInfo::new(id, state);
    info.native_state = Some(name.to_owned());
    info.state_reason = reason(native);
    info.private_ip = native
        .private_ip_address()
        .and_then(|text| text.parse().ok());
    let shows_address = !state.is_ending() && state != fleetwright::CloudInstanceState::Stopped;
    let public = native.public_ip_address().filter(|_| shows_address);
    info.public_ip = public.and_then(|text| text.parse().ok());
    let cards = native.network_interfaces();
    let first = cards.iter().find(|card| {
        card.attachment()
            .and_then(|attachment| attachment.device_index())
            == Some(0)
    });
    let card = first.or(cards.first());
    info.mac_address = card
        .and_then(|card| card.mac_address())
        .and_then(|text| text.parse().ok());
    info.launch_time = native.launch_time().and_then(time);
    info.tags = tags(native.tags());
    info.image = native.image_id().and_then(|text| ImageId::new(text).ok());
    let instance_type = native.instance_type().map(|kind| kind.as_str());
    info.instance_type = instance_type.and_then(|text| InstanceType::new(text).ok());
    info.placement = placement(native);
    info.config = fingerprint(native);
    info.launch_failure = late::launch_failure(native, &info);
    Ok(info)
}

/// Returns the fingerprint of the config that an instance was launched with; `None` if it was not
/// launched by this crate, or if EC2 has already removed its tags.
pub(crate) fn fingerprint(native: &Instance) -> Option<Fingerprint> {
    let tag = native
        .tags()
        .iter()
        .find(|tag| tag.key() == Some(FINGERPRINT_TAG));
    let text = tag.and_then(|tag| tag.value())?;
    Some(Fingerprint::from_uuid(text.parse().ok()?))
}

/// Returns the tags for everything that a launch creates: the instance, its disks, its network card, and the
/// spot request if there is one.
pub(crate) fn tag_specifications(
    tags: &Tags,
    fingerprint: Fingerprint,
    market: Option<Market>,
) -> Vec<TagSpecification> {
    let mut natives = native_tags(tags);
    let mark = fingerprint.as_uuid().to_string();
    natives.push(native_tag(FINGERPRINT_TAG, &mark));
    let mut kinds = vec![
        ResourceType::Instance,
        ResourceType::Volume,
        ResourceType::NetworkInterface,
    ];
    if market == Some(Market::Spot) {
        kinds.push(ResourceType::SpotInstancesRequest);
    }
    let specification = |kind| {
        let builder = TagSpecification::builder().resource_type(kind);
        builder.set_tags(Some(natives.clone())).build()
    };
    kinds.into_iter().map(specification).collect()
}

/// Converts tags to EC2's type.
pub(crate) fn native_tags(tags: &Tags) -> Vec<Tag> {
    tags.iter()
        .map(|(key, value)| native_tag(key, value))
        .collect()
}

/// Creates a tag of EC2's type.
pub(crate) fn native_tag(key: &str, value: &str) -> Tag {
    Tag::builder().key(key).value(value).build()
}

/// Returns the filter in EC2's form. The caller applies it again.
///
/// The states are always named, so that a list does not read the instances that were terminated within the last
/// hour. EC2 documents no state besides these six ("InstanceState" in the API reference).
pub(crate) fn filters(filter: &InstanceFilter) -> Vec<Filter> {
    let mut filters: Vec<_> = filter
        .tags
        .iter()
        .map(|(key, value)| value_filter(&format!("tag:{key}"), &literal(value)))
        .collect();
    let selected: Vec<_> = fleetwright::CloudInstanceState::ALL
        .into_iter()
        .filter(|state| filter.selects_state(*state))
        .collect();
    let names = selected
        .into_iter()
        .map(|state| state::native(state).to_owned())
        .collect();
    let builder = Filter::builder().name("instance-state-name");
    filters.push(builder.set_values(Some(names)).build());
    filters
}

/// Creates a filter with one value.
pub(crate) fn value_filter(name: &str, value: &str) -> Filter {
    Filter::builder().name(name).values(value).build()
}

/// Encodes user data in base64.
pub(crate) fn user_data(data: &UserData) -> String {
    BASE64_STANDARD.encode(data.as_bytes())
}

/// Decodes console output, whose base64 may have several lines. `None` if it is not base64.
pub(crate) fn console_text(encoded: &str) -> Option<String> {
    let encoded: String = encoded.split_ascii_whitespace().collect();
    let bytes = BASE64_STANDARD.decode(encoded).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Converts a time.
pub(crate) fn time(native: &NativeTime) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(native.secs(), native.subsec_nanos())
}

/// Escapes a filter value. EC2 reads `*`, `?` and `\` in values as a pattern.
pub(crate) fn literal(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '*' | '?' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// Returns the tags that callers see.
fn tags(natives: &[Tag]) -> Tags {
    let shown = natives
        .iter()
        .filter_map(|tag| Some((tag.key()?, tag.value().unwrap_or_default())));
    let own = shown
        .filter(|(key, _)| !key.starts_with(NATIVE_PREFIX) && !key.starts_with(RESERVED_PREFIX));
    Tags::from_observed(own.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

/// Returns why the instance is in its state: EC2's code and message.
fn reason(native: &Instance) -> Option<String> {
    let reason = native.state_reason()?;
    match (reason.code(), reason.message()) {
        (Some(code), Some(message)) if message.starts_with(code) => Some(message.to_owned()),
        (Some(code), Some(message)) => Some(format!("{code}: {message}")),
        (Some(text), None) | (None, Some(text)) => Some(text.to_owned()),
        (None, None) => None,
    }
}

/// Returns zone, subnet, security groups and market.
fn placement(native: &Instance) -> Placement {
    let mut placement = Placement::default();
    let zone = native
        .placement()
        .and_then(|placement| placement.availability_zone());
    placement.zone = zone.and_then(|text| Zone::new(text).ok());
    placement.network = native
        .subnet_id()
        .and_then(|text| NetworkId::new(text).ok());
    let groups = native
        .security_groups()
        .iter()
        .filter_map(|group| group.group_id());
    placement.security_groups = groups
        .filter_map(|text| SecurityGroupId::new(text).ok())
        .collect();
    let spot = native
        .instance_lifecycle()
        .is_some_and(|lifecycle| lifecycle.as_str() == "spot");
    placement.market = Some(if spot { Market::Spot } else { Market::OnDemand });
    placement
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::types::{
        GroupIdentifier, InstanceLifecycleType, InstanceNetworkInterface,
        InstanceNetworkInterfaceAttachment, InstanceState, InstanceStateName,
        Placement as NativePlacement, StateReason,
    };
    use fleetwright::CloudInstanceState;

    fn instance(state: &str) -> aws_sdk_ec2::types::builders::InstanceBuilder {
        let name = InstanceStateName::from(state);
        Instance::builder()
            .instance_id("i-0123456789abcdef0")
            .state(InstanceState::builder().name(name).build())
            .image_id("ami-1")
            .instance_type("m7i.large".into())
            .private_ip_address("10.0.0.7")
            .public_ip_address("198.51.100.7")
    }

    fn card(index: i32, mac: &str) -> InstanceNetworkInterface {
        let attachment = InstanceNetworkInterfaceAttachment::builder().device_index(index);
        InstanceNetworkInterface::builder()
            .attachment(attachment.build())
            .mac_address(mac)
            .build()
    }

    #[test]
    fn instance_has_everything_that_ec2_returns() {
        let native = instance("running")
            .launch_time(NativeTime::from_secs(1_700_000_000))
            .subnet_id("subnet-1")
            .security_groups(GroupIdentifier::builder().group_id("sg-1").build())
            .placement(
                NativePlacement::builder()
                    .availability_zone("us-east-1b")
                    .build(),
            )
            .network_interfaces(card(1, "02:00:00:00:00:02"))
            .network_interfaces(card(0, "02:00:00:00:00:01"))
            .tags(native_tag("Name", "a b"))
            .tags(native_tag("aws:ec2spot:fleet", "x"))
            .tags(native_tag(
                FINGERPRINT_TAG,
                "00000000-0000-0000-0000-000000000007",
            ))
            .build();
        let info = info(&native).unwrap();
        assert_eq!(info.state, CloudInstanceState::Running);
        assert_eq!(info.mac_address.unwrap().to_string(), "02:00:00:00:00:01");
        assert_eq!(info.launch_time.unwrap().timestamp(), 1_700_000_000);
        let tags: Vec<_> = info.tags.iter().collect();
        assert_eq!(tags, [("Name", "a b")]);
        assert_eq!(info.placement.zone.unwrap().as_str(), "us-east-1b");
        assert_eq!(info.placement.market, Some(Market::OnDemand));
        let mark = fingerprint(&native).unwrap();
        assert_eq!(mark.as_uuid().as_u128(), 7);
    }

    #[test]
    fn unusual_instances_are_converted_or_refused() {
        let hibernating = info(&instance("hibernating").build()).unwrap();
        assert_eq!(hibernating.state, CloudInstanceState::Pending);
        assert_eq!(hibernating.native_state.as_deref(), Some("hibernating"));
        assert!(info(&Instance::builder().build()).is_err());
        assert!(info(&Instance::builder().instance_id("i-1").build()).is_err());
        let stopped = info(&instance("stopped").build()).unwrap();
        assert_eq!(
            (stopped.public_ip, stopped.private_ip.is_some()),
            (None, true)
        );
        let spot = instance("pending")
            .instance_lifecycle(InstanceLifecycleType::Spot)
            .build();
        assert_eq!(info(&spot).unwrap().placement.market, Some(Market::Spot));
        let (code, message) = ("Server.InsufficientInstanceCapacity", "none left");
        let reason = StateReason::builder().code(code).message(message).build();
        let failed = info(&instance("terminated").state_reason(reason).build()).unwrap();
        assert_eq!(
            failed.state_reason.as_deref(),
            Some("Server.InsufficientInstanceCapacity: none left")
        );
    }

    #[test]
    fn filter_values_are_escaped() {
        assert_eq!(literal(r"a*b?c\d"), r"a\*b\?c\\d");
        let filter = InstanceFilter::tagged("fleet-id", "blue*").unwrap();
        let natives = filters(&filter);
        assert_eq!(natives[0].values(), [r"blue\*"]);
        let states = natives[1].values();
        assert!(states.contains(&"pending".to_owned()));
        assert!(!states.contains(&"terminated".to_owned()));
        let stopped = filter.in_state(CloudInstanceState::Stopped);
        assert_eq!(filters(&stopped)[1].values(), ["stopped"]);
    }

    #[test]
    fn user_data_and_console_output_use_base64() {
        let data = UserData::new([0_u8, 255, 10]).unwrap();
        assert_eq!(user_data(&data), "AP8K");
        assert_eq!(console_text("aGVsbG8=\n").as_deref(), Some("hello"));
        assert_eq!(console_text("aGVs\r\nbG8=\n").as_deref(), Some("hello"));
        assert_eq!(console_text("not base64!"), None);
    }
}
