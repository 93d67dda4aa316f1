"""boto3 against the emulator: what terraform and ansible create around an instance, with the calls that they make."""

from ec2_with_boto3 import IMAGE, MISSING, launch, refused, running, wait

KEY = b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ test"
# The actions that only the cases of this file call.
ACTIONS = [
    "CreateVpc", "DescribeVpcs", "DescribeVpcAttribute", "ModifyVpcAttribute", "DeleteVpc", "DescribeRouteTables", "DescribeNetworkAcls",
    "CreateSubnet", "ModifySubnetAttribute", "DeleteSubnet", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress",
    "AuthorizeSecurityGroupEgress", "RevokeSecurityGroupIngress", "RevokeSecurityGroupEgress", "DescribeSecurityGroupRules",
    "DeleteSecurityGroup", "CreateKeyPair", "ImportKeyPair", "DescribeKeyPairs", "DeleteKeyPair", "CreateVolume", "AttachVolume",
    "ModifyVolume", "DescribeVolumesModifications", "DetachVolume", "DeleteVolume", "AllocateAddress", "AssociateAddress",
    "DescribeAddressesAttribute", "DisassociateAddress", "ReleaseAddress", "DescribeSpotInstanceRequests", "CancelSpotInstanceRequests",
    "DescribeInstanceCreditSpecifications", "ModifyInstanceCreditSpecification", "ModifyInstanceMetadataOptions",
    "ModifyNetworkInterfaceAttribute", "MonitorInstances", "UnmonitorInstances", "DescribeAccountAttributes", "DescribeRegions",
    "DescribeInstanceTypeOfferings", "DescribeImageAttribute",
]
# What terraform's provider for AWS 5.100 sends for an `aws_instance` without optional arguments.
TERRAFORM = {"HibernationOptions": {"Configured": False}, "CreditSpecification": {"CpuCredits": "unlimited"}, "DisableApiStop": False,
             "EbsOptimized": False, "MaintenanceOptions": {"AutoRecovery": "default"}, "Monitoring": {"Enabled": False},
             "InstanceType": "t3.micro"}


def networks(ec2, emulator):
    """A VPC with a subnet, rules and a key lives as terraform creates, reads, changes and destroys it."""
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16", TagSpecifications=[tags("vpc")])["Vpc"]["VpcId"]
    wait(ec2, "vpc_available", VpcIds=[vpc])
    of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    for attribute in ("enableDnsHostnames", "enableDnsSupport", "enableNetworkAddressUsageMetrics"):
        ec2.describe_vpc_attribute(VpcId=vpc, Attribute=attribute)
    assert len(ec2.describe_route_tables(Filters=[*of_vpc, {"Name": "association.main", "Values": ["true"]}])["RouteTables"]) == 1
    assert len(ec2.describe_network_acls(Filters=[*of_vpc, {"Name": "default", "Values": ["true"]}])["NetworkAcls"]) == 1
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.1.0/24", AvailabilityZone="us-east-1b")["Subnet"]["SubnetId"]
    wait(ec2, "subnet_available", SubnetIds=[subnet])
    ec2.modify_subnet_attribute(SubnetId=subnet, MapPublicIpOnLaunch={"Value": True})
    assert [found["SubnetId"] for found in ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["false"]}])["Subnets"]] == [subnet]
    group = ec2.create_security_group(GroupName="web", Description="web", VpcId=vpc)["GroupId"]
    everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    web = [{"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "IpRanges": [{"CidrIp": "0.0.0.0/0", "Description": "web"}],
            "Ipv6Ranges": [{"CidrIpv6": "::/0"}], "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.revoke_security_group_egress(GroupId=group, IpPermissions=everything)
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=everything)
    assert len(ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=web)["SecurityGroupRules"]) == 3
    refused("InvalidPermission.Duplicate", 400, ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=web)
    refused("InvalidPermission.Duplicate", 400, ec2.authorize_security_group_egress, GroupId=group, IpPermissions=everything)
    [shown] = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert shown["IpPermissions"][0]["IpRanges"] == web[0]["IpRanges"], shown
    assert len(ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])["SecurityGroupRules"]) == 4
    ec2.import_key_pair(KeyName="ops", PublicKeyMaterial=KEY)
    assert "PRIVATE KEY" in ec2.create_key_pair(KeyName="new", KeyType="ed25519")["KeyMaterial"]
    assert ec2.describe_key_pairs(KeyNames=["ops"])["KeyPairs"][0]["KeyType"] == "ed25519"
    [instance] = running(ec2, SubnetId=subnet, SecurityGroupIds=[group], KeyName="ops", PrivateIpAddress="10.1.1.50", **TERRAFORM)
    refused("DependencyViolation", 400, ec2.delete_subnet, SubnetId=subnet)
    refused("DependencyViolation", 400, ec2.delete_security_group, GroupId=group)
    refused("DependencyViolation", 400, ec2.delete_vpc, VpcId=vpc)
    ec2.terminate_instances(InstanceIds=[instance])
    wait(ec2, "instance_terminated", InstanceIds=[instance])
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=web)
    refused("InvalidPermission.NotFound", 400, ec2.revoke_security_group_ingress, GroupId=group, IpPermissions=web)
    for delete, arguments in [(ec2.delete_subnet, {"SubnetId": subnet}), (ec2.delete_security_group, {"GroupId": group}),
                              (ec2.delete_vpc, {"VpcId": vpc}), (ec2.delete_key_pair, {"KeyName": "ops"})]:
        delete(**arguments)
    refused("InvalidVpcID.NotFound", 400, ec2.describe_vpcs, VpcIds=[vpc])


def volumes(ec2, emulator):
    """A volume is created, attached, made larger, detached and deleted."""
    [instance] = running(ec2, Placement={"AvailabilityZone": "us-east-1a"})
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=4, VolumeType="gp3", Throughput=200)["VolumeId"]
    wait(ec2, "volume_available", VolumeIds=[volume])
    ec2.attach_volume(VolumeId=volume, InstanceId=instance, Device="/dev/sdf")
    wait(ec2, "volume_in_use", VolumeIds=[volume])
    ec2.modify_volume(VolumeId=volume, Size=8)
    [change] = ec2.describe_volumes_modifications(VolumeIds=[volume])["VolumesModifications"]
    assert (change["ModificationState"], change["TargetSize"]) == ("completed", 8)
    refused("VolumeInUse", 400, ec2.delete_volume, VolumeId=volume)
    refused("VolumeInUse", 400, ec2.attach_volume, VolumeId=volume, InstanceId=instance, Device="/dev/sdg")
    ec2.detach_volume(VolumeId=volume)
    refused("IncorrectState", 400, ec2.detach_volume, VolumeId=volume)
    ec2.delete_volume(VolumeId=volume)
    wait(ec2, "volume_deleted", VolumeIds=[volume])
    refused("InvalidVolume.NotFound", 400, ec2.modify_volume, VolumeId=volume, Size=9)


def addresses(ec2, emulator):
    """An elastic address is allocated, associated, and released."""
    [instance] = running(ec2)
    address = ec2.allocate_address(Domain="vpc", TagSpecifications=[tags("elastic-ip")])
    allocation = address["AllocationId"]
    association = ec2.associate_address(AllocationId=allocation, InstanceId=instance)["AssociationId"]
    shown = ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    assert shown["PublicIpAddress"] == address["PublicIp"]
    ec2.describe_addresses_attribute(AllocationIds=[allocation], Attribute="domain-name")
    refused("InvalidIPAddress.InUse", 400, ec2.release_address, AllocationId=allocation)
    ec2.disassociate_address(AssociationId=association)
    refused("InvalidAssociationID.NotFound", 400, ec2.disassociate_address, AssociationId=association)
    ec2.release_address(AllocationId=allocation)


def spot(ec2, emulator):
    """A spot instance has a request that can be described and cancelled."""
    [instance] = launch(ec2, InstanceMarketOptions={"MarketType": "spot"})
    [request] = ec2.describe_spot_instance_requests(Filters=[{"Name": "instance-id", "Values": [instance]}])["SpotInstanceRequests"]
    assert request["State"] == "active"
    ec2.cancel_spot_instance_requests(SpotInstanceRequestIds=[request["SpotInstanceRequestId"]])


def options(ec2, emulator):
    """What terraform reads and changes of an instance."""
    [instance] = running(ec2, **TERRAFORM)
    for attribute in ["disableApiStop", "disableApiTermination", "userData", "instanceInitiatedShutdownBehavior", "kernel", "ramdisk",
                      "productCodes", "sriovNetSupport", "enaSupport", "enclaveOptions", "groupSet", "blockDeviceMapping"]:
        ec2.describe_instance_attribute(InstanceId=instance, Attribute=attribute)
    [found] = ec2.describe_instance_credit_specifications(InstanceIds=[instance])["InstanceCreditSpecifications"]
    assert found["CpuCredits"] == "unlimited"
    changed = ec2.modify_instance_credit_specification(InstanceCreditSpecifications=[{"InstanceId": instance, "CpuCredits": "standard"}])
    assert [done["InstanceId"] for done in changed["SuccessfulInstanceCreditSpecifications"]] == [instance]
    ec2.modify_instance_metadata_options(InstanceId=instance, HttpTokens="required")
    ec2.monitor_instances(InstanceIds=[instance])
    ec2.unmonitor_instances(InstanceIds=[instance])
    nic = ec2.describe_network_interfaces()["NetworkInterfaces"][0]["NetworkInterfaceId"]
    ec2.modify_network_interface_attribute(NetworkInterfaceId=nic, SourceDestCheck={"Value": False})
    ec2.modify_instance_attribute(InstanceId=instance, DisableApiStop={"Value": True})
    refused("OperationNotPermitted", 400, ec2.stop_instances, InstanceIds=[instance])
    ec2.describe_account_attributes(AttributeNames=["default-vpc"])
    ec2.describe_regions()
    ec2.describe_instance_type_offerings(LocationType="availability-zone")
    ec2.describe_image_attribute(ImageId=IMAGE, Attribute="launchPermission")
    refused("UnsupportedOperation", 400, launch, ec2=ec2, HibernationOptions={"Configured": True})


def refusals(ec2, emulator):
    """Every further action has an error that boto3 reads."""
    vpc, spot = "vpc-00000000000000bad", "sir-00000000000000bad"
    eip, gone = "eipalloc-00000000000000bad", MISSING["i"]
    colour = {"Filters": [{"Name": "colour", "Values": ["red"]}]}
    for call, code, arguments in [
        (ec2.create_vpc, "InvalidVpc.Range", {"CidrBlock": "10.0.0.0/8"}),
        (ec2.describe_vpc_attribute, "InvalidVpcID.NotFound", {"VpcId": vpc, "Attribute": "enableDnsSupport"}),
        (ec2.modify_vpc_attribute, "InvalidVpcID.NotFound", {"VpcId": vpc, "EnableDnsSupport": {"Value": True}}),
        (ec2.describe_route_tables, "InvalidParameterValue", colour), (ec2.describe_network_acls, "InvalidParameterValue", colour),
        (ec2.create_subnet, "InvalidVpcID.NotFound", {"VpcId": vpc, "CidrBlock": "10.0.0.0/24"}),
        (ec2.modify_subnet_attribute, "InvalidSubnetID.NotFound", {"SubnetId": MISSING["subnet"], "MapPublicIpOnLaunch": {"Value": True}}),
        (ec2.create_security_group, "InvalidVpcID.NotFound", {"GroupName": "a", "Description": "a", "VpcId": vpc}),
        (ec2.revoke_security_group_egress, "InvalidSecurityGroupRuleId.NotFound", {"GroupId": "sg-00000000000000001", "SecurityGroupRuleIds": ["sgr-1"]}),
        (ec2.describe_security_group_rules, "InvalidSecurityGroupRuleId.NotFound", {"SecurityGroupRuleIds": ["sgr-1"]}),
        (ec2.create_key_pair, "InvalidKeyPair.Duplicate", {"KeyName": "default"}),
        (ec2.import_key_pair, "InvalidKey.Format", {"KeyName": "a", "PublicKeyMaterial": b"no"}),
        (ec2.describe_key_pairs, "InvalidKeyPair.NotFound", {"KeyNames": ["nobody"]}),
        (ec2.delete_key_pair, "MissingParameter", {}),
        (ec2.create_volume, "InvalidZone.NotFound", {"AvailabilityZone": "mars", "Size": 1}),
        (ec2.describe_volumes_modifications, "InvalidVolume.NotFound", {"VolumeIds": [MISSING["vol"]]}),
        (ec2.allocate_address, "UnsupportedOperation", {"Domain": "standard"}),
        (ec2.associate_address, "InvalidAllocationID.NotFound", {"AllocationId": eip, "InstanceId": gone}),
        (ec2.describe_addresses_attribute, "InvalidAllocationID.NotFound", {"AllocationIds": [eip]}),
        (ec2.describe_spot_instance_requests, "InvalidSpotInstanceRequestID.NotFound", {"SpotInstanceRequestIds": [spot]}),
        (ec2.cancel_spot_instance_requests, "InvalidSpotInstanceRequestID.NotFound", {"SpotInstanceRequestIds": [spot]}),
        (ec2.describe_instance_credit_specifications, "InvalidInstanceID.NotFound", {"InstanceIds": [gone]}),
        (ec2.modify_instance_credit_specification, "MissingParameter", {"InstanceCreditSpecifications": []}),
        (ec2.modify_instance_metadata_options, "InvalidInstanceID.NotFound", {"InstanceId": gone, "HttpTokens": "required"}),
        (ec2.modify_network_interface_attribute, "InvalidNetworkInterfaceID.NotFound", {"NetworkInterfaceId": MISSING["eni"], "Groups": ["sg-00000000000000001"]}),
        (ec2.monitor_instances, "InvalidInstanceID.NotFound", {"InstanceIds": [gone]}),
        (ec2.unmonitor_instances, "InvalidInstanceID.NotFound", {"InstanceIds": [gone]}),
        (ec2.describe_account_attributes, "InvalidParameterValue", {"AttributeNames": ["colour"]}),
        (ec2.describe_regions, "InvalidParameterValue", {"RegionNames": ["mars"]}),
        (ec2.describe_instance_type_offerings, "InvalidParameterValue", {"LocationType": "outpost"}),
        (ec2.describe_image_attribute, "InvalidAMIID.NotFound", {"ImageId": MISSING["ami"], "Attribute": "description"}),
    ]:
        refused(code, 400, call, **arguments)


def unknown(ec2, emulator):
    """What is not emulated says so, and is among the recorded calls."""
    refused("UnsupportedOperation", 400, ec2.describe_transit_gateways)
    last = emulator.control("GET", "calls")[-1]
    assert (last["operation"], last["code"]) == ("DescribeTransitGateways", "UnsupportedOperation"), last
    assert emulator.control("GET", "oracle")["calls"] == {"DescribeTransitGateways": 1}


def tags(kind):
    return {"ResourceType": kind, "Tags": [{"Key": "Name", "Value": "web"}]}


CASES = [networks, volumes, addresses, spot, options, refusals, unknown]
