//! VPCs, subnets, security groups and key pairs: created, used by a launch, deleted.

use super::{Fixture, all};

/// Creates a VPC with a subnet and returns their ids.
fn network(fixture: &mut Fixture) -> (String, String) {
    let created = fixture.ok("CreateVpc&CidrBlock=10.1.0.0/16");
    let vpc = all(&created, "vpcId").remove(0);
    let created = fixture.ok(&format!(
        "CreateSubnet&VpcId={vpc}&CidrBlock=10.1.2.0/24&AvailabilityZone=us-east-1b\
         &TagSpecification.1.ResourceType=subnet&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b"
    ));
    (vpc, all(&created, "subnetId").remove(0))
}

#[test]
fn instance_lives_in_a_created_network() {
    let mut fixture = Fixture::new();
    let (vpc, subnet) = network(&mut fixture);
    let created = fixture.ok(&format!(
        "CreateSecurityGroup&GroupName=web&GroupDescription=web&VpcId={vpc}"
    ));
    let group = all(&created, "groupId").remove(0);
    fixture.ok("CreateKeyPair&KeyName=ops");
    let id = fixture.launch_running(&format!(
        "&SubnetId={subnet}&SecurityGroupId.1={group}&KeyName=ops&PrivateIpAddress=10.1.2.77"
    ));
    let shown = fixture.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    assert_eq!(all(&shown, "vpcId"), [vpc.as_str(); 2]);
    assert_eq!(all(&shown, "groupName"), ["web", "web"]);
    assert_eq!(all(&shown, "privateIpAddress")[0], "10.1.2.77");
    assert!(all(&shown, "ipAddress").is_empty(), "the subnet is private");
    let default = "sg-00000000000000001";
    let other = format!(
        "RunInstances&ImageId=ami-00000000000000001&MinCount=1&MaxCount=1&SubnetId={subnet}"
    );
    assert_eq!(
        fixture.refusal_code(&format!("{other}&SecurityGroupId.1={default}")),
        "InvalidParameter"
    );
    assert_eq!(
        fixture.refusal_code(&format!("{other}&PrivateIpAddress=10.1.2.77")),
        "InvalidIPAddress.InUse"
    );

    for delete in [
        format!("DeleteSubnet&SubnetId={subnet}"),
        format!("DeleteSecurityGroup&GroupId={group}"),
        format!("DeleteVpc&VpcId={vpc}"),
    ] {
        assert_eq!(
            fixture.refusal_code(&delete),
            "DependencyViolation",
            "{delete}"
        );
    }
    fixture.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    fixture.advance(100);
    fixture.ok(&format!("DeleteSubnet&SubnetId={subnet}"));
    fixture.ok(&format!("DeleteSecurityGroup&GroupId={group}"));
    fixture.ok(&format!("DeleteVpc&VpcId={vpc}"));
    fixture.ok("DeleteKeyPair&KeyName=ops");
    fixture.ok("DeleteKeyPair&KeyName=ops");
    assert_eq!(
        fixture.refusal_code(&format!("DescribeVpcs&VpcId.1={vpc}")),
        "InvalidVpcID.NotFound"
    );
    assert_eq!(
        all(&fixture.ok("DescribeSecurityGroups"), "groupId").len(),
        1
    );
    assert_eq!(all(&fixture.ok("DescribeKeyPairs"), "keyName"), ["default"]);
    fixture.engine.check_invariants();
}

#[test]
fn what_a_client_deleted_stays_deleted_when_knobs_change() {
    let mut fixture = Fixture::new();
    fixture.ok("DeleteSubnet&SubnetId=subnet-00000000000000001");
    let mut knobs = fixture.engine.core.knobs.clone();
    knobs.vcpu_quota = Some(64);
    knobs.subnets.remove(1);
    crate::cloud::CloudEngine::set_knobs(&mut fixture.engine, knobs);
    let left = all(&fixture.ok("DescribeSubnets"), "subnetId");
    assert_eq!(left, ["subnet-00000000000000003"]);
}

#[test]
fn subnet_is_found_by_its_attributes() {
    let mut fixture = Fixture::new();
    let (vpc, subnet) = network(&mut fixture);
    for (filter, value, count) in [
        ("default-for-az", "true", 3),
        ("default-for-az", "false", 1),
        ("vpc-id", vpc.as_str(), 1),
        ("cidrBlock", "10.1.2.0/24", 1),
        ("tag:a", "b", 1),
        ("availability-zone-id", "use1-az2", 2),
    ] {
        let call = format!("DescribeSubnets&Filter.1.Name={filter}&Filter.1.Value.1={value}");
        assert_eq!(all(&fixture.ok(&call), "subnetId").len(), count, "{filter}");
    }
    fixture.ok(&format!(
        "ModifySubnetAttribute&SubnetId={subnet}&MapPublicIpOnLaunch.Value=true"
    ));
    let id = fixture.launch_running(&format!("&SubnetId={subnet}"));
    let shown = fixture.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    assert_eq!(all(&shown, "ipAddress").len(), 1);
}

#[test]
fn rules_are_added_described_and_removed() {
    let mut fixture = Fixture::new();
    let group = "GroupId=sg-00000000000000001";
    let web = format!(
        "{group}&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=80&IpPermissions.1.ToPort=80\
         &IpPermissions.1.IpRanges.1.CidrIp=10.0.0.9/8&IpPermissions.1.IpRanges.1.Description=web\
         &IpPermissions.1.IpRanges.2.CidrIp=10.1.0.0/16&IpPermissions.1.Groups.1.GroupId=sg-00000000000000001"
    );
    let added = fixture.ok(&format!("AuthorizeSecurityGroupIngress&{web}"));
    assert_eq!(all(&added, "securityGroupRuleId").len(), 3);
    assert_eq!(
        fixture.refusal_code(&format!("AuthorizeSecurityGroupIngress&{web}")),
        "InvalidPermission.Duplicate"
    );
    let shown = fixture.ok("DescribeSecurityGroups");
    assert_eq!(
        all(&shown, "cidrIp"),
        ["10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0"]
    );
    assert_eq!(all(&shown, "fromPort"), ["80"]);
    let listed = fixture.ok(
        "DescribeSecurityGroupRules&Filter.1.Name=group-id&Filter.1.Value.1=sg-00000000000000001",
    );
    let rules = all(&listed, "securityGroupRuleId");
    assert_eq!(rules.len(), 4);
    fixture.ok(&format!(
        "RevokeSecurityGroupEgress&{group}&SecurityGroupRuleId.1={}",
        rules[0]
    ));
    fixture.ok(&format!("RevokeSecurityGroupIngress&{web}"));
    assert_eq!(
        fixture.refusal_code(&format!("RevokeSecurityGroupIngress&{web}")),
        "InvalidPermission.NotFound"
    );
    assert!(all(&fixture.ok("DescribeSecurityGroupRules"), "groupId").is_empty());
    for (more, code) in [
        (
            "IpPermissions.1.IpProtocol=tcp&IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0/0",
            "InvalidParameterValue",
        ),
        (
            "IpPermissions.1.IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=all",
            "InvalidParameterValue",
        ),
        ("IpPermissions.1.IpProtocol=carrot", "InvalidParameterValue"),
        ("DryRun=false", "MissingParameter"),
        (
            "IpPermissions.1.IpProtocol=-1&IpPermissions.1.Groups.1.GroupId=sg-00000000000000bad",
            "InvalidGroup.NotFound",
        ),
    ] {
        let call = format!("AuthorizeSecurityGroupIngress&{group}&{more}");
        assert_eq!(fixture.refusal_code(&call), code, "{more}");
    }
}

#[test]
fn networks_that_ec2_refuses_are_refused() {
    let mut fixture = Fixture::new();
    let (vpc, _) = network(&mut fixture);
    for (call, code) in [
        (
            "CreateVpc&CidrBlock=10.0.0.0/8".to_owned(),
            "InvalidVpc.Range",
        ),
        (
            "CreateVpc&CidrBlock=ten".to_owned(),
            "InvalidParameterValue",
        ),
        (
            "CreateVpc&CidrBlock=10.0.0.0/16&InstanceTenancy=dedicated".to_owned(),
            "UnsupportedOperation",
        ),
        (
            format!("CreateSubnet&VpcId={vpc}&CidrBlock=10.2.0.0/24"),
            "InvalidSubnet.Range",
        ),
        (
            format!("CreateSubnet&VpcId={vpc}&CidrBlock=10.1.2.128/25"),
            "InvalidSubnet.Conflict",
        ),
        (
            format!("CreateSubnet&VpcId={vpc}&CidrBlock=10.1.3.0/24&AvailabilityZone=mars"),
            "InvalidParameterValue",
        ),
        (
            "CreateSubnet&VpcId=vpc-00000000000000bad&CidrBlock=10.1.3.0/24".to_owned(),
            "InvalidVpcID.NotFound",
        ),
        (
            "CreateSecurityGroup&GroupName=default&GroupDescription=d".to_owned(),
            "InvalidParameterValue",
        ),
        (
            "DeleteSecurityGroup&GroupName=default".to_owned(),
            "CannotDelete",
        ),
        (
            "CreateKeyPair&KeyName=default".to_owned(),
            "InvalidKeyPair.Duplicate",
        ),
        (
            "CreateKeyPair&KeyName=a&KeyType=rsa".to_owned(),
            "UnsupportedOperation",
        ),
        (
            "ImportKeyPair&KeyName=a&PublicKeyMaterial=bm8=".to_owned(),
            "InvalidKey.Format",
        ),
        (
            format!("ModifyVpcAttribute&VpcId={vpc}"),
            "InvalidParameterCombination",
        ),
        (
            format!("DescribeVpcAttribute&VpcId={vpc}&Attribute=colour"),
            "InvalidParameterValue",
        ),
    ] {
        assert_eq!(fixture.refusal_code(&call), code, "{call}");
    }
}

#[test]
fn created_resources_are_tagged_like_all_others() {
    let mut fixture = Fixture::new();
    let (vpc, subnet) = network(&mut fixture);
    let address = all(&fixture.ok("AllocateAddress"), "allocationId").remove(0);
    let ids = [vpc, subnet, address, "sg-00000000000000001".to_owned()];
    for id in &ids {
        fixture.ok(&format!(
            "CreateTags&ResourceId.1={id}&Tag.1.Key=n&Tag.1.Value=1&Tag.2.Key=n&Tag.2.Value=2"
        ));
    }
    let call = "DescribeTags&Filter.1.Name=key&Filter.1.Value.1=n";
    let shown = fixture.ok(call);
    assert_eq!(
        all(&shown, "value"),
        ["2"; 4],
        "the last value of a key counts"
    );
    assert_eq!(
        all(&shown, "resourceType"),
        ["vpc", "subnet", "security-group", "elastic-ip"]
    );
    for id in &ids {
        fixture.ok(&format!("DeleteTags&ResourceId.1={id}&Tag.1.Key=n"));
    }
    assert!(all(&fixture.ok(call), "value").is_empty());
}
