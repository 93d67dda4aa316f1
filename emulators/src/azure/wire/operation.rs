//! The operations that the emulator supports, with their names, methods and paths.
//!
//! One table, `ROUTES`, has everything: names are Azure's operation ids, and requests are routed by
//! it. A `{}` in a path matches any segment; all other segments match in any case. Adding an
//! operation means adding a variant, a row, and an arm in `actions`.

use serde::{Deserialize, Serialize};

use self::Scope::{Group, Root, Subscription};

/// An operation of the resource manager, of the compute provider or of the network provider.
///
/// Serialized as Azure's operation id, for example `"VirtualMachines_Get"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
#[non_exhaustive]
pub enum Operation {
    /// Reads the serial console by the URL of its blob. Needs no token.
    BlobGet,
    /// Creates an empty disk, or changes its tags and size. Long-running, 202.
    DisksCreateOrUpdate,
    /// Deletes a disk that is not attached. Long-running.
    DisksDelete,
    /// Returns a disk.
    DisksGet,
    /// Lists the disks of a subscription.
    DisksList,
    /// Lists the disks of a resource group.
    DisksListByResourceGroup,
    /// Creates an image of a generalized machine or of a disk. Long-running.
    ImagesCreateOrUpdate,
    /// Deletes an image. Long-running.
    ImagesDelete,
    /// Returns an image.
    ImagesGet,
    /// Lists the images of a subscription.
    ImagesList,
    /// Lists the images of a resource group.
    ImagesListByResourceGroup,
    /// Creates an interface, or changes its tags and security group. Long-running.
    NetworkInterfacesCreateOrUpdate,
    /// Deletes an interface that is neither attached nor reserved. Long-running.
    NetworkInterfacesDelete,
    /// Returns an interface.
    NetworkInterfacesGet,
    /// Lists the interfaces of a resource group.
    NetworkInterfacesList,
    /// Lists the interfaces of a subscription.
    NetworkInterfacesListAll,
    /// Returns a network security group of the catalog.
    NetworkSecurityGroupsGet,
    /// Lists the network security groups of a resource group.
    NetworkSecurityGroupsList,
    /// Polls a long-running operation, by its status or by its location.
    OperationsGet,
    /// Returns a resource provider with its types.
    ProvidersGet,
    /// Creates a public address, or changes its tags. Long-running.
    PublicIPAddressesCreateOrUpdate,
    /// Deletes a public address that is not attached. Long-running.
    PublicIPAddressesDelete,
    /// Returns a public address.
    PublicIPAddressesGet,
    /// Lists the public addresses of a resource group.
    PublicIPAddressesList,
    /// Lists the public addresses of a subscription.
    PublicIPAddressesListAll,
    /// Checks that a resource group exists: 204 or 404.
    ResourceGroupsCheckExistence,
    /// Returns a resource group.
    ResourceGroupsGet,
    /// Lists the resource groups.
    ResourceGroupsList,
    /// Lists the sizes with the locations and zones that offer them.
    ResourceSkusList,
    /// Returns a subnet.
    SubnetsGet,
    /// Lists the subnets of a virtual network.
    SubnetsList,
    /// Lists the locations.
    SubscriptionsListLocations,
    /// Lists the quotas of a location with their usage.
    UsageList,
    /// Lists the sizes of a location.
    VirtualMachineSizesList,
    /// Creates or changes a virtual machine. Long-running, 201 or 200.
    VirtualMachinesCreateOrUpdate,
    /// Stops a virtual machine and releases its machine. Long-running.
    VirtualMachinesDeallocate,
    /// Deletes a virtual machine. Long-running, 202; 204 if it does not exist.
    VirtualMachinesDelete,
    /// Marks a stopped virtual machine as generalized, so that it can become an image.
    VirtualMachinesGeneralize,
    /// Returns a virtual machine.
    VirtualMachinesGet,
    /// Returns the states of a virtual machine.
    VirtualMachinesInstanceView,
    /// Lists the virtual machines of a resource group.
    VirtualMachinesList,
    /// Lists the virtual machines of a subscription; `statusOnly` returns only the states.
    VirtualMachinesListAll,
    /// Lists the virtual machines of a subscription in a location.
    VirtualMachinesListByLocation,
    /// Stops a virtual machine, which keeps its machine. Long-running.
    VirtualMachinesPowerOff,
    /// Restarts a running virtual machine. Long-running.
    VirtualMachinesRestart,
    /// Returns the URL of the serial console.
    VirtualMachinesRetrieveBootDiagnosticsData,
    /// Evicts a spot machine.
    VirtualMachinesSimulateEviction,
    /// Starts a virtual machine. Long-running.
    VirtualMachinesStart,
    /// Changes some properties of a virtual machine. Long-running.
    VirtualMachinesUpdate,
    /// Returns a virtual network with its subnets.
    VirtualNetworksGet,
    /// Lists the virtual networks of a resource group.
    VirtualNetworksList,
    /// Lists the virtual networks of a subscription.
    VirtualNetworksListAll,
}

/// The beginning of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// No prefix.
    Root,
    /// `subscriptions/{}`.
    Subscription,
    /// `subscriptions/{}/resourceGroups/{}/providers`.
    Group,
}

impl Scope {
    /// Returns the segments of the prefix.
    const fn segments(self) -> &'static [&'static str] {
        match self {
            Self::Root => &[],
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
const ROUTES: [Route; 52] = [
    (O::BlobGet, "Blob_Get", "GET", Root, "bootdiagnostics/{}/{}"),
    (O::DisksCreateOrUpdate, "Disks_CreateOrUpdate", "PUT", Group, "Microsoft.Compute/disks/{}"),
    (O::DisksDelete, "Disks_Delete", "DELETE", Group, "Microsoft.Compute/disks/{}"),
    (O::DisksGet, "Disks_Get", "GET", Group, "Microsoft.Compute/disks/{}"),
    (O::DisksList, "Disks_List", "GET", Subscription, "providers/Microsoft.Compute/disks"),
    (O::DisksListByResourceGroup, "Disks_ListByResourceGroup", "GET", Group, "Microsoft.Compute/disks"),
    (O::ImagesCreateOrUpdate, "Images_CreateOrUpdate", "PUT", Group, "Microsoft.Compute/images/{}"),
    (O::ImagesDelete, "Images_Delete", "DELETE", Group, "Microsoft.Compute/images/{}"),
    (O::ImagesGet, "Images_Get", "GET", Group, "Microsoft.Compute/images/{}"),
    (O::ImagesList, "Images_List", "GET", Subscription, "providers/Microsoft.Compute/images"),
    (O::ImagesListByResourceGroup, "Images_ListByResourceGroup", "GET", Group, "Microsoft.Compute/images"),
    (O::NetworkInterfacesCreateOrUpdate, "NetworkInterfaces_CreateOrUpdate", "PUT", Group, "Microsoft.Network/networkInterfaces/{}"),
    (O::NetworkInterfacesDelete, "NetworkInterfaces_Delete", "DELETE", Group, "Microsoft.Network/networkInterfaces/{}"),
    (O::NetworkInterfacesGet, "NetworkInterfaces_Get", "GET", Group, "Microsoft.Network/networkInterfaces/{}"),
    (O::NetworkInterfacesList, "NetworkInterfaces_List", "GET", Group, "Microsoft.Network/networkInterfaces"),
    (O::NetworkInterfacesListAll, "NetworkInterfaces_ListAll", "GET", Subscription, "providers/Microsoft.Network/networkInterfaces"),
    (O::NetworkSecurityGroupsGet, "NetworkSecurityGroups_Get", "GET", Group, "Microsoft.Network/networkSecurityGroups/{}"),
    (O::NetworkSecurityGroupsList, "NetworkSecurityGroups_List", "GET", Group, "Microsoft.Network/networkSecurityGroups"),
    (O::OperationsGet, "Operations_Get", "GET", Subscription, "providers/{}/locations/{}/operations/{}"),
    (O::ProvidersGet, "Providers_Get", "GET", Subscription, "providers/{}"),
    (O::PublicIPAddressesCreateOrUpdate, "PublicIPAddresses_CreateOrUpdate", "PUT", Group, "Microsoft.Network/publicIPAddresses/{}"),
    (O::PublicIPAddressesDelete, "PublicIPAddresses_Delete", "DELETE", Group, "Microsoft.Network/publicIPAddresses/{}"),
    (O::PublicIPAddressesGet, "PublicIPAddresses_Get", "GET", Group, "Microsoft.Network/publicIPAddresses/{}"),
    (O::PublicIPAddressesList, "PublicIPAddresses_List", "GET", Group, "Microsoft.Network/publicIPAddresses"),
    (O::PublicIPAddressesListAll, "PublicIPAddresses_ListAll", "GET", Subscription, "providers/Microsoft.Network/publicIPAddresses"),
    (O::ResourceGroupsCheckExistence, "ResourceGroups_CheckExistence", "HEAD", Subscription, "resourceGroups/{}"),
    (O::ResourceGroupsGet, "ResourceGroups_Get", "GET", Subscription, "resourceGroups/{}"),
    (O::ResourceGroupsList, "ResourceGroups_List", "GET", Subscription, "resourceGroups"),
    (O::ResourceSkusList, "ResourceSkus_List", "GET", Subscription, "providers/Microsoft.Compute/skus"),
    (O::SubnetsGet, "Subnets_Get", "GET", Group, "Microsoft.Network/virtualNetworks/{}/subnets/{}"),
    (O::SubnetsList, "Subnets_List", "GET", Group, "Microsoft.Network/virtualNetworks/{}/subnets"),
    (O::SubscriptionsListLocations, "Subscriptions_ListLocations", "GET", Subscription, "locations"),
    (O::UsageList, "Usage_List", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/usages"),
    (O::VirtualMachineSizesList, "VirtualMachineSizes_List", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/vmSizes"),
    (O::VirtualMachinesCreateOrUpdate, "VirtualMachines_CreateOrUpdate", "PUT", Group, "Microsoft.Compute/virtualMachines/{}"),
    (O::VirtualMachinesDeallocate, "VirtualMachines_Deallocate", "POST", Group, "Microsoft.Compute/virtualMachines/{}/deallocate"),
    (O::VirtualMachinesDelete, "VirtualMachines_Delete", "DELETE", Group, "Microsoft.Compute/virtualMachines/{}"),
    (O::VirtualMachinesGeneralize, "VirtualMachines_Generalize", "POST", Group, "Microsoft.Compute/virtualMachines/{}/generalize"),
    (O::VirtualMachinesGet, "VirtualMachines_Get", "GET", Group, "Microsoft.Compute/virtualMachines/{}"),
    (O::VirtualMachinesInstanceView, "VirtualMachines_InstanceView", "GET", Group, "Microsoft.Compute/virtualMachines/{}/instanceView"),
    (O::VirtualMachinesList, "VirtualMachines_List", "GET", Group, "Microsoft.Compute/virtualMachines"),
    (O::VirtualMachinesListAll, "VirtualMachines_ListAll", "GET", Subscription, "providers/Microsoft.Compute/virtualMachines"),
    (O::VirtualMachinesListByLocation, "VirtualMachines_ListByLocation", "GET", Subscription, "providers/Microsoft.Compute/locations/{}/virtualMachines"),
    (O::VirtualMachinesPowerOff, "VirtualMachines_PowerOff", "POST", Group, "Microsoft.Compute/virtualMachines/{}/powerOff"),
    (O::VirtualMachinesRestart, "VirtualMachines_Restart", "POST", Group, "Microsoft.Compute/virtualMachines/{}/restart"),
    (O::VirtualMachinesRetrieveBootDiagnosticsData, "VirtualMachines_RetrieveBootDiagnosticsData", "POST", Group, "Microsoft.Compute/virtualMachines/{}/retrieveBootDiagnosticsData"),
    (O::VirtualMachinesSimulateEviction, "VirtualMachines_SimulateEviction", "POST", Group, "Microsoft.Compute/virtualMachines/{}/simulateEviction"),
    (O::VirtualMachinesStart, "VirtualMachines_Start", "POST", Group, "Microsoft.Compute/virtualMachines/{}/start"),
    (O::VirtualMachinesUpdate, "VirtualMachines_Update", "PATCH", Group, "Microsoft.Compute/virtualMachines/{}"),
    (O::VirtualNetworksGet, "VirtualNetworks_Get", "GET", Group, "Microsoft.Network/virtualNetworks/{}"),
    (O::VirtualNetworksList, "VirtualNetworks_List", "GET", Group, "Microsoft.Network/virtualNetworks"),
    (O::VirtualNetworksListAll, "VirtualNetworks_ListAll", "GET", Subscription, "providers/Microsoft.Network/virtualNetworks"),
];

/// The result of routing a method and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteMatch {
    /// An operation, and the segments that the braces matched: the subscription first, the resource
    /// group second if the path has one.
    Operation(Operation, Vec<String>),
    /// The path exists with other methods only: 405.
    OtherMethod,
    /// The path does not exist: 404.
    NotFound,
}

impl Operation {
    /// Returns all operations, sorted by name.
    pub fn all() -> impl Iterator<Item = Self> {
        ROUTES.iter().map(|(operation, ..)| *operation)
    }

    /// Returns Azure's operation id, for example `VirtualMachines_Get`. Fault rules, throttles and
    /// call counts use it.
    ///
    /// ```
    /// use fleetwright_emulators::azure::Operation;
    ///
    /// let operation = Operation::VirtualMachinesPowerOff;
    /// assert_eq!(operation.name(), "VirtualMachines_PowerOff");
    /// assert_eq!(Operation::from_name("VirtualMachines_PowerOff"), Some(operation));
    /// assert_eq!(Operation::from_name("VirtualMachines_Dance"), None);
    /// ```
    pub fn name(self) -> &'static str {
        let row = ROUTES.iter().find(|(operation, ..)| *operation == self);
        row.map_or("", |(_, name, ..)| name)
    }

    /// Returns the operation of that name, or `None` if the emulator does not support it.
    pub fn from_name(name: &str) -> Option<Self> {
        let row = ROUTES.iter().find(|(_, known, ..)| *known == name);
        row.map(|(operation, ..)| *operation)
    }

    /// Finds the operation of a method and the decoded segments of a path.
    pub(crate) fn route(method: &str, segments: &[String]) -> RouteMatch {
        let mut found = RouteMatch::NotFound;
        for (operation, _, expected, scope, rest) in ROUTES {
            let Some(captured) = match_path(segments, scope, rest) else {
                continue;
            };
            if expected == method {
                return RouteMatch::Operation(operation, captured);
            }
            found = RouteMatch::OtherMethod;
        }
        found
    }

    /// Whether the operation belongs to blob storage and not to the resource manager, so that it
    /// needs neither a token nor an API version.
    pub(crate) fn is_public(self) -> bool {
        self == Self::BlobGet
    }
}

/// Matches segments against a pattern, and returns what the braces matched.
fn match_path(segments: &[String], scope: Scope, rest: &str) -> Option<Vec<String>> {
    let pattern = scope.segments().iter().copied().chain(rest.split('/'));
    let mut remaining = segments.iter();
    let mut captured = Vec::new();
    for expected in pattern {
        let segment = remaining.next()?;
        if expected == "{}" {
            captured.push(segment.clone());
        } else if !expected.eq_ignore_ascii_case(segment) {
            return None;
        }
    }
    remaining.next().is_none().then_some(captured)
}

impl From<Operation> for &'static str {
    fn from(operation: Operation) -> Self {
        operation.name()
    }
}

impl TryFrom<String> for Operation {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| format!("no operation {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: &str, path: &str) -> RouteMatch {
        let segments: Vec<_> = path.split('/').map(str::to_owned).collect();
        Operation::route(method, &segments)
    }

    #[test]
    fn names_are_sorted_and_round_trip() {
        let names: Vec<_> = Operation::all().map(Operation::name).collect();
        assert!(names.is_sorted());
        assert!(Operation::all().collect::<Vec<_>>().is_sorted());
        for operation in Operation::all() {
            assert_eq!(Operation::from_name(operation.name()), Some(operation));
            let text = serde_json::to_string(&operation).unwrap();
            assert_eq!(serde_json::from_str::<Operation>(&text).unwrap(), operation);
        }
        assert!(serde_json::from_str::<Operation>("\"VirtualMachines_Dance\"").is_err());
    }

    #[test]
    fn paths_are_routed_in_any_case() {
        let path = "Subscriptions/s/resourcegroups/g/PROVIDERS/microsoft.compute/virtualmachines/Vm/poweroff";
        let captured = ["s", "g", "Vm"].map(str::to_owned).to_vec();
        let expected = RouteMatch::Operation(Operation::VirtualMachinesPowerOff, captured);
        assert_eq!(route("POST", path), expected);
        assert_eq!(route("GET", path), RouteMatch::OtherMethod);
        assert_eq!(route("GET", "subscriptions/s/dogs"), RouteMatch::NotFound);
        let captured = ["s", "Microsoft.Compute"].map(str::to_owned).to_vec();
        let expected = RouteMatch::Operation(Operation::ProvidersGet, captured);
        assert_eq!(
            route("GET", "subscriptions/s/providers/Microsoft.Compute"),
            expected
        );
    }
}
