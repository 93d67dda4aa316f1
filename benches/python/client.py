"""Calls of a Python client, timed here, so that the pipe to the benchmark does not count.

`client.py <client> <endpoint>` reads one JSON document per line: `{"operation": "describe", "name": "r1", "count": 10}`. It makes
the calls and prints `{"ns": .., "cpu_ns": .., "first_ns": .., "items": ..}`: the time and the processor time of all calls, the time to
the first item of a list, and the number of its items. `launch` remembers what it has launched, and `describe`, `stop`, `start` and
`terminate` take those in turn. No call waits for an operation of the cloud.
"""

import json
import sys
import time

TAG = ("fleet", "bench")


class Boto3:
    def __init__(self, url):
        import boto3
        self.ec2 = boto3.client("ec2", endpoint_url=url, region_name="us-east-1", aws_access_key_id="test",
                                aws_secret_access_key="test")

    def launch(self, name):
        tags = [{"ResourceType": kind, "Tags": [{"Key": TAG[0], "Value": TAG[1]}]}
                for kind in ("instance", "volume", "network-interface")]
        launched = self.ec2.run_instances(
            ImageId="ami-00000000000000001", InstanceType="t3.micro", MinCount=1, MaxCount=1, ClientToken=name,
            MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
            InstanceInitiatedShutdownBehavior="stop", TagSpecifications=tags)
        return launched["Instances"][0]["InstanceId"]

    def describe(self, name):
        self.ec2.describe_instances(InstanceIds=[name])

    def list(self):
        pages = self.ec2.get_paginator("describe_instances")
        filters = [{"Name": f"tag:{TAG[0]}", "Values": [TAG[1]]}]
        for page in pages.paginate(Filters=filters, PaginationConfig={"PageSize": 1000}):
            for reservation in page["Reservations"]:
                yield from reservation["Instances"]

    def stop(self, name):
        self.ec2.stop_instances(InstanceIds=[name])

    def start(self, name):
        self.ec2.start_instances(InstanceIds=[name])

    def terminate(self, name):
        self.ec2.terminate_instances(InstanceIds=[name])


class LibcloudEc2:
    def __init__(self, url):
        from libcloud.compute.providers import get_driver
        from libcloud.compute.types import Provider
        host, port = url.removeprefix("http://").split(":")
        self.ec2 = get_driver(Provider.EC2)("test", "test", region="us-east-1", host=host, port=int(port), secure=False,
                                            signature_version="4")
        self.size = next(size for size in self.ec2.list_sizes() if size.id == "t3.micro")
        self.image = self.ec2.get_image("ami-00000000000000001")
        self.nodes = {}

    def launch(self, name):
        node = self.ec2.create_node(name=name, image=self.image, size=self.size, ex_clienttoken=name,
                                    ex_metadata={TAG[0]: TAG[1]})
        self.nodes[node.id] = node
        return node.id

    def describe(self, name):
        self.ec2.list_nodes(ex_node_ids=[name])

    def list(self):
        yield from self.ec2.list_nodes(ex_filters={f"tag:{TAG[0]}": TAG[1]})

    def stop(self, name):
        self.ec2.stop_node(self.nodes[name])

    def start(self, name):
        self.ec2.start_node(self.nodes[name])

    def terminate(self, name):
        self.ec2.destroy_node(self.nodes[name])


class GoogleCompute:
    HERE = {"project": "fleet-1", "zone": "us-central1-a"}

    def __init__(self, url):
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import compute_v1
        self.client = compute_v1.InstancesClient(credentials=AnonymousCredentials(), client_options={"api_endpoint": url})
        self.types = compute_v1

    def launch(self, name):
        types = self.types
        disk = types.AttachedDisk(boot=True, auto_delete=True, initialize_params=types.AttachedDiskInitializeParams(
            source_image="projects/debian-cloud/global/images/family/debian-12"))
        access = types.AccessConfig(type_="ONE_TO_ONE_NAT", name="External NAT")
        card = types.NetworkInterface(network="global/networks/default", access_configs=[access])
        body = types.Instance(name=name, machine_type=f"zones/{self.HERE['zone']}/machineTypes/e2-micro",
                              labels={TAG[0]: TAG[1]}, disks=[disk], network_interfaces=[card])
        self.client.insert_unary(instance_resource=body, **self.HERE)
        return name

    def describe(self, name):
        self.client.get(instance=name, **self.HERE)

    def list(self):
        request = self.types.ListInstancesRequest(filter=f"labels.{TAG[0]}={TAG[1]}", max_results=500, **self.HERE)
        yield from self.client.list(request=request)

    def stop(self, name):
        self.client.stop_unary(instance=name, **self.HERE)

    def start(self, name):
        self.client.start_unary(instance=name, **self.HERE)

    def terminate(self, name):
        self.client.delete_unary(instance=name, **self.HERE)


class AzureCompute:
    SUBSCRIPTION = "00000000-0000-0000-0000-00000000000a"
    SUBNET = (f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet"
              "/subnets/default")

    def __init__(self, url):
        from azure.core.pipeline.policies import SansIOHTTPPolicy
        from azure.mgmt.compute import ComputeManagementClient

        class Bearer(SansIOHTTPPolicy):
            """Sends a fixed token; the package's own policy refuses to send one over http."""

            def on_request(self, request):
                request.http_request.headers["Authorization"] = "Bearer any"

        class NoCredential:
            def get_token(self, *scopes, **options):
                raise AssertionError("the fixed token is sent instead")

            get_token_info = get_token

        self.client = ComputeManagementClient(NoCredential(), self.SUBSCRIPTION, base_url=url, authentication_policy=Bearer())

    def launch(self, name):
        public = {"name": f"{name}-ip", "sku": {"name": "Standard"},
                  "properties": {"deleteOption": "Delete", "publicIPAllocationMethod": "Static"}}
        address = {"name": "primary", "properties": {"subnet": {"id": self.SUBNET}, "publicIPAddressConfiguration": public}}
        key = {"path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ fleet"}
        self.client.virtual_machines.begin_create_or_update("rg", name, {
            "location": "eastus", "tags": {TAG[0]: TAG[1]},
            "properties": {
                "hardwareProfile": {"vmSize": "Standard_B1s"},
                "storageProfile": {
                    "imageReference": {"publisher": "Canonical", "offer": "0001-com-ubuntu-server-jammy",
                                       "sku": "22_04-lts-gen2", "version": "latest"},
                    "osDisk": {"createOption": "FromImage", "deleteOption": "Delete"}},
                "osProfile": {"computerName": name, "adminUsername": "azureuser",
                              "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [key]}}},
                "networkProfile": {"networkApiVersion": "2022-11-01", "networkInterfaceConfigurations": [
                    {"name": f"{name}-nic", "properties": {"primary": True, "deleteOption": "Delete",
                                                           "ipConfigurations": [address]}}]}},
        }, polling=False)
        return name

    def describe(self, name):
        self.client.virtual_machines.get("rg", name, expand="instanceView")

    def list(self):
        for one in self.client.virtual_machines.list("rg"):
            if (one.tags or {}).get(TAG[0]) == TAG[1]:
                yield one
        for _ in self.client.virtual_machines.list_all(status_only="true"):
            pass

    def stop(self, name):
        self.client.virtual_machines.begin_deallocate("rg", name, polling=False)

    def start(self, name):
        self.client.virtual_machines.begin_start("rg", name, polling=False)

    def terminate(self, name):
        self.client.virtual_machines.begin_delete("rg", name, polling=False)


CLIENTS = {"boto3": Boto3, "apache-libcloud": LibcloudEc2, "google-cloud-compute": GoogleCompute,
           "azure-mgmt-compute": AzureCompute}


def main():
    client = CLIENTS[sys.argv[1]](sys.argv[2])
    launched = []
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        operation, count = asked["operation"], asked["count"]
        if operation == "reset":
            launched.clear()
            count = 0
        items, first = 0, 0
        began, cpu = time.perf_counter_ns(), time.process_time_ns()
        for number in range(count):
            if operation == "launch":
                launched.append(client.launch(f"{asked['name']}-{number}"))
            elif operation == "list":
                items = 0
                for items, _ in enumerate(client.list(), 1):
                    first = first or time.perf_counter_ns() - began
            else:
                getattr(client, operation)(launched[number])
        print(json.dumps({"ns": time.perf_counter_ns() - began, "cpu_ns": time.process_time_ns() - cpu,
                          "first_ns": first, "items": items}), flush=True)


main()
