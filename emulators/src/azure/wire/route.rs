//! The method and the path of each operation, and how a request finds its operation.
//!
//! A `{}` in a path matches any segment; all other segments match in any case.

use self::Scope::{Group, Root, Subscription, Tagged};
use super::operation::Operation;

/// The beginning of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// No prefix.
    Root,
    /// `subscriptions/{}`.
    Subscription,
    /// `subscriptions/{}/resourceGroups/{}/providers`.
    Group,
    /// The id of a resource group or of a resource, followed by the path of its tags.
    Tagged,
}

impl Scope {
    /// Returns the segments of the prefix.
    const fn segments(self) -> &'static [&'static str] {
        match self {
            Self::Root | Self::Tagged => &[],
            Self::Subscription => &["subscriptions", "{}"],
            Self::Group => &["subscriptions", "{}", "resourceGroups", "{}", "providers"],
        }
    }
}

/// An operation with its name, its method, and its path: the prefix and the rest.
type Route = (Operation, &'static str, &'static str, Scope, &'static str);

use Operation as O;

/// All operations, sorted by name.
#[rustfmt::skip]
pub(super) const ROUTES: [Route; 110] = [
    (O::BlobGet, "Blob_Get", "GET", Root, "bootdiagnostics/{}/{}"),
    (O::DefaultSecurityRulesList, "DefaultSecurityRules_List", "GET", Group, "Microsoft.Network/networkSecurityGroups/{}/defaultSecurityRules"),
    (O::DisksCreateOrUpdate, "Disks_CreateOrUpdate", "PUT", Group, "Microsoft.Compute/disks/{}"),
    (O::DisksDelete, "Disks_Delete", "DELETE", Group, "Microsoft.Compute/disks/{}"),
    (O::DisksGet, "Disks_Get", "GET", Group, "Microsoft.Compute/disks/{}"),
    (O::DisksList, "Disks_List", "GET", Subscription, "providers/Microsoft.Compute/disks"),
    (O::DisksListByResourceGroup, "Disks_ListByResourceGroup", "GET", Group, "Microsoft.Compute/disks"),
    (O::DisksUpdate, "Disks_Update", "PATCH", Group, "Microsoft.Compute/disks/{}"),
    (O::ImagesCreateOrUpdate, "Images_CreateOrUpdate", "PUT", Group, "Microsoft.Compute/images/{}"),
    (O::ImagesDelete, "Images_Delete", "DELETE", Group, "Microsoft.Compute/images/{}"),
    (O::ImagesGet, "Images_Get", "GET", Group, "Microsoft.Compute/images/{}"),
    (O::ImagesList, "Images_List", "GET", Subscription, "providers/Microsoft.Compute/images"),
    (O::ImagesListByResourceGroup, "Images_ListByResourceGroup", "GET", Group, "Microsoft.Compute/images"),
    (O::ImagesUpdate, "Images_Update", "PATCH", Group, "Microsoft.Compute/images/{}"),
    (O::MetadataEndpoints, "Metadata_Endpoints", "GET", Root, "metadata/endpoints"),
    (O::NetworkInterfacesCreateOrUpdate, "NetworkInterfaces_CreateOrUpdate", "PUT", Group, "Microsoft.Network/networkInterfaces/{}"),
    (O::NetworkInterfacesDelete, "NetworkInterfaces_Delete", "DELETE", Group, "Microsoft.Network/networkInterfaces/{}"),
    (O::NetworkInterfacesGet, "NetworkInterfaces_Get", "GET", Group, "Microsoft.Network/networkInterfaces/{}"),
    (O::NetworkInterfacesList, "NetworkInterfaces_List", "GET", Group, "Microsoft.Network/networkInterfaces"),
    (O::NetworkInterfacesListAll, "NetworkInterfaces_ListAll", "GET", Subscription, "providers/Microsoft.Network/networkInterfaces"),
    (O::NetworkInterfacesUpdateTags, "NetworkInterfaces_UpdateTags", "PATCH", Group, "Microsoft.Network/networkInterfaces/{}"),
    (O::NetworkSecurityGroupsCreateOrUpdate, "NetworkSecurityGroups_CreateOrUpdate", "PUT", Group, "Microsoft.Network/networkSecurityGroups/{}"),
    (O::NetworkSecurityGroupsDelete, "NetworkSecurityGroups_Delete", "DELETE", Group, "Microsoft.Network/networkSecurityGroups/{}"),
    (O::NetworkSecurityGroupsGet, "NetworkSecurityGroups_Get", "GET", Group, "Microsoft.Network/networkSecurityGroups/{}"),
    (O::NetworkSecurityGroupsList, "NetworkSecurityGroups_List", "GET", Group, "Microsoft.Network/networkSecurityGroups"),
    (O::NetworkSecurityGroupsListAll, "NetworkSecurityGroups_ListAll", "GET", Subscription, "providers/Microsoft.Network/networkSecurityGroups"),
    (O::NetworkSecurityGroupsUpdateTags, "NetworkSecurityGroups_UpdateTags", "PATCH", Group, "Microsoft.Network/networkSecurityGroups/{}"),
    (O::OperationsGet, "Operations_Get", "GET", Subscription, "providers/{}/locations/{}/operations/{}"),
    (O::OperationsGetResult, "Operations_GetResult", "GET", Subscription, "operationresults/{}"),
    (O::ProvidersGet, "Providers_Get", "GET", Subscription, "providers/{}"),
    (O::ProvidersList, "Providers_List", "GET", Subscription, "providers"),
    (O::ProvidersRegister, "Providers_Register", "POST", Subscription, "providers/{}/register"),
    (O::PublicIPAddressesCreateOrUpdate, "PublicIPAddresses_CreateOrUpdate", "PUT", Group, "Microsoft.Network/publicIPAddresses/{}"),
    (O::PublicIPAddressesDelete, "PublicIPAddresses_Delete", "DELETE", Group, "Microsoft.Network/publicIPAddresses/{}"),
    (O::PublicIPAddressesGet, "PublicIPAddresses_Get", "GET", Group, "Microsoft.Network/publicIPAddresses/{}"),
    (O::PublicIPAddressesList, "PublicIPAddresses_List", "GET", Group, "Microsoft.Network/publicIPAddresses"),
    (O::PublicIPAddressesListAll, "PublicIPAddresses_ListAll", "GET", Subscription, "providers/Microsoft.Network/publicIPAddresses"),
    (O::PublicIPAddressesUpdateTags, "PublicIPAddresses_UpdateTags", "PATCH", Group, "Microsoft.Network/publicIPAddresses/{}"),
    (O::ResourceGroupsCheckExistence, "ResourceGroups_CheckExistence", "HEAD", Subscription, "resourceGroups/{}"),
    (O::ResourceGroupsCreateOrUpdate, "ResourceGroups_CreateOrUpdate", "PUT", Subscription, "resourceGroups/{}"),
    (O::ResourceGroupsDelete, "ResourceGroups_Delete", "DELETE", Subscription, "resourceGroups/{}"),
    (O::ResourceGroupsGet, "ResourceGroups_Get", "GET", Subscription, "resourceGroups/{}"),
    (O::ResourceGroupsList, "ResourceGroups_List", "GET", Subscription, "resourceGroups"),
    (O::ResourceGroupsUpdate, "ResourceGroups_Update", "PATCH", Subscription, "resourceGroups/{}"),
    (O::ResourceSkusList, "ResourceSkus_List", "GET", Subscription, "providers/Microsoft.Compute/skus"),
    (O::ResourcesList, "Resources_List", "GET", Subscription, "resources"),
    (O::ResourcesListByResourceGroup, "Resources_ListByResourceGroup", "GET", Subscription, "resourceGroups/{}/resources"),
    (O::SecurityRulesCreateOrUpdate, "SecurityRules_CreateOrUpdate", "PUT", Group, "Microsoft.Network/networkSecurityGroups/{}/securityRules/{}"),
    (O::SecurityRulesDelete, "SecurityRules_Delete", "DELETE", Group, "Microsoft.Network/networkSecurityGroups/{}/securityRules/{}"),
    (O::SecurityRulesGet, "SecurityRules_Get", "GET", Group, "Microsoft.Network/networkSecurityGroups/{}/securityRules/{}"),
    (O::SecurityRulesList, "SecurityRules_List", "GET", Group, "Microsoft.Network/networkSecurityGroups/{}/securityRules"),
    (O::SnapshotsCreateOrUpdate, "Snapshots_CreateOrUpdate", "PUT", Group, "Microsoft.Compute/snapshots/{}"),
    (O::SnapshotsDelete, "Snapshots_Delete", "DELETE", Group, "Microsoft.Compute/snapshots/{}"),
    (O::SnapshotsGet, "Snapshots_Get", "GET", Group, "Microsoft.Compute/snapshots/{}"),
    (O::SnapshotsList, "Snapshots_List", "GET", Subscription, "providers/Microsoft.Compute/snapshots"),
    (O::SnapshotsListByResourceGroup, "Snapshots_ListByResourceGroup", "GET", Group, "Microsoft.Compute/snapshots"),
    (O::SnapshotsUpdate, "Snapshots_Update", "PATCH", Group, "Microsoft.Compute/snapshots/{}"),
    (O::SshPublicKeysCreate, "SshPublicKeys_Create", "PUT", Group, "Microsoft.Compute/sshPublicKeys/{}"),
    (O::SshPublicKeysDelete, "SshPublicKeys_Delete", "DELETE", Group, "Microsoft.Compute/sshPublicKeys/{}"),
    (O::SshPublicKeysGet, "SshPublicKeys_Get", "GET", Group, "Microsoft.Compute/sshPublicKeys/{}"),
    (O::SshPublicKeysListByResourceGroup, "SshPublicKeys_ListByResourceGroup", "GET", Group, "Microsoft.Compute/sshPublicKeys"),
    (O::SshPublicKeysListBySubscription, "SshPublicKeys_ListBySubscription", "GET", Subscription, "providers/Microsoft.Compute/sshPublicKeys"),
    (O::SshPublicKeysUpdate, "SshPublicKeys_Update", "PATCH", Group, "Microsoft.Compute/sshPublicKeys/{}"),
    (O::SubnetsCreateOrUpdate, "Subnets_CreateOrUpdate", "PUT", Group, "Microsoft.Network/virtualNetworks/{}/subnets/{}"),
    (O::SubnetsDelete, "Subnets_Delete", "DELETE", Group, "Microsoft.Network/virtualNetworks/{}/subnets/{}"),
    (O::SubnetsGet, "Subnets_Get", "GET", Group, "Microsoft.Network/virtualNetworks/{}/subnets/{}"),
    (O::SubnetsList, "Subnets_List", "GET", Group, "Microsoft.Network/virtualNetworks/{}/subnets"),
    (O::SubscriptionsGet, "Subscriptions_Get", "GET", Subscription, ""),
    (O::SubscriptionsList, "Subscriptions_List", "GET", Root, "subscriptions"),
    (O::SubscriptionsListLocations, "Subscriptions_ListLocations", "GET", Subscription, "locations"),
    (O::TagsCreateOrUpdateAtScope, "Tags_CreateOrUpdateAtScope", "PUT", Tagged, ""),
    (O::TagsDeleteAtScope, "Tags_DeleteAtScope", "DELETE", Tagged, ""),
    (O::TagsGetAtScope, "Tags_GetAtScope", "GET", Tagged, ""),
    (O::TagsList, "Tags_List", "GET", Subscription, "tagNames"),
    (O::TagsUpdateAtScope, "Tags_UpdateAtScope", "PATCH", Tagged, ""),
    (O::TenantsList, "Tenants_List", "GET", Root, "tenants"),
    (O::UsageList, "Usage_List", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/usages"),
    (O::VirtualMachineExtensionsDelete, "VirtualMachineExtensions_Delete", "DELETE", Group, "Microsoft.Compute/virtualMachines/{}/extensions/{}"),
    (O::VirtualMachineExtensionsGet, "VirtualMachineExtensions_Get", "GET", Group, "Microsoft.Compute/virtualMachines/{}/extensions/{}"),
    (O::VirtualMachineExtensionsList, "VirtualMachineExtensions_List", "GET", Group, "Microsoft.Compute/virtualMachines/{}/extensions"),
    (O::VirtualMachineImagesGet, "VirtualMachineImages_Get", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/publishers/{}/artifacttypes/vmimage/offers/{}/skus/{}/versions/{}"),
    (O::VirtualMachineImagesList, "VirtualMachineImages_List", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/publishers/{}/artifacttypes/vmimage/offers/{}/skus/{}/versions"),
    (O::VirtualMachineImagesListOffers, "VirtualMachineImages_ListOffers", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/publishers/{}/artifacttypes/vmimage/offers"),
    (O::VirtualMachineImagesListPublishers, "VirtualMachineImages_ListPublishers", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/publishers"),
    (O::VirtualMachineImagesListSkus, "VirtualMachineImages_ListSkus", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/publishers/{}/artifacttypes/vmimage/offers/{}/skus"),
    (O::VirtualMachineSizesList, "VirtualMachineSizes_List", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/vmSizes"),
    (O::VirtualMachinesCreateOrUpdate, "VirtualMachines_CreateOrUpdate", "PUT", Group, "Microsoft.Compute/virtualMachines/{}"),
    (O::VirtualMachinesDeallocate, "VirtualMachines_Deallocate", "POST", Group, "Microsoft.Compute/virtualMachines/{}/deallocate"),
    (O::VirtualMachinesDelete, "VirtualMachines_Delete", "DELETE", Group, "Microsoft.Compute/virtualMachines/{}"),
    (O::VirtualMachinesGeneralize, "VirtualMachines_Generalize", "POST", Group, "Microsoft.Compute/virtualMachines/{}/generalize"),
    (O::VirtualMachinesGet, "VirtualMachines_Get", "GET", Group, "Microsoft.Compute/virtualMachines/{}"),
    (O::VirtualMachinesInstanceView, "VirtualMachines_InstanceView", "GET", Group, "Microsoft.Compute/virtualMachines/{}/instanceView"),
    (O::VirtualMachinesList, "VirtualMachines_List", "GET", Group, "Microsoft.Compute/virtualMachines"),
    (O::VirtualMachinesListAll, "VirtualMachines_ListAll", "GET", Subscription, "providers/Microsoft.Compute/virtualMachines"),
    (O::VirtualMachinesListAvailableSizes, "VirtualMachines_ListAvailableSizes", "GET", Group, "Microsoft.Compute/virtualMachines/{}/vmSizes"),
    (O::VirtualMachinesListByLocation, "VirtualMachines_ListByLocation", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/virtualMachines"),
    (O::VirtualMachinesPowerOff, "VirtualMachines_PowerOff", "POST", Group, "Microsoft.Compute/virtualMachines/{}/powerOff"),
    (O::VirtualMachinesReapply, "VirtualMachines_Reapply", "POST", Group, "Microsoft.Compute/virtualMachines/{}/reapply"),
    (O::VirtualMachinesRedeploy, "VirtualMachines_Redeploy", "POST", Group, "Microsoft.Compute/virtualMachines/{}/redeploy"),
    (O::VirtualMachinesRestart, "VirtualMachines_Restart", "POST", Group, "Microsoft.Compute/virtualMachines/{}/restart"),
    (O::VirtualMachinesRetrieveBootDiagnosticsData, "VirtualMachines_RetrieveBootDiagnosticsData", "POST", Group, "Microsoft.Compute/virtualMachines/{}/retrieveBootDiagnosticsData"),
    (O::VirtualMachinesSimulateEviction, "VirtualMachines_SimulateEviction", "POST", Group, "Microsoft.Compute/virtualMachines/{}/simulateEviction"),
    (O::VirtualMachinesStart, "VirtualMachines_Start", "POST", Group, "Microsoft.Compute/virtualMachines/{}/start"),
    (O::VirtualMachinesUpdate, "VirtualMachines_Update", "PATCH", Group, "Microsoft.Compute/virtualMachines/{}"),
    (O::VirtualNetworksCreateOrUpdate, "VirtualNetworks_CreateOrUpdate", "PUT", Group, "Microsoft.Network/virtualNetworks/{}"),
    (O::VirtualNetworksDelete, "VirtualNetworks_Delete", "DELETE", Group, "Microsoft.Network/virtualNetworks/{}"),
    (O::VirtualNetworksGet, "VirtualNetworks_Get", "GET", Group, "Microsoft.Network/virtualNetworks/{}"),
    (O::VirtualNetworksList, "VirtualNetworks_List", "GET", Group, "Microsoft.Network/virtualNetworks"),
    (O::VirtualNetworksListAll, "VirtualNetworks_ListAll", "GET", Subscription, "providers/Microsoft.Network/virtualNetworks"),
    (O::VirtualNetworksUpdateTags, "VirtualNetworks_UpdateTags", "PATCH", Group, "Microsoft.Network/virtualNetworks/{}"),
];

/// The path of the tags of a resource, behind its id.
const TAGS: [&str; 4] = ["providers", "Microsoft.Resources", "tags", "default"];

/// The result of routing a method and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteMatch {
    /// An operation, and the segments that the braces matched: the subscription first, the resource
    /// group second if the path has one.
    Operation(Operation, Vec<String>),
    /// The emulator has no such operation.
    NotFound,
}

impl Operation {
    /// Finds the operation of a method and the decoded segments of a path.
    pub(crate) fn route(method: &str, segments: &[String]) -> RouteMatch {
        if let Some(id) = tagged(segments) {
            return tags_route(method, id);
        }
        for (operation, _, expected, scope, rest) in ROUTES {
            if expected == method && scope != Tagged && matches_path(segments, scope, rest) {
                return RouteMatch::Operation(operation, captured(segments, scope, rest));
            }
        }
        RouteMatch::NotFound
    }
}

/// Returns the segments of a pattern.
fn pattern(scope: Scope, rest: &'static str) -> impl Iterator<Item = &'static str> {
    let rest = rest.split('/').filter(|segment| !segment.is_empty());
    scope.segments().iter().copied().chain(rest)
}

/// Whether segments match a pattern.
fn matches_path(segments: &[String], scope: Scope, rest: &'static str) -> bool {
    let mut remaining = segments.iter();
    for expected in pattern(scope, rest) {
        match remaining.next() {
            Some(segment) if expected == "{}" || expected.eq_ignore_ascii_case(segment) => {}
            Some(_) | None => return false,
        }
    }
    remaining.next().is_none()
}

/// Returns what the braces of a pattern matched.
fn captured(segments: &[String], scope: Scope, rest: &'static str) -> Vec<String> {
    let pairs = pattern(scope, rest).zip(segments);
    let names = pairs.filter(|(expected, _)| *expected == "{}");
    names.map(|(_, segment)| segment.clone()).collect()
}

/// Returns the id in the path of its tags; `None` for any other path.
fn tagged(segments: &[String]) -> Option<&[String]> {
    let (id, end) = segments.split_at_checked(segments.len().checked_sub(TAGS.len())?)?;
    let same = |(one, other): (&&str, &String)| one.eq_ignore_ascii_case(other);
    (!id.is_empty() && TAGS.iter().zip(end).all(same)).then_some(id)
}

/// Finds the operation on the tags of an id. The names are the subscription and the resource group,
/// and for a resource also its type and its name.
fn tags_route(method: &str, id: &[String]) -> RouteMatch {
    let row = ROUTES.iter();
    let mut row = row.filter(|(_, _, expected, scope, _)| *scope == Tagged && *expected == method);
    let Some((operation, ..)) = row.next() else {
        return RouteMatch::NotFound;
    };
    let names = match id {
        [head, subscription, groups, group, rest @ ..]
            if head.eq_ignore_ascii_case("subscriptions")
                && groups.eq_ignore_ascii_case("resourceGroups") =>
        {
            let mut names = vec![subscription.clone(), group.clone()];
            match rest {
                [] => {}
                [providers, provider, kind, name]
                    if providers.eq_ignore_ascii_case("providers") =>
                {
                    names.extend([format!("{provider}/{kind}"), name.clone()]);
                }
                _ => return RouteMatch::NotFound,
            }
            names
        }
        _ => return RouteMatch::NotFound,
    };
    RouteMatch::Operation(*operation, names)
}

/// Returns the names of the operations on a type, for example `Microsoft.Compute/disks`, in any
/// case.
pub(super) fn operations_of(kind: &str) -> Vec<&'static str> {
    let kind = kind.to_ascii_lowercase();
    let about = |rest: &str| {
        let rest = rest.to_ascii_lowercase();
        let rest = rest.strip_prefix("providers/").unwrap_or(&rest).to_owned();
        rest == kind || rest.starts_with(&format!("{kind}/"))
    };
    let rows = ROUTES.iter().filter(|(_, _, _, _, rest)| about(rest));
    rows.map(|(_, name, ..)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: &str, path: &str) -> RouteMatch {
        let segments: Vec<_> = path.split('/').map(str::to_owned).collect();
        Operation::route(method, &segments)
    }

    #[test]
    fn every_path_has_its_operation() {
        for (operation, _, method, scope, rest) in ROUTES {
            let mut path: Vec<_> = pattern(scope, rest)
                .map(|part| part.replace("{}", "x"))
                .collect();
            if scope == Tagged {
                path = "subscriptions/s/resourceGroups/g/providers/p/k/n"
                    .split('/')
                    .chain(TAGS)
                    .map(str::to_owned)
                    .collect();
            }
            let RouteMatch::Operation(found, _) = Operation::route(method, &path) else {
                panic!("{path:?}");
            };
            assert_eq!(found, operation, "{path:?}");
        }
    }

    #[test]
    fn paths_are_routed_in_any_case() {
        let path = "Subscriptions/s/resourcegroups/g/PROVIDERS/microsoft.compute/virtualmachines/Vm/poweroff";
        let captured = ["s", "g", "Vm"].map(str::to_owned).to_vec();
        let expected = RouteMatch::Operation(Operation::VirtualMachinesPowerOff, captured);
        assert_eq!(route("POST", path), expected);
        assert_eq!(route("GET", path), RouteMatch::NotFound);
        assert_eq!(route("GET", "subscriptions/s/dogs"), RouteMatch::NotFound);
        let captured = ["s", "Microsoft.Compute"].map(str::to_owned).to_vec();
        let expected = RouteMatch::Operation(Operation::ProvidersGet, captured);
        assert_eq!(
            route("GET", "subscriptions/s/providers/Microsoft.Compute"),
            expected
        );
    }

    #[test]
    fn tags_of_groups_and_resources_are_routed() {
        let group = "subscriptions/s/resourceGroups/g/providers/microsoft.resources/tags/default";
        let names = ["s", "g"].map(str::to_owned).to_vec();
        let expected = RouteMatch::Operation(Operation::TagsGetAtScope, names);
        assert_eq!(route("GET", group), expected);
        assert_eq!(route("POST", group), RouteMatch::NotFound);
        let elsewhere = "tenants/t/providers/Microsoft.Resources/tags/default";
        assert_eq!(route("GET", elsewhere), RouteMatch::NotFound);
    }
}
