//! The path of each method below the project, and its query parameters.
//!
//! Owns the table, with the names of Google's discovery document, and nothing else.

use super::method::Method;

/// The query parameters of every list of one scope.
const LIST: &[&str] = &[
    "filter",
    "maxResults",
    "orderBy",
    "pageToken",
    "returnPartialSuccess",
];

/// The query parameters of every list over all zones or regions.
const AGGREGATED: &[&str] = &[
    "filter",
    "includeAllScopes",
    "maxResults",
    "orderBy",
    "pageToken",
    "returnPartialSuccess",
    "serviceProjectNumber",
];

/// Returns a method's verb and its path below the project, with placeholders in braces.
pub(super) const fn template(method: Method) -> &'static str {
    match method {
        Method::AddressesAggregatedList => "GET aggregated/addresses",
        Method::AddressesList => "GET regions/{region}/addresses",
        Method::DiskTypesAggregatedList => "GET aggregated/diskTypes",
        Method::DiskTypesGet => "GET zones/{zone}/diskTypes/{diskType}",
        Method::DiskTypesList => "GET zones/{zone}/diskTypes",
        Method::DisksAggregatedList => "GET aggregated/disks",
        Method::DisksDelete => "DELETE zones/{zone}/disks/{disk}",
        Method::DisksGet => "GET zones/{zone}/disks/{disk}",
        Method::DisksList => "GET zones/{zone}/disks",
        Method::GlobalOperationsAggregatedList => "GET aggregated/operations",
        Method::GlobalOperationsGet => "GET global/operations/{operation}",
        Method::GlobalOperationsList => "GET global/operations",
        Method::GlobalOperationsWait => "POST global/operations/{operation}/wait",
        Method::ImagesDelete => "DELETE global/images/{image}",
        Method::ImagesGet => "GET global/images/{image}",
        Method::ImagesGetFromFamily => "GET global/images/family/{family}",
        Method::ImagesInsert => "POST global/images",
        Method::ImagesList => "GET global/images",
        Method::InstancesAggregatedList => "GET aggregated/instances",
        Method::InstancesBulkInsert => "POST zones/{zone}/instances/bulkInsert",
        Method::InstancesDelete => "DELETE zones/{zone}/instances/{instance}",
        Method::InstancesGet => "GET zones/{zone}/instances/{instance}",
        Method::InstancesGetSerialPortOutput => "GET zones/{zone}/instances/{instance}/serialPort",
        Method::InstancesInsert => "POST zones/{zone}/instances",
        Method::InstancesList => "GET zones/{zone}/instances",
        Method::InstancesReset => "POST zones/{zone}/instances/{instance}/reset",
        Method::InstancesResume => "POST zones/{zone}/instances/{instance}/resume",
        Method::InstancesSetLabels => "POST zones/{zone}/instances/{instance}/setLabels",
        Method::InstancesSetMachineType => "POST zones/{zone}/instances/{instance}/setMachineType",
        Method::InstancesSetMetadata => "POST zones/{zone}/instances/{instance}/setMetadata",
        Method::InstancesStart => "POST zones/{zone}/instances/{instance}/start",
        Method::InstancesStop => "POST zones/{zone}/instances/{instance}/stop",
        Method::InstancesSuspend => "POST zones/{zone}/instances/{instance}/suspend",
        Method::MachineTypesAggregatedList => "GET aggregated/machineTypes",
        Method::MachineTypesGet => "GET zones/{zone}/machineTypes/{machineType}",
        Method::MachineTypesList => "GET zones/{zone}/machineTypes",
        Method::NetworksGet => "GET global/networks/{network}",
        Method::NetworksList => "GET global/networks",
        Method::ProjectsGet => "GET",
        Method::RegionOperationsGet => "GET regions/{region}/operations/{operation}",
        Method::RegionOperationsList => "GET regions/{region}/operations",
        Method::RegionOperationsWait => "POST regions/{region}/operations/{operation}/wait",
        Method::RegionsGet => "GET regions/{region}",
        Method::RegionsList => "GET regions",
        Method::SubnetworksAggregatedList => "GET aggregated/subnetworks",
        Method::SubnetworksGet => "GET regions/{region}/subnetworks/{subnetwork}",
        Method::SubnetworksList => "GET regions/{region}/subnetworks",
        Method::ZoneOperationsGet => "GET zones/{zone}/operations/{operation}",
        Method::ZoneOperationsList => "GET zones/{zone}/operations",
        Method::ZoneOperationsWait => "POST zones/{zone}/operations/{operation}/wait",
        Method::ZonesGet => "GET zones/{zone}",
        Method::ZonesList => "GET zones",
    }
}

/// Returns the query parameters that a method has, besides those of every method.
pub(super) fn parameters(method: Method) -> &'static [&'static str] {
    let verb = method.name().split('.').nth(1).unwrap_or_default();
    match verb {
        "list" => LIST,
        "aggregatedList" => AGGREGATED,
        "get" | "getFromFamily" | "wait" => &[],
        "getSerialPortOutput" => &["port", "start"],
        "stop" => &["discardLocalSsd", "noGracefulShutdown", "requestId"],
        "suspend" => &["discardLocalSsd", "requestId"],
        _ if method == Method::InstancesDelete => &["noGracefulShutdown", "requestId"],
        _ if method == Method::InstancesInsert => {
            &["requestId", "sourceInstanceTemplate", "sourceMachineImage"]
        }
        _ if method == Method::ImagesInsert => &["forceCreate", "requestId"],
        _ => &["requestId"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutating_methods_have_a_request_id() {
        for method in Method::ALL {
            let reads = template(method).starts_with("GET") || template(method).ends_with("/wait");
            assert_eq!(
                parameters(method).contains(&"requestId"),
                !reads,
                "{}",
                method.name()
            );
        }
    }
}
