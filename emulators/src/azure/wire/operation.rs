//! The operations that the emulator supports, by their names.
//!
//! Names are Azure's operation ids; `route` has their methods and paths. Adding an operation means
//! adding a variant, a row in `route`, and an arm in `actions`.

use serde::{Deserialize, Serialize};

use super::route::ROUTES;

/// An operation of the resource manager, of the compute provider or of the network provider.
///
/// Serialized as Azure's operation id, for example `"VirtualMachines_Get"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
#[non_exhaustive]
pub enum Operation {
    /// Reads the serial console by the URL of its blob. Needs no token.
    BlobGet,
    /// Lists the rules that every network security group has.
    DefaultSecurityRulesList,
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
    /// Changes tags, size or SKU of a disk. Long-running, 202.
    DisksUpdate,
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
    /// Replaces the tags of an image. Long-running.
    ImagesUpdate,
    /// Returns the endpoints of the cloud. Needs no token.
    MetadataEndpoints,
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
    /// Replaces the tags of an interface.
    NetworkInterfacesUpdateTags,
    /// Creates or replaces a network security group with its rules. Long-running.
    NetworkSecurityGroupsCreateOrUpdate,
    /// Deletes a network security group that nothing refers to. Long-running.
    NetworkSecurityGroupsDelete,
    /// Returns a network security group with its rules.
    NetworkSecurityGroupsGet,
    /// Lists the network security groups of a resource group.
    NetworkSecurityGroupsList,
    /// Lists the network security groups of a subscription.
    NetworkSecurityGroupsListAll,
    /// Replaces the tags of a network security group.
    NetworkSecurityGroupsUpdateTags,
    /// Polls a long-running operation, by its status or by its location.
    OperationsGet,
    /// Polls the operation of a resource group by its location.
    OperationsGetResult,
    /// Returns a resource provider with its types.
    ProvidersGet,
    /// Lists the resource providers.
    ProvidersList,
    /// Registers a resource provider, which is without effect: all are.
    ProvidersRegister,
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
    /// Replaces the tags of a public address.
    PublicIPAddressesUpdateTags,
    /// Checks that a resource group exists: 204 or 404.
    ResourceGroupsCheckExistence,
    /// Creates a resource group, or replaces its tags.
    ResourceGroupsCreateOrUpdate,
    /// Deletes a resource group with everything in it. Long-running.
    ResourceGroupsDelete,
    /// Returns a resource group.
    ResourceGroupsGet,
    /// Lists the resource groups.
    ResourceGroupsList,
    /// Replaces the tags of a resource group.
    ResourceGroupsUpdate,
    /// Lists the sizes with the locations and zones that offer them.
    ResourceSkusList,
    /// Lists the resources of a subscription.
    ResourcesList,
    /// Lists the resources of a resource group.
    ResourcesListByResourceGroup,
    /// Creates or replaces a rule of a network security group. Long-running.
    SecurityRulesCreateOrUpdate,
    /// Deletes a rule of a network security group. Long-running.
    SecurityRulesDelete,
    /// Returns a rule of a network security group.
    SecurityRulesGet,
    /// Lists the rules of a network security group.
    SecurityRulesList,
    /// Creates a snapshot of a disk or of a snapshot. Long-running, 202.
    SnapshotsCreateOrUpdate,
    /// Deletes a snapshot. Long-running.
    SnapshotsDelete,
    /// Returns a snapshot.
    SnapshotsGet,
    /// Lists the snapshots of a subscription.
    SnapshotsList,
    /// Lists the snapshots of a resource group.
    SnapshotsListByResourceGroup,
    /// Replaces the tags of a snapshot. Long-running, 202.
    SnapshotsUpdate,
    /// Creates or replaces an SSH key.
    SshPublicKeysCreate,
    /// Deletes an SSH key.
    SshPublicKeysDelete,
    /// Returns an SSH key.
    SshPublicKeysGet,
    /// Lists the SSH keys of a resource group.
    SshPublicKeysListByResourceGroup,
    /// Lists the SSH keys of a subscription.
    SshPublicKeysListBySubscription,
    /// Changes tags or key of an SSH key.
    SshPublicKeysUpdate,
    /// Creates or replaces a subnet. Long-running.
    SubnetsCreateOrUpdate,
    /// Deletes a subnet that no interface uses. Long-running.
    SubnetsDelete,
    /// Returns a subnet.
    SubnetsGet,
    /// Lists the subnets of a virtual network.
    SubnetsList,
    /// Returns a subscription.
    SubscriptionsGet,
    /// Lists the subscriptions.
    SubscriptionsList,
    /// Lists the locations.
    SubscriptionsListLocations,
    /// Replaces the tags of a resource group or resource.
    TagsCreateOrUpdateAtScope,
    /// Removes the tags of a resource group or resource.
    TagsDeleteAtScope,
    /// Returns the tags of a resource group or resource.
    TagsGetAtScope,
    /// Lists the tags that the resources of a subscription have.
    TagsList,
    /// Merges, replaces or removes some tags of a resource group or resource.
    TagsUpdateAtScope,
    /// Lists the tenants: always one.
    TenantsList,
    /// Lists the quotas of a location with their usage.
    UsageList,
    /// Deletes an extension: there is never one, so always 204.
    VirtualMachineExtensionsDelete,
    /// Returns an extension: there is never one, so always 404.
    VirtualMachineExtensionsGet,
    /// Lists the extensions of a virtual machine: always empty.
    VirtualMachineExtensionsList,
    /// Returns a version of an image.
    VirtualMachineImagesGet,
    /// Lists the versions of an image.
    VirtualMachineImagesList,
    /// Lists the offers of a publisher.
    VirtualMachineImagesListOffers,
    /// Lists the publishers of images.
    VirtualMachineImagesListPublishers,
    /// Lists the SKUs of an offer.
    VirtualMachineImagesListSkus,
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
    /// Lists the sizes that a virtual machine can have.
    VirtualMachinesListAvailableSizes,
    /// Lists the virtual machines of a subscription in a location.
    VirtualMachinesListByLocation,
    /// Stops a virtual machine, which keeps its machine. Long-running.
    VirtualMachinesPowerOff,
    /// Applies the state of a virtual machine again, without effect. Long-running.
    VirtualMachinesReapply,
    /// Moves a running virtual machine to another machine, which restarts it. Long-running.
    VirtualMachinesRedeploy,
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
    /// Creates or replaces a virtual network. Long-running.
    VirtualNetworksCreateOrUpdate,
    /// Deletes a virtual network that no interface uses. Long-running.
    VirtualNetworksDelete,
    /// Returns a virtual network with its subnets.
    VirtualNetworksGet,
    /// Lists the virtual networks of a resource group.
    VirtualNetworksList,
    /// Lists the virtual networks of a subscription.
    VirtualNetworksListAll,
    /// Replaces the tags of a virtual network.
    VirtualNetworksUpdateTags,
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
        // Rows and variants have the same order, which a test checks.
        ROUTES.get(self as usize).map_or("", |(_, name, ..)| name)
    }

    /// Returns the operation of that name, or `None` if the emulator does not support it.
    pub fn from_name(name: &str) -> Option<Self> {
        let row = ROUTES
            .binary_search_by(|(_, known, ..)| (*known).cmp(name))
            .ok()?;
        ROUTES.get(row).map(|(operation, ..)| *operation)
    }

    /// Whether the operation needs neither a token nor an API version: the blob storage's, and the
    /// one that a client reads before it has a token.
    pub(crate) fn is_public(self) -> bool {
        matches!(self, Self::BlobGet | Self::MetadataEndpoints)
    }

    /// Whether the operation's path names a subscription.
    pub(crate) fn has_subscription(self) -> bool {
        !self.is_public() && !matches!(self, Self::SubscriptionsList | Self::TenantsList)
    }
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
}
