"""Checks the emulated Azure with Azure's own packages and libcloud: azure_check.py <emulator>

Prints one line for each case, then the table of operations and clients.
"""

import azure_model
import azure_with_compute
import azure_with_libcloud
import azure_with_network
from harness import run_checks

# The operations that the emulator must support; its own list is checked against these.
COMPUTE = [
    "VirtualMachines_CreateOrUpdate", "VirtualMachines_Get", "VirtualMachines_InstanceView", "VirtualMachines_List",
    "VirtualMachines_ListAll", "VirtualMachines_ListByLocation", "VirtualMachines_Update", "VirtualMachines_Start",
    "VirtualMachines_PowerOff", "VirtualMachines_Deallocate", "VirtualMachines_Restart", "VirtualMachines_Delete",
    "VirtualMachines_Generalize", "VirtualMachines_SimulateEviction", "VirtualMachines_RetrieveBootDiagnosticsData",
    "Blob_Get", "Disks_CreateOrUpdate", "Disks_Get", "Disks_List", "Disks_ListByResourceGroup", "Disks_Delete",
    "Images_CreateOrUpdate", "Images_Get", "Images_List", "Images_ListByResourceGroup", "Images_Delete",
    "VirtualMachineSizes_List", "ResourceSkus_List", "Usage_List",
    # azure_with_compute.py covers these; libcloud has no call for them.
    "Disks_Update", "Images_Update", "Snapshots_CreateOrUpdate", "Snapshots_Get", "Snapshots_List",
    "Snapshots_ListByResourceGroup", "Snapshots_Update", "Snapshots_Delete", "SshPublicKeys_Create", "SshPublicKeys_Get",
    "SshPublicKeys_ListByResourceGroup", "SshPublicKeys_ListBySubscription", "SshPublicKeys_Update",
    "SshPublicKeys_Delete", "VirtualMachineImages_Get", "VirtualMachineImages_List", "VirtualMachineImages_ListOffers",
    "VirtualMachineImages_ListPublishers", "VirtualMachineImages_ListSkus", "VirtualMachineExtensions_Delete",
    "VirtualMachineExtensions_List", "VirtualMachines_ListAvailableSizes", "VirtualMachines_Reapply",
    "VirtualMachines_Redeploy",
]
NETWORK = [
    "NetworkInterfaces_CreateOrUpdate", "NetworkInterfaces_Get", "NetworkInterfaces_List", "NetworkInterfaces_ListAll",
    "NetworkInterfaces_Delete", "PublicIPAddresses_CreateOrUpdate", "PublicIPAddresses_Get", "PublicIPAddresses_List",
    "PublicIPAddresses_ListAll", "PublicIPAddresses_Delete", "VirtualNetworks_Get", "VirtualNetworks_List",
    "VirtualNetworks_ListAll", "Subnets_Get", "Subnets_List", "NetworkSecurityGroups_Get", "NetworkSecurityGroups_List",
    # azure_with_network.py covers these; libcloud has no call for them.
    "NetworkInterfaces_UpdateTags", "PublicIPAddresses_UpdateTags", "VirtualNetworks_CreateOrUpdate",
    "VirtualNetworks_UpdateTags", "VirtualNetworks_Delete", "Subnets_CreateOrUpdate", "Subnets_Delete",
    "NetworkSecurityGroups_CreateOrUpdate", "NetworkSecurityGroups_UpdateTags", "NetworkSecurityGroups_Delete",
    "NetworkSecurityGroups_ListAll", "SecurityRules_CreateOrUpdate", "SecurityRules_Get", "SecurityRules_List",
    "SecurityRules_Delete", "DefaultSecurityRules_List",
]
# The operations of the resource manager that no pinned client has a call for, and one that cannot succeed.
UNCALLED = [
    "Metadata_Endpoints", "Operations_GetResult", "Providers_List", "Providers_Register", "ResourceGroups_CreateOrUpdate",
    "ResourceGroups_Delete", "ResourceGroups_Update", "Resources_List", "Resources_ListByResourceGroup",
    "Subscriptions_Get", "Subscriptions_List", "Tags_CreateOrUpdateAtScope", "Tags_DeleteAtScope", "Tags_GetAtScope",
    "Tags_List", "Tags_UpdateAtScope", "Tenants_List", "VirtualMachineExtensions_Get",
]
MANAGER = ["ResourceGroups_List", "ResourceGroups_Get", "ResourceGroups_CheckExistence", "Providers_Get",
           "Subscriptions_ListLocations", *UNCALLED]
# The operations that each client has no call for.
NO_CALL = {
    "azure-mgmt-compute": set(NETWORK + MANAGER),
    "azure-mgmt-network": set(COMPUTE + MANAGER),
    "libcloud": set(COMPUTE[:26]) & {
        "VirtualMachines_ListByLocation", "VirtualMachines_Generalize", "VirtualMachines_SimulateEviction",
        "VirtualMachines_RetrieveBootDiagnosticsData", "Blob_Get", "Images_CreateOrUpdate", "Images_Get", "Images_List",
        "Images_ListByResourceGroup", "Images_Delete"} | {
        "ResourceSkus_List", "Usage_List", "PublicIPAddresses_ListAll", "VirtualNetworks_Get", "VirtualNetworks_List",
        "Subnets_Get", "NetworkSecurityGroups_Get", "ResourceGroups_Get", "ResourceGroups_CheckExistence",
        "Subscriptions_ListLocations", "Operations_Get", *COMPUTE[29:], *NETWORK[17:], *UNCALLED},
}
EXCUSED = dict.fromkeys(set.intersection(*NO_CALL.values()), "no client has a call for it; the emulator's own tests cover it")


def main():
    clients = {
        "azure-mgmt-compute": (azure_with_compute, lambda proxy: azure_with_compute.client(proxy.url)),
        "azure-mgmt-network": (azure_with_network, lambda proxy: azure_with_network.client(proxy.url)),
        "libcloud": (azure_with_libcloud, lambda proxy: azure_with_libcloud.driver(proxy.port)),
    }
    additions = f"{len(azure_model.ADDITIONS)} additions to the models, all of them needed"
    run_checks("azure", azure_model, clients, NO_CALL, [*COMPUTE, *NETWORK, "Operations_Get", *MANAGER], EXCUSED,
         more=lambda results, _: results.check(additions, azure_model.unneeded()))


if __name__ == "__main__":
    main()
