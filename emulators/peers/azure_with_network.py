"""azure-mgmt-network against the emulator: interfaces, addresses and their networks."""

from azure.mgmt.network import NetworkManagementClient

from azure_with_compute import NoCredential, SUBNET, SUBSCRIPTION, both, options, refused


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


def own_networks(azure, emulator):
    """A network, a subnet and a security group of one's own, from creation to deletion."""
    vnets, subnets, groups, rules = (azure.virtual_networks, azure.subnets, azure.network_security_groups,
                                     azure.security_rules)
    group = both(emulator, "NetworkSecurityGroups_CreateOrUpdate", groups.begin_create_or_update, "rg", "mine",
                 {"location": "eastus"})
    rule = {"properties": {"protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 100,
                           "sourcePortRange": "*", "destinationPortRange": "22", "sourceAddressPrefix": "*",
                           "destinationAddressPrefix": "*"}}
    both(emulator, "SecurityRules_CreateOrUpdate", rules.begin_create_or_update, "rg", "mine", "ssh", rule)
    assert both(emulator, "SecurityRules_Get", rules.get, "rg", "mine", "ssh").properties.priority == 100
    assert len(both(emulator, "SecurityRules_List", lambda: list(rules.list("rg", "mine")))) == 1
    defaults = azure.default_security_rules
    assert len(both(emulator, "DefaultSecurityRules_List", lambda: list(defaults.list("rg", "mine")))) == 6
    vnet = both(emulator, "VirtualNetworks_CreateOrUpdate", vnets.begin_create_or_update, "rg", "mine",
                {"location": "eastus", "properties": {"addressSpace": {"addressPrefixes": ["10.7.0.0/16"]}}})
    vnets.begin_create_or_update("rg", "mine", vnet).result()
    subnet = both(emulator, "Subnets_CreateOrUpdate", subnets.begin_create_or_update, "rg", "mine", "one",
                  {"properties": {"addressPrefix": "10.7.1.0/24", "networkSecurityGroup": {"id": group.id}}})
    address = {"name": "main", "properties": {"subnet": subnet}}
    nic = azure.network_interfaces.begin_create_or_update(
        "rg", "nic", {"location": "eastus", "properties": {"ipConfigurations": [address]}}).result()
    azure.network_interfaces.begin_create_or_update("rg", "nic", nic).result()
    ip = azure.public_ip_addresses.begin_create_or_update("rg", "ip", {"location": "eastus"}).result()
    for operation, call, name in [("NetworkInterfaces_UpdateTags", azure.network_interfaces.update_tags, nic.name),
                                  ("PublicIPAddresses_UpdateTags", azure.public_ip_addresses.update_tags, ip.name),
                                  ("VirtualNetworks_UpdateTags", vnets.update_tags, "mine"),
                                  ("NetworkSecurityGroups_UpdateTags", groups.update_tags, "mine")]:
        assert both(emulator, operation, call, "rg", name, {"tags": {"a": "b"}}).tags == {"a": "b"}
    assert len(both(emulator, "NetworkSecurityGroups_ListAll", lambda: list(groups.list_all()))) == 2
    refused("InUseSubnetCannotBeDeleted", vnets.begin_delete, "rg", "mine")
    azure.network_interfaces.begin_delete("rg", "nic").result()
    refused("InUseNetworkSecurityGroupCannotBeDeleted", groups.begin_delete, "rg", "mine")
    both(emulator, "Subnets_Delete", subnets.begin_delete, "rg", "mine", "one")
    both(emulator, "VirtualNetworks_Delete", vnets.begin_delete, "rg", "mine")
    both(emulator, "SecurityRules_Delete", rules.begin_delete, "rg", "mine", "ssh")
    both(emulator, "NetworkSecurityGroups_Delete", groups.begin_delete, "rg", "mine")
    azure.public_ip_addresses.begin_delete("rg", "ip").result()
    refused("NotEmulated", azure.load_balancers.get, "rg", "lb")


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


CASES = [lives, networks, own_networks, refusals]
