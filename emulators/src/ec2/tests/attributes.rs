//! ModifyInstanceAttribute and DescribeInstanceAttribute.

use super::{Fixture, all};

fn launch_stopped(fixture: &mut Fixture) -> String {
    let id = fixture.launch_running("");
    fixture.ok(&format!("StopInstances&InstanceId.1={id}"));
    fixture.advance(100);
    id
}

#[test]
fn type_is_changed_while_stopped() {
    let mut fixture = Fixture::new();
    let id = launch_stopped(&mut fixture);
    let to =
        |name: &str| format!("ModifyInstanceAttribute&InstanceId={id}&InstanceType.Value={name}");
    assert_eq!(
        fixture.refusal_code(&to("m5.huge")),
        "InvalidInstanceAttributeValue"
    );
    assert_eq!(
        fixture.refusal_code(&to("m6g.large")),
        "InvalidInstanceAttributeValue"
    );
    assert_eq!(
        fixture.refusal_code(&format!("{}&DryRun=true", to("c5.large"))),
        "DryRunOperation"
    );
    assert_eq!(all(&fixture.ok(&to("c5.large")), "return"), ["true"]);
    fixture.ok(&format!("StartInstances&InstanceId.1={id}"));
    let response = fixture.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    assert_eq!(all(&response, "instanceType"), ["c5.large"]);
    fixture.advance(100);
    assert_eq!(
        fixture.refusal_code(&to("m5.large")),
        "IncorrectInstanceState"
    );
    // The released machine is of the type that was reserved.
    fixture.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    fixture.advance(100);
    fixture.engine.core.knobs.instance_quota = Some(1);
    fixture.launch_running("");
}

#[test]
fn attributes_are_changed_and_described_one_at_a_time() {
    let mut fixture = Fixture::new();
    let id = launch_stopped(&mut fixture);
    for (change, attribute, element) in [
        (
            "UserData.Value=bmV3",
            "userData",
            "<userData><value>bmV3</value></userData>",
        ),
        ("UserData.Value=", "userData", "<userData/>"),
        (
            "DisableApiTermination.Value=true",
            "disableApiTermination",
            "<disableApiTermination><value>true</value></disableApiTermination>",
        ),
        (
            "EbsOptimized.Value=true",
            "ebsOptimized",
            "<ebsOptimized><value>true</value></ebsOptimized>",
        ),
        (
            "InstanceInitiatedShutdownBehavior.Value=terminate",
            "instanceInitiatedShutdownBehavior",
            "<value>terminate</value>",
        ),
        (
            "Attribute=instanceType&Value=t3.micro",
            "instanceType",
            "<instanceType><value>t3.micro</value></instanceType>",
        ),
    ] {
        fixture.ok(&format!("ModifyInstanceAttribute&InstanceId={id}&{change}"));
        let response = fixture.ok(&format!(
            "DescribeInstanceAttribute&InstanceId={id}&Attribute={attribute}"
        ));
        assert!(response.contains(element), "{attribute}: {response}");
    }
    for attribute in [
        "rootDeviceName",
        "groupSet",
        "blockDeviceMapping",
        "sourceDestCheck",
    ] {
        let response = fixture.ok(&format!(
            "DescribeInstanceAttribute&InstanceId={id}&Attribute={attribute}"
        ));
        assert!(response.contains(&format!("<{attribute}>")), "{response}");
    }
}

#[test]
fn invalid_change_is_refused() {
    let mut fixture = Fixture::new();
    let id = launch_stopped(&mut fixture);
    for (call, code) in [
        (
            format!("ModifyInstanceAttribute&InstanceId={id}"),
            "InvalidParameterCombination",
        ),
        (
            format!(
                "ModifyInstanceAttribute&InstanceId={id}&EbsOptimized.Value=true&DisableApiTermination.Value=true"
            ),
            "InvalidParameterCombination",
        ),
        (
            format!("ModifyInstanceAttribute&InstanceId={id}&EbsOptimized.Value=perhaps"),
            "InvalidParameterValue",
        ),
        (
            format!(
                "ModifyInstanceAttribute&InstanceId={id}&InstanceInitiatedShutdownBehavior.Value=x"
            ),
            "InvalidParameterValue",
        ),
        (
            format!("ModifyInstanceAttribute&InstanceId={id}&Kernel.Value=x"),
            "UnsupportedOperation",
        ),
        (
            "ModifyInstanceAttribute&InstanceId=i-00000000000000bad&EbsOptimized.Value=true"
                .to_owned(),
            "InvalidInstanceID.NotFound",
        ),
        (
            format!("DescribeInstanceAttribute&InstanceId={id}&Attribute=colour"),
            "InvalidParameterValue",
        ),
        (
            format!("DescribeInstanceAttribute&InstanceId={id}"),
            "MissingParameter",
        ),
        (
            "DescribeInstanceAttribute&InstanceId=web&Attribute=userData".to_owned(),
            "InvalidInstanceID.Malformed",
        ),
    ] {
        assert_eq!(fixture.refusal_code(&call), code, "{call}");
    }
}
