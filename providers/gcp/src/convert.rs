//! Conversion between Compute Engine's documents and the shared types, and list filters. Pure.
//!
//! Owns the meaning of each native field. It decides nothing about calls.
//!
//! - The external address of a stopped instance is not reported: Compute Engine releases it.
//! - Image and tags come from metadata, because an instance has no field for them.
//! - Filters use Compute Engine's two filter languages: `name eq "(...)"` matches a whole name by regular
//!   expression, `labels.key = "value"` compares.

use fleetwright::{
    CloudInstanceState, Fingerprint, ImageId, InstanceFilter, InstanceInfo, InstanceType, Market,
    NetworkId, Placement, SecurityGroupId, Zone,
};
use google_cloud_compute_v1::model::{Instance, Operation};

use crate::{
    address::{self, Address, last_part},
    error::ErrorContext,
    history::{self, History},
    labels, metadata, state,
};

/// Returns zone, name and number of an instance. The error says what is missing in the response.
pub(crate) fn place(native: &Instance) -> Result<(&str, &str, u64), String> {
    let name = native.name.as_deref().ok_or("an instance without a name")?;
    let zone = native.zone.as_deref().map(last_part);
    let zone = zone.ok_or_else(|| format!("{name} is in no zone"))?;
    let number = native.id.ok_or_else(|| format!("{name} has no id"))?;
    Ok((zone, name, number))
}

/// Converts an instance. The error says what is missing in the response.
pub(crate) fn info(project: &str, native: &Instance) -> Result<InstanceInfo, String> {
    let (zone, name, number) = place(native)?;
    let id = address::format_id(project, zone, name, number)
        .ok_or_else(|| format!("{name} has no valid id"))?;
    let name = native.status.as_ref().and_then(|status| status.name());
    let name = name.ok_or_else(|| format!("{id} has no state"))?;
    let normal = state::normalize(name);
    let mut info = InstanceInfo::new(id, normal);
    info.native_state = Some(name.to_owned());
    info.state_reason = native
        .status_message
        .clone()
        .filter(|text| !text.is_empty());
    let card = native.network_interfaces.first();
    info.private_ip = card
        .and_then(|card| card.network_ip.as_deref())
        .and_then(|text| text.parse().ok());
    let outside = card.and_then(|card| card.access_configs.first());
    let outside = outside
        .and_then(|config| config.nat_ip.as_deref())
        .filter(|_| normal != CloudInstanceState::Stopped);
    info.public_ip = outside.and_then(|text| text.parse().ok());
    info.launch_time = native.creation_timestamp.as_deref().and_then(history::time);
    let items = native.metadata.as_ref();
    info.tags = labels::decode(&native.labels, metadata::value(items, metadata::TAGS));
    info.image = metadata::value(items, metadata::IMAGE).and_then(|text| ImageId::new(text).ok());
    let of_type = native.machine_type.as_deref().map(last_part);
    info.instance_type = of_type.and_then(|text| InstanceType::new(text).ok());
    info.placement = placement(zone, native);
    info.config = fingerprint(native);
    Ok(info)
}

/// Marks an instance as terminating. Compute Engine reports one that is being deleted as stopping.
pub(crate) fn mark_terminating(info: &mut InstanceInfo) {
    info.state = CloudInstanceState::Terminating;
    info.public_ip = None;
}

/// Returns what operations say about an instance that does not exist. Returns `None` if that proves
/// nothing: without operations, or if it was created and nothing deleted it.
///
/// | history | state |
/// | --- | --- |
/// | creating | pending |
/// | deleting | terminating |
/// | deleted, create failed | terminated, with the reason |
pub(crate) fn absent_info(at: &Address, history: &History) -> Option<InstanceInfo> {
    let state = match history {
        History::Empty | History::Created(_) => return None,
        History::Creating => CloudInstanceState::Pending,
        History::Deleting => CloudInstanceState::Terminating,
        History::Deleted(reason) => return gone_info(at, reason),
        History::CreateFailed(failure) => {
            let mut info = gone_info(at, &history::reason(failure))?;
            let zone = info.placement.zone.clone();
            let context = ErrorContext {
                zone: zone.as_ref(),
                ..ErrorContext::default()
            };
            info.launch_failure = Some(failure.launch_failure(context));
            return Some(info);
        }
    };
    let mut info = InstanceInfo::new(at.id()?, state);
    info.placement.zone = Zone::new(&at.zone).ok();
    Some(info)
}

/// Returns an instance as terminated, with a reason.
pub(crate) fn gone_info(at: &Address, reason: &str) -> Option<InstanceInfo> {
    let mut info = InstanceInfo::new(at.id()?, CloudInstanceState::Terminated);
    info.state_reason = Some(reason.to_owned());
    info.placement.zone = Zone::new(&at.zone).ok();
    Some(info)
}

/// Returns the fingerprint of the config that an instance was launched with.
pub(crate) fn fingerprint(native: &Instance) -> Option<Fingerprint> {
    let text = metadata::value(native.metadata.as_ref(), metadata::CONFIG)?;
    Some(Fingerprint::from_uuid(text.parse().ok()?))
}

/// Returns the owner mark of an instance: the digest of its launch token.
pub(crate) fn owner(native: &Instance) -> Option<&str> {
    metadata::value(native.metadata.as_ref(), metadata::OWNER)
}

/// Returns the part of a filter that Compute Engine can evaluate. The caller evaluates the filter
/// again, for two reasons: unknown native states count as pending and cannot be selected, and
/// different tags can have the same placeholder label.
pub(crate) fn list_filter(filter: &InstanceFilter) -> String {
    let mut terms: Vec<_> = filter
        .tags
        .iter()
        .map(|(key, value)| labels::label(key, value))
        .map(|(key, value)| format!("(labels.{key} = \"{value}\")"))
        .collect();
    let wanted: Vec<_> = CloudInstanceState::ALL
        .into_iter()
        .filter(|state| filter.selects_state(*state))
        .collect();
    if let Some(names) = state::natives(&wanted) {
        let names: Vec<_> = names
            .iter()
            .map(|name| format!("(status = \"{name}\")"))
            .collect();
        terms.extend((!names.is_empty()).then(|| format!("({})", names.join(" OR "))));
    }
    terms.join(" ")
}

/// Returns a filter for instances with one of these names.
pub(crate) fn name_filter<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    name_pattern_filter(&names.join("|"))
}

/// Returns a filter for instances whose name matches a regular expression completely.
pub(crate) fn name_pattern_filter(expression: &str) -> String {
    format!("name eq \"({expression})\"")
}

/// Returns a filter for operations on the instances with these numbers.
pub(crate) fn operations_on(numbers: &[u64]) -> String {
    let terms: Vec<_> = numbers
        .iter()
        .map(|number| format!("(targetId = {number})"))
        .collect();
    terms.join(" OR ")
}

/// Returns a filter for operations on instances whose name matches a regular expression completely.
pub(crate) fn operations_on_names(expression: &str) -> String {
    format!("targetLink eq \".*/instances/({expression})\"")
}

/// Returns the address of the instance that an operation is about.
///
/// The link contains zone and name, `targetId` the number.
pub(crate) fn operation_target(project: &str, operation: &Operation) -> Option<Address> {
    let link = operation.target_link.as_deref()?;
    let (rest, name) = link.rsplit_once("/instances/")?;
    Some(Address {
        project: project.to_owned(),
        zone: last_part(rest).to_owned(),
        name: name.to_owned(),
        number: operation.target_id?,
    })
}

/// Returns where an instance runs: zone, network, network tags and market.
fn placement(zone: &str, native: &Instance) -> Placement {
    let mut placement = Placement::default();
    placement.zone = Zone::new(zone).ok();
    let card = native.network_interfaces.first();
    let network = card.and_then(|card| card.subnetwork.as_deref().or(card.network.as_deref()));
    placement.network = network.and_then(|text| NetworkId::new(text).ok());
    let tags = native.tags.as_ref().map(|tags| tags.items.as_slice());
    placement.security_groups = tags
        .unwrap_or_default()
        .iter()
        .filter_map(|text| SecurityGroupId::new(text).ok())
        .collect();
    let model = native
        .scheduling
        .as_ref()
        .and_then(|scheduling| scheduling.provisioning_model.as_ref());
    let spot = model.and_then(|model| model.name()) == Some("SPOT");
    placement.market = Some(if spot { Market::Spot } else { Market::OnDemand });
    placement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::LastActivity;
    use fleetwright::InstanceId;
    use google_cloud_compute_v1::model::{
        AccessConfig, Metadata, NetworkInterface, Scheduling, Tags as NetworkTags,
    };

    const PREFIX: &str = "https://www.googleapis.com/compute/v1/projects/p";

    fn instance(status: &str) -> Instance {
        let outside = AccessConfig::new().set_nat_ip("203.0.113.7");
        let card = NetworkInterface::new()
            .set_network_ip("10.128.0.7")
            .set_subnetwork(format!("{PREFIX}/regions/us-central1/subnetworks/default"))
            .set_access_configs([outside]);
        Instance::new()
            .set_name("fw-1")
            .set_id(42_u64)
            .set_status(status)
            .set_zone(format!("{PREFIX}/zones/us-central1-a"))
            .set_machine_type(format!(
                "{PREFIX}/zones/us-central1-a/machineTypes/n2-standard-4"
            ))
            .set_network_interfaces([card])
    }

    #[test]
    fn instance_converts_with_all_native_fields() {
        let items = [
            metadata::item(metadata::IMAGE, "debian"),
            metadata::item(metadata::TAGS, r#"{"Team":"Blue"}"#),
            metadata::item(metadata::CONFIG, "00000000-0000-0000-0000-000000000007"),
            metadata::item(metadata::OWNER, "me"),
        ];
        let native = instance("RUNNING")
            .set_creation_timestamp("2026-01-02T03:04:05.678-07:00")
            .set_labels([("fleet", "one"), ("fwx-team-0", "blue-0")])
            .set_metadata(Metadata::new().set_items(items))
            .set_tags(NetworkTags::new().set_items(["web"]))
            .set_scheduling(Scheduling::new().set_provisioning_model("SPOT"));
        let info = info("p", &native).unwrap();
        assert_eq!(info.id.as_str(), "gce://p/us-central1-a/fw-1/42");
        assert_eq!(info.state, CloudInstanceState::Running);
        assert_eq!(info.public_ip.unwrap().to_string(), "203.0.113.7");
        assert_eq!(info.private_ip.unwrap().to_string(), "10.128.0.7");
        assert_eq!(info.instance_type.unwrap().as_str(), "n2-standard-4");
        assert_eq!(info.image.unwrap().as_str(), "debian");
        let tags: Vec<_> = info.tags.iter().collect();
        assert_eq!(tags, [("Team", "Blue"), ("fleet", "one")]);
        assert_eq!(info.placement.market, Some(Market::Spot));
        assert_eq!(info.placement.zone.unwrap().as_str(), "us-central1-a");
        assert_eq!(fingerprint(&native).unwrap().as_uuid().as_u128(), 7);
        assert_eq!(owner(&native), Some("me"));
    }

    #[test]
    fn unknown_states_convert_and_incomplete_instances_are_refused() {
        let unknown = info("p", &instance("DEFROSTING")).unwrap();
        assert_eq!(unknown.state, CloudInstanceState::Pending);
        assert_eq!(unknown.native_state.as_deref(), Some("DEFROSTING"));
        let stopped = info("p", &instance("TERMINATED")).unwrap();
        assert_eq!(stopped.state, CloudInstanceState::Stopped);
        assert_eq!(
            (stopped.public_ip, stopped.private_ip.is_some()),
            (None, true)
        );
        assert!(info("p", &Instance::new()).is_err());
        assert!(info("p", &Instance::new().set_name("a").set_id(1_u64)).is_err());
    }

    #[test]
    fn absent_instance_follows_its_operations() {
        let at =
            Address::parse(&InstanceId::new("gce://p/us-central1-a/fw-1/42").unwrap()).unwrap();
        let state = |history: &History| absent_info(&at, history).map(|info| info.state);
        assert_eq!(state(&History::Empty), None);
        assert_eq!(state(&History::Creating), Some(CloudInstanceState::Pending));
        assert_eq!(
            state(&History::Deleting),
            Some(CloudInstanceState::Terminating)
        );
        let terminated = absent_info(&at, &History::Deleted("deleted".to_owned())).unwrap();
        assert_eq!(terminated.state, CloudInstanceState::Terminated);
        assert_eq!(terminated.state_reason.as_deref(), Some("deleted"));
        let created = History::Created(LastActivity::default());
        assert_eq!(state(&created), None, "a read may not show it yet");
        assert_eq!(
            gone_info(&at, "x").unwrap().state,
            CloudInstanceState::Terminated
        );
    }

    #[test]
    fn operation_target_is_parsed() {
        let operation = Operation::new()
            .set_target_id(42_u64)
            .set_target_link(format!("{PREFIX}/zones/us-central1-a/instances/fw-1"));
        let id = operation_target("p", &operation).unwrap().id().unwrap();
        assert_eq!(id.as_str(), "gce://p/us-central1-a/fw-1/42");
        assert_eq!(operation_target("p", &Operation::new()), None);
        assert_eq!(operations_on(&[1, 2]), "(targetId = 1) OR (targetId = 2)");
    }

    #[test]
    fn filter_contains_what_the_server_can_evaluate() {
        let filtered = InstanceFilter::tagged("fleet", "blue").unwrap();
        assert_eq!(list_filter(&filtered), "(labels.fleet = \"blue\")");
        let odd = InstanceFilter::tagged("Fleet", "").unwrap();
        assert!(
            list_filter(&odd).starts_with("(labels.fwx-fleet-"),
            "{}",
            list_filter(&odd)
        );
        let stopped = filtered.in_state(CloudInstanceState::Stopped);
        assert_eq!(
            list_filter(&stopped),
            "(labels.fleet = \"blue\") ((status = \"STOPPED\") OR (status = \"SUSPENDED\") OR \
             (status = \"TERMINATED\"))"
        );
        assert_eq!(name_filter(["a", "b-1"]), "name eq \"(a|b-1)\"");
    }
}
