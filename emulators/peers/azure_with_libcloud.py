"""apache-libcloud's Azure driver against the emulator: older versions of the API, and its own parser."""

from libcloud.compute.base import NodeAuthSSHKey
from libcloud.compute.drivers import azure_arm

from azure_with_compute import GROUP, SUBSCRIPTION
from ec2_with_libcloud import refused


def driver(port):
    class Connection(azure_arm.AzureResourceManagementConnection):
        """Sets host, port and token, for which the driver has no option."""

        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.host, self.port, self.secure = "127.0.0.1", port, 0

        def get_token_from_credentials(self):
            self.access_token, self.expires_on = "token", 4102444800

    class Driver(azure_arm.AzureNodeDriver):
        connectionCls = Connection

    return Driver("tenant", SUBSCRIPTION, "application", "secret")


def launch(azure, name="web", **more):
    size = next(size for size in azure.list_sizes(location(azure)) if size.id == "Standard_B1s")
    image = azure_arm.AzureImage("latest", "22_04-lts-gen2", "0001-com-ubuntu-server-jammy", "Canonical", "eastus", azure)
    return azure.create_node(name, size, image, NodeAuthSSHKey("ssh-rsa AAAA"), location=location(azure),
                             ex_resource_group="rg", ex_storage_account=None, ex_user_name="me", ex_network="vnet",
                             ex_use_managed_disks=True, **more)


def location(azure):
    return next(place for place in azure.list_locations() if place.id == "eastus")


def passed(emulator):
    emulator.control("POST", "advance", {"millis": 1000})


def lives(azure, emulator):
    """A node from creation to destruction, whose interface and disk the driver cleans up."""
    node = launch(azure, ex_tags={"role": "web"})
    passed(emulator)
    [shown] = azure.list_nodes()
    assert (shown.id, shown.state, shown.private_ips != []) == (node.id, "running", True)
    assert shown.extra["tags"] == {"role": "web"}
    assert len(azure.list_nodes(ex_resource_group="rg")) == 1 and azure.ex_get_node(node.id).id == node.id
    azure.ex_create_tags(node, {"a": "b"})
    passed(emulator)
    assert azure.ex_get_node(node.id).extra["tags"]["a"] == "b"
    assert azure.reboot_node(node)
    passed(emulator)
    azure.stop_node(node, ex_deallocate=False)
    passed(emulator)
    assert azure.ex_get_node(node.id).state == "paused"
    azure.stop_node(node)
    passed(emulator)
    azure.start_node(node)
    passed(emulator)
    volume = azure.create_volume(8, "data", location=location(azure), ex_resource_group="rg")
    passed(emulator)
    assert len(azure.list_volumes()) == len(azure.list_volumes(ex_resource_group="rg")) == 2
    assert azure.ex_get_volume(volume.id).size == 8
    azure.attach_volume(shown, volume, ex_lun=0)
    passed(emulator)
    assert azure.ex_get_volume(volume.id).extra["properties"]["diskState"] == "Attached"
    azure.detach_volume(volume, ex_node=azure.ex_get_node(node.id))
    passed(emulator)
    assert azure.destroy_volume(azure.ex_get_volume(volume.id))
    assert azure.destroy_node(azure.ex_get_node(node.id), ex_poll_wait=0.3)
    passed(emulator)
    truth = emulator.control("GET", "oracle")
    assert not any(truth[kind] for kind in ("vms", "nics", "disks"))


def networks(azure, emulator):
    """Networks, interfaces, addresses and groups."""
    [network] = azure.ex_list_networks()
    [subnet] = azure.ex_list_subnets(network)
    assert [group.name for group in azure.ex_list_resource_groups()] == ["rg", "other"]
    assert len(azure.ex_list_network_security_groups("rg")) == 1
    ip = azure.ex_create_public_ip("ip", "rg", location(azure), public_ip_allocation_method="Static")
    assert azure.ex_get_public_ip(ip.id).extra["ipAddress"] and len(azure.ex_list_public_ips("rg")) == 1
    nic = azure.ex_create_network_interface("nic", subnet, "rg", location(azure), public_ip=ip)
    assert azure.ex_get_nic(nic.id).name == "nic"
    assert len(azure.ex_list_nics()) == len(azure.ex_list_nics("rg")) == 1
    azure.ex_destroy_nic(nic)
    passed(emulator)
    azure.ex_delete_public_ip(ip)
    passed(emulator)
    assert not emulator.control("GET", "oracle")["public_ips"]


def refusals(azure, emulator):
    """The driver raises what the emulator refuses."""
    node = launch(azure)
    passed(emulator)
    [shown] = azure.list_nodes()
    shown.id = shown.extra["id"] = f"{GROUP}/Microsoft.Compute/virtualMachines/gone"
    missing, no_group, denied = "ResourceNotFound", "ResourceGroupNotFound", "AuthorizationFailed"
    refused(missing, azure.ex_get_node, shown.id)
    for call in [azure.start_node, azure.stop_node]:
        refused(missing, call, shown)
    refused(missing, azure.stop_node, shown, ex_deallocate=False)
    refused(missing, azure.ex_create_tags, shown, {"a": "b"})
    assert azure.reboot_node(shown) is False
    refused(missing, azure.ex_get_nic, f"{GROUP}/Microsoft.Network/networkInterfaces/gone")
    refused(missing, azure.ex_get_public_ip, f"{GROUP}/Microsoft.Network/publicIPAddresses/gone")
    refused(missing, azure.ex_get_volume, f"{GROUP}/Microsoft.Compute/disks/gone")
    for call in [azure.ex_list_nics, azure.ex_list_public_ips, azure.ex_list_network_security_groups]:
        refused(no_group, call, "gone")
    refused(no_group, azure.list_nodes, ex_resource_group="gone")
    refused(no_group, azure.list_volumes, ex_resource_group="gone")
    [network] = azure.ex_list_networks()
    network.id = network.id.replace("vnet", "gone")
    refused(missing, azure.ex_list_subnets, network)
    place = location(azure)
    place.id = "moon"
    refused("LocationNotAvailable", azure.list_sizes, place)
    refused("LocationNotAvailable", azure.ex_create_public_ip, "ip", "rg", place)
    subnet = azure_arm.AzureSubnet("/nowhere", "none", {})
    refused("InvalidResourceReference", azure.ex_create_network_interface, "n", subnet, "rg", location(azure))
    refused("LocationNotAvailable", azure.create_volume, 8, "data", location=place, ex_resource_group="rg")
    attached = next(volume for volume in azure.list_volumes())
    refused("OperationNotAllowed", azure.destroy_volume, attached)
    [nic] = azure.ex_list_nics("rg")
    refused("NicInUse", azure.ex_destroy_nic, nic)
    ip = azure.ex_create_public_ip("ip", "rg", location(azure))
    ip.id = ip.id.replace("resourceGroups/rg", "resourceGroups/gone")
    refused(no_group, azure.ex_delete_public_ip, ip)
    # The driver then reports an unknown state.
    emulator.fault("VirtualMachines_InstanceView", {"kind": "forbidden"})
    assert azure.list_nodes()[0].state == "unknown"
    # Calls that have no other way to fail are forbidden instead.
    for operation, call in [("VirtualMachines_ListAll", azure.list_nodes), ("Disks_List", azure.list_volumes),
                            ("NetworkInterfaces_ListAll", azure.ex_list_nics),
                            ("VirtualNetworks_ListAll", azure.ex_list_networks),
                            ("ResourceGroups_List", azure.ex_list_resource_groups),
                            ("Providers_Get", azure.list_locations),
                            ("VirtualMachines_CreateOrUpdate", lambda: launch(azure, "other")),
                            ("VirtualMachines_Update", lambda: azure.ex_create_tags(node, {"a": "b"}, replace=True)),
                            ("VirtualMachines_Delete", lambda: azure.destroy_node(node))]:
        emulator.fault(operation, {"kind": "forbidden"})
        refused(denied, call)


CASES = [lives, networks, refusals]
