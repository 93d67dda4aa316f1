//! Converts the cloud's own types to those of the core. Pure: no clock, no state.

use fleetwright::{
    ErrorKind, InstanceId, InstanceInfo, InstanceStatus, LaunchFailure, LaunchRecord, Market,
    Placement, Scope, Zone,
};

use crate::{
    engine::{Record, Version, View},
    state::normalize,
};

/// Converts a view to the info of an instance. `native` overrides its native state, to simulate a
/// state that the provider does not know.
pub(crate) fn info(view: View, native: Option<&str>) -> InstanceInfo {
    let word = native.unwrap_or(view.version.state.as_str());
    let launch_failure = launch_failure(&view.version, &view.zone, view.market);
    let mut info = InstanceInfo::new(view.id, normalize(word));
    info.native_state = Some(word.to_owned());
    info.launch_failure = launch_failure;
    info.state_reason = view.version.reason.map(|reason| reason.to_string());
    info.private_ip = view.version.private_ip.map(Into::into);
    info.public_ip = view.version.public_ip.map(Into::into);
    info.mac_address = view.version.mac;
    info.launch_time = Some(view.launched);
    info.tags = (*view.version.tags).clone();
    info.image = Some(view.version.image);
    info.instance_type = Some(view.version.instance_type);
    let mut placement = Placement::default();
    placement.zone = Some(view.zone);
    placement.network = Some(view.network);
    placement.security_groups = view.security_groups.into_iter().collect();
    placement.public_address = Some(view.public_address);
    placement.market = Some(view.market);
    info.placement = placement;
    info.config = view.config;
    info
}

/// Converts a version of an instance to its status. It reads nothing that a status does not have.
pub(crate) fn status(
    id: &InstanceId,
    record: &Record,
    version: &Version,
    native: Option<&str>,
) -> InstanceStatus {
    let word = native.unwrap_or(version.state.as_str());
    let mut status = InstanceStatus::new(id.clone(), normalize(word));
    status.native_state = Some(word.to_owned());
    status.launch_failure = launch_failure(version, &record.zone, record.market);
    status.state_reason = version.reason.as_deref().map(str::to_owned);
    status.private_ip = version.private_ip.map(Into::into);
    status.public_ip = version.public_ip.map(Into::into);
    status.mac_address = version.mac;
    status
}

/// Returns why a launch failed late, by the code of its reason. `None` if it did not.
fn launch_failure(version: &Version, zone: &Zone, market: Market) -> Option<LaunchFailure> {
    if !version.launch_failed {
        return None;
    }
    let reason = version.reason.as_deref().unwrap_or_default();
    let code = reason.split(':').next().unwrap_or_default();
    let failure = match code {
        "InsufficientCapacity" => {
            let scope = Scope::Offering {
                instance_type: Some(version.instance_type.clone()),
                zone: Some(zone.clone()),
                market: Some(market),
            };
            LaunchFailure::new(ErrorKind::Capacity, [scope])
        }
        "QuotaExceeded" => LaunchFailure::new(ErrorKind::Quota, [Scope::Account]),
        _ => LaunchFailure::new(ErrorKind::Unexpected, []),
    };
    Some(if code.is_empty() {
        failure
    } else {
        failure.with_native_code(code)
    })
}

/// Converts the views of a launch to its record.
///
/// `None` means that the read shows no launch; an empty list means that the token is known and all
/// of its instances have been purged.
pub(crate) fn launch_record(views: Option<Vec<View>>, native: Option<&str>) -> LaunchRecord {
    match views {
        None => LaunchRecord::NotFound,
        Some(views) if views.is_empty() => LaunchRecord::Terminated(Vec::new()),
        Some(views) => {
            LaunchRecord::from_instances(views.into_iter().map(|view| info(view, native)).collect())
        }
    }
}
