"""azure-mgmt-network against the emulator: interfaces, addresses and their networks."""

from azure.mgmt.network import NetworkManagementClient

from azure_with_compute import NoCredential, SUBNET, SUBSCRIPTION, options, refused


def client(url):
    return NetworkManagementClient(NoCredential(), SUBSCRIPTION, **options(url))


def lives(azure, _emulator):
    """An interface with a public address, from creation to deletion."""
    fixed = {"location": "eastus", "sku": {"name": "Standard"}, "properties": {"publicIPAllocationMethod": "Static"}}
    ip = azure.public_ip_addresses.begin_create_or_update("rg", "ip", fixed).result()
    assert ip.properties.ip_address
    address = {"name": "main", "properties": {"subnet": {"id": SUBNET}, "publicIPAddress": {"id": ip.id}}}
    wanted = {"location": "eastus", "tags": {"a": "b"}, "properties": {"ipConfigurations": [address]}}
    nics = azure.network_interfaces
    nic = nics.begin_create_or_update("rg", "nic", wanted).result()
    assert nic.tags == {"a": "b"} and nic.properties.ip_configurations[0].properties.private_ip_address
    expanded = nics.get("rg", "nic", expand="ipConfigurations/publicIPAddress")
    shown = expanded.properties.ip_configurations[0].properties.public_ip_address
    assert shown.properties.ip_address == ip.properties.ip_address
    assert len(list(nics.list("rg"))) == len(list(nics.list_all())) == 1
    addresses = azure.public_ip_addresses
    assert len(list(addresses.list("rg"))) == len(list(addresses.list_all())) == 1
    assert addresses.get("rg", "ip").properties.ip_configuration.id.endswith("/main")
    refused("PublicIPAddressCannotBeDeleted", addresses.begin_delete, "rg", "ip")
    nics.begin_delete("rg", "nic").result()
    addresses.begin_delete("rg", "ip").result()
    assert not list(nics.list("rg")) and not list(addresses.list("rg"))


def networks(azure, _emulator):
    """The existing networks."""
    network = azure.virtual_networks.get("rg", "vnet")
    assert network.properties.subnets[0].id == SUBNET
    assert len(list(azure.virtual_networks.list("rg"))) == len(list(azure.virtual_networks.list_all())) == 1
    assert azure.subnets.get("rg", "vnet", "default").properties.address_prefix == "10.0.0.0/16"
    assert len(list(azure.subnets.list("rg", "vnet"))) == 1
    assert azure.network_security_groups.get("rg", "nsg").name == "nsg"
    assert len(list(azure.network_security_groups.list("rg"))) == 1


def refusals(azure, emulator):
    """The package raises what the emulator refuses."""
    missing, no_group = "ResourceNotFound", "ResourceGroupNotFound"
    nics, addresses = azure.network_interfaces, azure.public_ip_addresses
    for call in [nics.get, addresses.get, azure.virtual_networks.get, azure.network_security_groups.get]:
        refused(missing, call, "rg", "gone")
    refused("NotFound", azure.subnets.get, "rg", "vnet", "gone")
    refused(missing, azure.subnets.list, "rg", "gone")
    for call in [nics.list, addresses.list, azure.virtual_networks.list, azure.network_security_groups.list]:
        refused(no_group, call, "gone")
    for call in [nics.begin_delete, addresses.begin_delete]:
        refused(no_group, call, "gone", "gone")
    refused("LocationRequired", addresses.begin_create_or_update, "rg", "ip", {})
    nowhere = {"name": "main", "properties": {"subnet": {"id": "/nowhere"}}}
    wanted = {"location": "eastus", "properties": {"ipConfigurations": [nowhere]}}
    refused("InvalidResourceReference", nics.begin_create_or_update, "rg", "nic", wanted)
    for operation, call in [("NetworkInterfaces_ListAll", nics.list_all), ("PublicIPAddresses_ListAll", addresses.list_all),
                            ("VirtualNetworks_ListAll", azure.virtual_networks.list_all)]:
        emulator.fault(operation, {"kind": "forbidden"})
        refused("AuthorizationFailed", call)
    emulator.fault("Operations_Get", {"kind": "forbidden"})
    good = {"location": "eastus"}
    refused("AuthorizationFailed", addresses.begin_create_or_update, "rg", "ip", good)


CASES = [lives, networks, refusals]
