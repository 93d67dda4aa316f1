//! The operations that the emulator supports, with their names, methods and paths.
//!
//! One table says it all: names are Azure's operation ids, and requests are routed by it. A `{}` in
//! a path takes any segment; letters of the others may be of either case, as Azure has it.

use serde::{Deserialize, Serialize};

use self::Scope::{Group, Root, Subscription};

/// An operation of the resource manager, of the compute or of the network provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "each variant is the Azure operation of that name"
)]
pub enum Operation {
    BlobGet,
    DisksCreateOrUpdate,
    DisksDelete,
    DisksGet,
    DisksList,
    DisksListByResourceGroup,
    ImagesCreateOrUpdate,
    ImagesDelete,
    ImagesGet,
    ImagesList,
    ImagesListByResourceGroup,
    NetworkInterfacesCreateOrUpdate,
    NetworkInterfacesDelete,
    NetworkInterfacesGet,
    NetworkInterfacesList,
    NetworkInterfacesListAll,
    NetworkSecurityGroupsGet,
    NetworkSecurityGroupsList,
    OperationsGet,
    ProvidersGet,
    PublicIPAddressesCreateOrUpdate,
    PublicIPAddressesDelete,
    PublicIPAddressesGet,
    PublicIPAddressesList,
    PublicIPAddressesListAll,
    ResourceGroupsCheckExistence,
    ResourceGroupsGet,
    ResourceGroupsList,
    ResourceSkusList,
    SubnetsGet,
    SubnetsList,
    SubscriptionsListLocations,
    UsageList,
    VirtualMachineSizesList,
    VirtualMachinesCreateOrUpdate,
    VirtualMachinesDeallocate,
    VirtualMachinesDelete,
    VirtualMachinesGeneralize,
    VirtualMachinesGet,
    VirtualMachinesInstanceView,
    VirtualMachinesList,
    VirtualMachinesListAll,
    VirtualMachinesListByLocation,
    VirtualMachinesPowerOff,
    VirtualMachinesRestart,
    VirtualMachinesRetrieveBootDiagnosticsData,
    VirtualMachinesSimulateEviction,
    VirtualMachinesStart,
    VirtualMachinesUpdate,
    VirtualNetworksGet,
    VirtualNetworksList,
    VirtualNetworksListAll,
}

/// What a path begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Nothing.
    Root,
    /// `subscriptions/{}`.
    Subscription,
    /// `subscriptions/{}/resourceGroups/{}/providers`.
    Group,
}

impl Scope {
    const fn segments(self) -> &'static [&'static str] {
        match self {
            Self::Root => &[],
            Self::Subscription => &["subscriptions", "{}"],
            Self::Group => &["subscriptions", "{}", "resourceGroups", "{}", "providers"],
        }
    }
}

/// An operation with its name, its method and its path.
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

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteMatch {
    /// To an operation, with what its path takes: the subscription first, the group second if it
    /// has one.
    Operation(Operation, Vec<String>),
    /// To something that knows other methods.
    OtherMethod,
    /// Nowhere.
    NotFound,
}

impl Operation {
    /// All operations.
    pub fn all() -> impl Iterator<Item = Self> {
        ROUTES.iter().map(|(operation, ..)| *operation)
    }

    /// Its name, which fault rules and counts go by: Azure's operation id.
    pub fn name(self) -> &'static str {
        let row = ROUTES.iter().find(|(operation, ..)| *operation == self);
        row.map_or("", |(_, name, ..)| name)
    }

    /// The operation of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let row = ROUTES.iter().find(|(_, known, ..)| *known == name);
        row.map(|(operation, ..)| *operation)
    }

    /// The operation of a method and the segments of a path.
    pub(crate) fn route(method: &str, segments: &[String]) -> RouteMatch {
        let mut found = RouteMatch::NotFound;
        for (operation, _, wanted, scope, rest) in ROUTES {
            let Some(captured) = match_path(segments, scope, rest) else {
                continue;
            };
            if wanted == method {
                return RouteMatch::Operation(operation, captured);
            }
            found = RouteMatch::OtherMethod;
        }
        found
    }

    /// Whether it is not of the resource manager, so that it needs neither a token nor a version.
    pub(crate) fn is_public(self) -> bool {
        self == Self::BlobGet
    }
}

/// What the braces of a path take from segments, if it fits them.
fn match_path(segments: &[String], scope: Scope, rest: &str) -> Option<Vec<String>> {
    let pattern = scope.segments().iter().copied().chain(rest.split('/'));
    let mut remaining = segments.iter();
    let mut captured = Vec::new();
    for wanted in pattern {
        let segment = remaining.next()?;
        if wanted == "{}" {
            captured.push(segment.clone());
        } else if !wanted.eq_ignore_ascii_case(segment) {
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
    fn names_are_sorted_and_lead_back() {
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
    fn paths_lead_to_operations_whatever_their_case() {
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
