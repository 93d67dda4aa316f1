"""Runs Azure's own packages and libcloud against the emulator and says what they found: azure_judge.py <emulator>

One line for each case, then the table of operations and clients.
"""

import azure_model
import azure_with_compute
import azure_with_libcloud
import azure_with_network
from court import hold

# What the emulator promises to speak; its own list is checked against it.
COMPUTE = [
    "VirtualMachines_CreateOrUpdate", "VirtualMachines_Get", "VirtualMachines_InstanceView", "VirtualMachines_List",
    "VirtualMachines_ListAll", "VirtualMachines_ListByLocation", "VirtualMachines_Update", "VirtualMachines_Start",
    "VirtualMachines_PowerOff", "VirtualMachines_Deallocate", "VirtualMachines_Restart", "VirtualMachines_Delete",
    "VirtualMachines_Generalize", "VirtualMachines_SimulateEviction", "VirtualMachines_RetrieveBootDiagnosticsData",
    "Blob_Get", "Disks_CreateOrUpdate", "Disks_Get", "Disks_List", "Disks_ListByResourceGroup", "Disks_Delete",
    "Images_CreateOrUpdate", "Images_Get", "Images_List", "Images_ListByResourceGroup", "Images_Delete",
    "VirtualMachineSizes_List", "ResourceSkus_List", "Usage_List",
]
NETWORK = [
    "NetworkInterfaces_CreateOrUpdate", "NetworkInterfaces_Get", "NetworkInterfaces_List", "NetworkInterfaces_ListAll",
    "NetworkInterfaces_Delete", "PublicIPAddresses_CreateOrUpdate", "PublicIPAddresses_Get", "PublicIPAddresses_List",
    "PublicIPAddresses_ListAll", "PublicIPAddresses_Delete", "VirtualNetworks_Get", "VirtualNetworks_List",
    "VirtualNetworks_ListAll", "Subnets_Get", "Subnets_List", "NetworkSecurityGroups_Get", "NetworkSecurityGroups_List",
]
MANAGER = ["ResourceGroups_List", "ResourceGroups_Get", "ResourceGroups_CheckExistence", "Providers_Get",
           "Subscriptions_ListLocations"]
# What each client has no call for. Nobody has one for the last: tests alone ask for them.
NO_CALL = {
    "azure-mgmt-compute": set(NETWORK + MANAGER),
    "azure-mgmt-network": set(COMPUTE + MANAGER),
    "libcloud": set(COMPUTE[:26]) & {
        "VirtualMachines_ListByLocation", "VirtualMachines_Generalize", "VirtualMachines_SimulateEviction",
        "VirtualMachines_RetrieveBootDiagnosticsData", "Blob_Get", "Images_CreateOrUpdate", "Images_Get", "Images_List",
        "Images_ListByResourceGroup", "Images_Delete"} | {
        "ResourceSkus_List", "Usage_List", "PublicIPAddresses_ListAll", "VirtualNetworks_Get", "VirtualNetworks_List",
        "Subnets_Get", "NetworkSecurityGroups_Get", "ResourceGroups_Get", "ResourceGroups_CheckExistence",
        "Subscriptions_ListLocations", "Operations_Get"},
}


EXCUSED = dict.fromkeys(set.intersection(*NO_CALL.values()), "no client has a call for it; the emulator's own tests ask")


def main():
    clients = {
        "azure-mgmt-compute": (azure_with_compute, lambda tap: azure_with_compute.client(tap.url)),
        "azure-mgmt-network": (azure_with_network, lambda tap: azure_with_network.client(tap.url)),
        "libcloud": (azure_with_libcloud, lambda tap: azure_with_libcloud.driver(tap.port)),
    }
    additions = f"{len(azure_model.ADDITIONS)} additions to the models, each of them needed"
    hold("azure", azure_model, clients, NO_CALL, [*COMPUTE, *NETWORK, "Operations_Get", *MANAGER], EXCUSED,
         more=lambda score, _: score.check(additions, azure_model.unneeded()))


if __name__ == "__main__":
    main()
