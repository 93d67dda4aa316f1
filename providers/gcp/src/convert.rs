//! Compute Engine's instances as the shared view, and the filters that select them. Pure.

use std::time::Duration;

use chrono::Utc;
use fleetwright::{
    CloudInstanceState, Fingerprint, ImageId, InstanceFilter, InstanceInfo, InstanceType, Market,
    NetworkId, Placement, SecurityGroupId, Zone,
};
use google_cloud_compute_v1::model::{Instance, Operation};

use crate::{
    address::{Address, last_part},
    history::{self, Fate},
    labels, metadata, state,
};

/// Where an instance is; the error says what is missing of an answer that cannot be understood.
pub(crate) fn address(project: &str, native: &Instance) -> Result<Address, String> {
    let name = native.name.clone().ok_or("an instance without a name")?;
    let zone = native.zone.as_deref().map(last_part);
    let zone = zone.ok_or_else(|| format!("{name} is in no zone"))?;
    let number = native.id.ok_or_else(|| format!("{name} has no id"))?;
    Ok(Address {
        project: project.to_owned(),
        zone: zone.to_owned(),
        name,
        number,
    })
}

/// The shared view; the error says what is missing of an answer that cannot be understood.
pub(crate) fn info(project: &str, native: &Instance) -> Result<InstanceInfo, String> {
    let at = address(project, native)?;
    let id = at.id().ok_or_else(|| format!("{} makes no id", at.name))?;
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
    info.tags = labels::read(&native.labels, metadata::value(items, metadata::TAGS));
    info.image = metadata::value(items, metadata::IMAGE).and_then(|text| ImageId::new(text).ok());
    let of_type = native.machine_type.as_deref().map(last_part);
    info.instance_type = of_type.and_then(|text| InstanceType::new(text).ok());
    info.placement = placement(&at.zone, native);
    Ok(info)
}

/// An instance that is being deleted, which Compute Engine shows as stopping.
pub(crate) fn going(mut info: InstanceInfo) -> InstanceInfo {
    info.state = CloudInstanceState::Terminating;
    info.public_ip = None;
    info
}

/// An instance that is not there, as its operations tell of it. For `window` after something happened
/// to it, that it is not shown proves nothing.
pub(crate) fn absent(at: &Address, fate: &Fate, window: Duration) -> Option<InstanceInfo> {
    let (state, reason) = match fate {
        Fate::Unknown => return None,
        Fate::Coming => (CloudInstanceState::Pending, None),
        Fate::Going => (CloudInstanceState::Terminating, None),
        Fate::Gone(reason) => (CloudInstanceState::Terminated, Some(reason.clone())),
        Fate::Failed(failure) => (
            CloudInstanceState::Terminated,
            Some(history::reason(failure)),
        ),
        Fate::Made(past) => {
            let since = past
                .since
                .map(|since| (Utc::now() - since).to_std().unwrap_or_default());
            if since.is_some_and(|since| since < window) {
                return None;
            }
            let untold = || "gone without a record of its end".to_owned();
            let reason = past.preempted.clone().unwrap_or_else(untold);
            (CloudInstanceState::Terminated, Some(reason))
        }
    };
    let mut info = InstanceInfo::new(at.id()?, state);
    info.state_reason = reason;
    info.placement.zone = Zone::new(&at.zone).ok();
    Some(info)
}

/// An instance whose name another one has by now.
pub(crate) fn replaced(at: &Address) -> Option<InstanceInfo> {
    let mut info = InstanceInfo::new(at.id()?, CloudInstanceState::Terminated);
    info.state_reason = Some("gone: another instance has its name".to_owned());
    info.placement.zone = Zone::new(&at.zone).ok();
    Some(info)
}

/// The fingerprint of the config that an instance was launched with.
pub(crate) fn fingerprint(native: &Instance) -> Option<Fingerprint> {
    let text = metadata::value(native.metadata.as_ref(), metadata::CONFIG)?;
    Some(Fingerprint::from_uuid(text.parse().ok()?))
}

/// Whose launch an instance was: the digest of a token.
pub(crate) fn owner(native: &Instance) -> Option<&str> {
    metadata::value(native.metadata.as_ref(), metadata::OWNER)
}

/// What Compute Engine can select by itself of a filter. The rest is left to us: states where one is
/// pending, since states that nobody knows are pending too, and of a tag that no label can hold
/// whether it is that one or one that looks alike.
pub(crate) fn filter(filter: &InstanceFilter) -> String {
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

/// A filter for instances with one of these names.
pub(crate) fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    matching(&names.join("|"))
}

/// A filter for instances whose whole name matches an expression.
pub(crate) fn matching(expression: &str) -> String {
    format!("name eq \"({expression})\"")
}

/// A filter for operations on these instances.
pub(crate) fn about(numbers: &[u64]) -> String {
    let terms: Vec<_> = numbers
        .iter()
        .map(|number| format!("(targetId = {number})"))
        .collect();
    terms.join(" OR ")
}

/// A filter for operations on instances whose whole name matches an expression.
pub(crate) fn about_named(expression: &str) -> String {
    format!("targetLink eq \".*/instances/({expression})\"")
}

/// Where an operation's instance is.
pub(crate) fn target(project: &str, operation: &Operation) -> Option<Address> {
    let link = operation.target_link.as_deref()?;
    let (rest, name) = link.rsplit_once("/instances/")?;
    Some(Address {
        project: project.to_owned(),
        zone: last_part(rest).to_owned(),
        name: name.to_owned(),
        number: operation.target_id?,
    })
}

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
    use crate::history::Past;
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
    fn an_instance_is_shown_with_all_that_compute_engine_tells() {
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
    fn odd_instances_are_shown_as_they_are_or_refused() {
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
    fn what_is_not_there_is_shown_as_its_operations_tell() {
        let at =
            Address::parse(&InstanceId::new("gce://p/us-central1-a/fw-1/42").unwrap()).unwrap();
        let window = Duration::from_secs(20);
        let state = |fate: &Fate| absent(&at, fate, window).map(|info| info.state);
        assert_eq!(state(&Fate::Unknown), None);
        assert_eq!(state(&Fate::Coming), Some(CloudInstanceState::Pending));
        assert_eq!(state(&Fate::Going), Some(CloudInstanceState::Terminating));
        let gone = absent(&at, &Fate::Gone("deleted".to_owned()), window).unwrap();
        assert_eq!(gone.state, CloudInstanceState::Terminated);
        assert_eq!(gone.state_reason.as_deref(), Some("deleted"));
        let made = |since| {
            state(&Fate::Made(Past {
                since: Some(since),
                preempted: None,
            }))
        };
        assert_eq!(made(Utc::now()), None, "it may only not be shown yet");
        let long_ago = Utc::now() - 2 * window;
        assert_eq!(made(long_ago), Some(CloudInstanceState::Terminated));
        assert_eq!(replaced(&at).unwrap().state, CloudInstanceState::Terminated);
    }

    #[test]
    fn an_operation_s_instance_is_found() {
        let operation = Operation::new()
            .set_target_id(42_u64)
            .set_target_link(format!("{PREFIX}/zones/us-central1-a/instances/fw-1"));
        let id = target("p", &operation).unwrap().id().unwrap();
        assert_eq!(id.as_str(), "gce://p/us-central1-a/fw-1/42");
        assert_eq!(target("p", &Operation::new()), None);
        assert_eq!(about(&[1, 2]), "(targetId = 1) OR (targetId = 2)");
    }

    #[test]
    fn a_filter_selects_on_the_server_what_it_can() {
        let filtered = InstanceFilter::tagged("fleet", "blue").unwrap();
        assert_eq!(filter(&filtered), "(labels.fleet = \"blue\")");
        let odd = InstanceFilter::tagged("Fleet", "").unwrap();
        assert!(
            filter(&odd).starts_with("(labels.fwx-fleet-"),
            "{}",
            filter(&odd)
        );
        let stopped = filtered.in_state(CloudInstanceState::Stopped);
        assert_eq!(
            filter(&stopped),
            "(labels.fleet = \"blue\") ((status = \"STOPPED\") OR (status = \"SUSPENDED\") OR \
             (status = \"TERMINATED\"))"
        );
        assert_eq!(named(["a", "b-1"]), "name eq \"(a|b-1)\"");
    }
}
