"""azure-mgmt-compute against the emulator: Azure's own package, with its own pollers."""

import base64
import urllib.request

from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.compute import ComputeManagementClient

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers"
SUBNET = f"{GROUP}/Microsoft.Network/virtualNetworks/vnet/subnets/default"


class Bearer(SansIOHTTPPolicy):
    """Sends a fixed token; the packages' own policy refuses to send one over http."""

    def on_request(self, request):
        request.http_request.headers["Authorization"] = "Bearer token"


class NoCredential:
    def get_token(self, *_, **__):
        raise AssertionError("the client requested a token")


def options(url):
    return {"base_url": url, "authentication_policy": Bearer(), "polling_interval": 0.05, "retry_total": 0}


def client(url):
    return ComputeManagementClient(NoCredential(), SUBSCRIPTION, **options(url))


def vm_spec(**more):
    public = {"name": "public", "sku": {"name": "Standard"},
              "properties": {"deleteOption": "Delete", "publicIPAllocationMethod": "Static"}}
    address = {"name": "ip", "properties": {"subnet": {"id": SUBNET}, "publicIPAddressConfiguration": public}}
    key = {"path": "/home/me/.ssh/authorized_keys", "keyData": "ssh-rsa AAAA"}
    return {
        "location": "eastus", "tags": {"Owner": "me"},
        "properties": {
            "hardwareProfile": {"vmSize": "Standard_B1s"},
            "storageProfile": {
                "imageReference": {"publisher": "Canonical", "offer": "0001-com-ubuntu-server-jammy",
                                   "sku": "22_04-lts-gen2", "version": "latest"},
                "osDisk": {"createOption": "FromImage", "deleteOption": "Delete",
                           "managedDisk": {"storageAccountType": "Premium_LRS"}},
            },
            "osProfile": {"computerName": "web", "adminUsername": "me", "customData": base64.b64encode(b"hi").decode(),
                          "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [key]}}},
            "networkProfile": {
                "networkApiVersion": "2020-11-01",
                "networkInterfaceConfigurations": [
                    {"name": "nic", "properties": {"primary": True, "deleteOption": "Delete",
                                                   "ipConfigurations": [address]}}],
            },
            "diagnosticsProfile": {"bootDiagnostics": {"enabled": True}},
            **more,
        },
    }


def refused(code, call, *arguments, **named):
    try:
        result = call(*arguments, **named)
        result = result.result() if hasattr(result, "result") else list(result) if hasattr(result, "by_page") else result
    except HttpResponseError as error:
        assert error.error is not None and error.error.code == code, str(error)
    else:
        raise AssertionError(f"not refused with {code}: {result}")


def codes(view):
    return [status.code for status in view.statuses]


def lives(azure, emulator):
    """A virtual machine from creation to deletion, with the package's pollers."""
    vms = azure.virtual_machines
    vm = vms.begin_create_or_update("rg", "web", vm_spec()).result()
    assert vm.properties.provisioning_state == "Succeeded" and vm.tags == {"Owner": "me"}
    assert codes(vms.instance_view("rg", "web")) == ["ProvisioningState/succeeded", "PowerState/running"]
    vms.begin_power_off("rg", "web", skip_shutdown=True).result()
    assert "PowerState/stopped" in codes(vms.get("rg", "web", expand="instanceView").properties.instance_view)
    vms.begin_deallocate("rg", "web").result()
    patch = {"tags": {"a": "b"}, "properties": {"hardwareProfile": {"vmSize": "Standard_B2s"}}}
    changed = vms.begin_update("rg", "web", patch).result()
    assert changed.tags == {"a": "b"} and changed.properties.hardware_profile.vm_size == "Standard_B2s"
    vms.begin_start("rg", "web").result()
    vms.begin_restart("rg", "web").result()
    [listed] = vms.list("rg")
    assert listed.properties.vm_id == vm.properties.vm_id
    [status] = vms.list_all(status_only="true")
    assert "PowerState/running" in codes(status.properties.instance_view)
    assert len(list(vms.list_by_location("eastus"))) == 1
    urls = vms.retrieve_boot_diagnostics_data("rg", "web")
    with urllib.request.urlopen(urls.serial_console_log_blob_uri, timeout=60) as console:
        assert b"booted" in console.read()
    vms.begin_delete("rg", "web", force_deletion=True).result()
    truth = emulator.control("GET", "oracle")
    assert not any(truth[kind] for kind in ("vms", "nics", "disks", "public_ips"))


def images_and_disks(azure, emulator):
    """Images of machines, and separate disks."""
    vms = azure.virtual_machines
    vms.begin_create_or_update("rg", "web", vm_spec(priority="Spot", evictionPolicy="Delete")).result()
    vms.begin_deallocate("rg", "web").result()
    vms.generalize("rg", "web")
    source = {"id": f"{GROUP}/Microsoft.Compute/virtualMachines/web"}
    image = azure.images.begin_create_or_update(
        "rg", "golden", {"location": "eastus", "properties": {"sourceVirtualMachine": source}}).result()
    assert image.properties.provisioning_state == "Succeeded"
    assert azure.images.get("rg", "golden").id == image.id
    assert len(list(azure.images.list())) == len(list(azure.images.list_by_resource_group("rg"))) == 1
    azure.images.begin_delete("rg", "golden").result()
    empty = {"location": "eastus", "sku": {"name": "Standard_LRS"},
             "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": 8}}
    disk = azure.disks.begin_create_or_update("rg", "data", empty).result()
    assert disk.properties.disk_state == "Unattached"
    assert azure.disks.get("rg", "data").properties.disk_size_gb == 8
    assert len(list(azure.disks.list())) == len(list(azure.disks.list_by_resource_group("rg"))) == 2
    azure.disks.begin_delete("rg", "data").result()
    vms.simulate_eviction("rg", "web")
    emulator.control("POST", "advance", {"millis": 1000})
    assert not list(vms.list("rg"))


def offers(azure, _emulator):
    """Sizes, SKUs and quotas."""
    assert "Standard_B1s" in [size.name for size in azure.virtual_machine_sizes.list("eastus")]
    skus = list(azure.resource_skus.list(filter="location eq 'eastus'"))
    assert skus and all(sku.locations == ["eastus"] for sku in skus)
    assert "cores" in [usage.name.value for usage in azure.usage.list("eastus")]


def pages(azure, emulator):
    """Pages are followed to the end, also past an empty one."""
    emulator.control("PATCH", "knobs", {"page_size": 2})
    emulator.control("POST", "external-actions", {"action": "create_external", "count": 5, "subscription": SUBSCRIPTION})
    emulator.fault("VirtualMachines_List", {"kind": "empty_page"}, nth=2)
    assert len(list(azure.virtual_machines.list("rg"))) == 5
    assert len(list(azure.virtual_machines.list_all())) == 5
    emulator.control("PATCH", "knobs", {"page_size": None})


def late(azure, emulator):
    """The poller raises the error of a failed operation, and the failed machine remains."""
    emulator.fault("VirtualMachines_CreateOrUpdate",
                   {"kind": "late_failure", "code": "AllocationFailed", "message": "no machine"})
    refused("AllocationFailed", azure.virtual_machines.begin_create_or_update, "rg", "web", vm_spec())
    assert azure.virtual_machines.get("rg", "web").properties.provisioning_state == "Failed"
    errors = [{"code": "InternalError", "message": "no luck"}]
    emulator.fault("VirtualMachines_Delete", {"kind": "operation_error", "errors": errors})
    refused("InternalError", azure.virtual_machines.begin_delete, "rg", "web")
    azure.virtual_machines.begin_delete("rg", "web").result()
    assert not emulator.control("GET", "oracle")["nics"]


def refusals(azure, emulator):
    """The package raises what the emulator refuses."""
    vms, missing = azure.virtual_machines, "ResourceNotFound"
    for call in [vms.get, vms.instance_view, vms.generalize, vms.simulate_eviction, vms.retrieve_boot_diagnostics_data,
                 vms.begin_start, vms.begin_restart, vms.begin_power_off, vms.begin_deallocate, azure.disks.get,
                 azure.images.get]:
        refused(missing, call, "rg", "gone")
    refused(missing, vms.begin_update, "rg", "gone", {"tags": {}})
    for call in [vms.list, azure.disks.list_by_resource_group, azure.images.list_by_resource_group]:
        refused("ResourceGroupNotFound", call, "gone")
    for call in [vms.begin_delete, azure.disks.begin_delete, azure.images.begin_delete]:
        refused("ResourceGroupNotFound", call, "gone", "gone")
    emulator.control("PATCH", "knobs", {"vcpu_quota": 0})
    refused("OperationNotAllowed", vms.begin_create_or_update, "rg", "web", vm_spec())
    emulator.control("PATCH", "knobs", {"vcpu_quota": None})
    vms.begin_create_or_update("rg", "web", vm_spec()).result()
    moved = {**vm_spec(), "zones": ["1"]}
    refused("PropertyChangeNotAllowed", vms.begin_create_or_update, "rg", "web", moved)
    nothing = {"location": "eastus", "properties": {"creationData": {"createOption": "Copy"}}}
    refused("InvalidParameter", azure.disks.begin_create_or_update, "rg", "d", nothing)
    refused("InvalidParameter", azure.images.begin_create_or_update, "rg", "i", {"location": "eastus"})
    refused("LocationNotAvailableForResourceType", azure.virtual_machine_sizes.list, "moon")
    refused("LocationNotAvailableForResourceType", azure.usage.list, "moon")
    refused("InvalidFilterInQueryString", azure.resource_skus.list, filter="colour eq 'red'")
    # Calls that have no other way to fail are forbidden or expire instead.
    for operation, call in [("VirtualMachines_ListAll", vms.list_all), ("Disks_List", azure.disks.list),
                            ("Images_List", azure.images.list),
                            ("VirtualMachines_ListByLocation", lambda: vms.list_by_location("eastus"))]:
        emulator.fault(operation, {"kind": "forbidden"})
        refused("AuthorizationFailed", call)
    emulator.fault("Operations_Get", {"kind": "operation_expired"})
    refused("NotFound", vms.begin_deallocate, "rg", "web")
    url = vms.retrieve_boot_diagnostics_data("rg", "web").console_screenshot_blob_uri
    try:
        urllib.request.urlopen(url, timeout=60).close()
    except urllib.error.HTTPError as error:
        assert error.code == 404
    else:
        raise AssertionError("there is a screenshot")


def both(emulator, operation, call, *args, **more):
    """Calls an operation twice: once it is forbidden, then it succeeds. Returns the result, of a list as a list."""
    emulator.fault(operation, {"kind": "forbidden"})
    refused("AuthorizationFailed", call, *args, **more)
    result = call(*args, **more)
    result = result.result() if hasattr(result, "result") else result
    return list(result) if hasattr(result, "__next__") or isinstance(result, list) else result


def copies_and_keys(azure, emulator):
    """Snapshots and copies of disks, SSH keys, tags, images of the marketplace, and rarer calls on a machine."""
    azure.virtual_machines.begin_create_or_update("rg", "web", vm_spec()).result()
    disk = next(iter(azure.disks.list_by_resource_group("rg")))
    both(emulator, "Disks_Update", azure.disks.begin_update, "rg", disk.name, {"tags": {"a": "b"}})
    copy = {"location": "eastus", "properties": {"creationData": {"createOption": "Copy", "sourceResourceId": disk.id}}}
    snapshots = azure.snapshots
    both(emulator, "Snapshots_CreateOrUpdate", snapshots.begin_create_or_update, "rg", "snap", copy)
    shown = both(emulator, "Snapshots_Get", snapshots.get, "rg", "snap")
    assert shown.properties.disk_size_gb == 30
    snapshots.begin_create_or_update("rg", "snap", shown).result()
    for operation, call in [("Snapshots_List", snapshots.list), ("Snapshots_ListByResourceGroup",
                            lambda: snapshots.list_by_resource_group("rg"))]:
        assert len(both(emulator, operation, lambda call=call: list(call()))) == 1
    both(emulator, "Snapshots_Update", snapshots.begin_update, "rg", "snap", {"tags": {"a": "b"}})
    both(emulator, "Snapshots_Delete", snapshots.begin_delete, "rg", "snap")
    image = {"location": "eastus", "properties": {"storageProfile": {"osDisk": {
        "osType": "Linux", "osState": "Specialized", "managedDisk": {"id": disk.id}}}}}
    azure.virtual_machines.begin_deallocate("rg", "web").result()
    azure.images.begin_create_or_update("rg", "image", image).result()
    both(emulator, "Images_Update", azure.images.begin_update, "rg", "image", {"tags": {"a": "b"}})
    keys = azure.ssh_public_keys
    both(emulator, "SshPublicKeys_Create", keys.create, "rg", "key",
         {"location": "eastus", "properties": {"publicKey": "ssh-rsa AAAA"}})
    assert both(emulator, "SshPublicKeys_Get", keys.get, "rg", "key").properties.public_key == "ssh-rsa AAAA"
    both(emulator, "SshPublicKeys_Update", keys.update, "rg", "key", {"tags": {"a": "b"}})
    for operation, call in [("SshPublicKeys_ListBySubscription", keys.list_by_subscription),
                            ("SshPublicKeys_ListByResourceGroup", lambda: keys.list_by_resource_group("rg"))]:
        assert len(both(emulator, operation, lambda call=call: list(call()))) == 1
    both(emulator, "SshPublicKeys_Delete", keys.delete, "rg", "key")
    images, names = azure.virtual_machine_images, ["Canonical", "0001-com-ubuntu-server-jammy", "22_04-lts-gen2"]
    assert both(emulator, "VirtualMachineImages_ListPublishers", images.list_publishers, "eastus")
    assert both(emulator, "VirtualMachineImages_ListOffers", images.list_offers, "eastus", *names[:1])
    assert both(emulator, "VirtualMachineImages_ListSkus", images.list_skus, "eastus", *names[:2])
    [version] = both(emulator, "VirtualMachineImages_List", images.list, "eastus", *names)
    both(emulator, "VirtualMachineImages_Get", images.get, "eastus", *names, version.name)
    vms, extensions = azure.virtual_machines, azure.virtual_machine_extensions
    assert both(emulator, "VirtualMachines_ListAvailableSizes", lambda: list(vms.list_available_sizes("rg", "web")))
    both(emulator, "VirtualMachines_Reapply", vms.begin_reapply, "rg", "web")
    vms.begin_start("rg", "web").result()
    both(emulator, "VirtualMachines_Redeploy", vms.begin_redeploy, "rg", "web")
    both(emulator, "VirtualMachineExtensions_List", extensions.list, "rg", "web")
    both(emulator, "VirtualMachineExtensions_Delete", extensions.begin_delete, "rg", "web", "none")
    refused("NotEmulated", extensions.begin_create_or_update, "rg", "web", "none", {"location": "eastus"})
    refused("NotEmulated", vms.begin_reimage, "rg", "web")


def throttled(azure, emulator):
    """The package's retry honours Retry-After, in seconds and as a date."""
    patient = ComputeManagementClient(NoCredential(), SUBSCRIPTION,
                                      **{**options(azure._config.base_url), "retry_total": 3})
    for form in ("seconds", "date"):
        emulator.control("PATCH", "knobs", {"retry_after": form})
        emulator.fault("VirtualMachines_List", {"kind": "throttled", "retry_after_secs": 1})
        assert list(patient.virtual_machines.list("rg")) == []
    emulator.control("PATCH", "knobs", {"retry_after": None})


CASES = [lives, images_and_disks, copies_and_keys, offers, pages, late, refusals, throttled]
