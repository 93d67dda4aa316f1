//! Every request gets EC2's response or EC2's error in well-formed XML, and the next client is not
//! affected.

use std::sync::LazyLock;

use crate::{
    client::{AUTHORIZATION, Response, request},
    shared::http::send_raw,
};
use fleetwright_emulators::ec2::{Action, Ec2Emulator, Knobs};
use proptest::prelude::*;
use quick_xml::{Reader, events::Event};

static EMULATOR: LazyLock<Ec2Emulator> = LazyLock::new(|| {
    let mut knobs = Knobs::default();
    // Launches must not exhaust the region for the cases that follow.
    knobs.instance_quota = Some(2_000);
    Ec2Emulator::start(knobs).unwrap()
});

/// Parameter names that some action has, at any depth, and some that none has.
const NAMES: [&str; 34] = [
    "ImageId",
    "InstanceType",
    "MinCount",
    "MaxCount",
    "ClientToken",
    "UserData",
    "SubnetId",
    "DryRun",
    "KeyName",
    "InstanceId",
    "InstanceId.1",
    "InstanceId.2",
    "ResourceId.1",
    "Tag.1.Key",
    "Tag.1.Value",
    "Filter.1.Name",
    "Filter.1.Value.1",
    "MaxResults",
    "NextToken",
    "Attribute",
    "Value",
    "Name",
    "VolumeId.1",
    "ImageId.1",
    "TagSpecification.1.ResourceType",
    "TagSpecification.1.Tag.1.Key",
    "BlockDeviceMapping.1.DeviceName",
    "BlockDeviceMapping.1.Ebs.VolumeSize",
    "NetworkInterface.1.DeviceIndex",
    "MetadataOptions.HttpTokens",
    "InstanceType.Value",
    "Placement.AvailabilityZone",
    "Filter.999999999999.Name",
    "....",
];

const VALUES: [&str; 26] = [
    "",
    "0",
    "1",
    "5",
    "-1",
    "18446744073709551616",
    "true",
    "ami-00000000000000001",
    "m5.large",
    "i-00000000000000bad",
    "i-",
    "instance",
    "tag:a",
    "instance-state-name",
    "*",
    "\\",
    "userData",
    "/dev/xvda",
    "us-east-1a",
    "aws:x",
    "subnet-00000000000000001",
    "RGVzY3JpYmVJbnN0YW5jZXM6OTk5",
    "<&>\"'",
    "\u{1F600}",
    "é",
    "a b",
];

fn action() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(Action::ALL.map(Action::name).to_vec())
}

fn parameter() -> impl Strategy<Value = (String, String)> {
    let name = prop_oneof![
        9 => proptest::sample::select(NAMES.to_vec()).prop_map(str::to_owned),
        1 => "[A-Za-z0-9.]{0,40}",
    ];
    let value = prop_oneof![
        9 => proptest::sample::select(VALUES.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    (name, value)
}

/// Checks that a response is a document or an error, well-formed in either case.
fn check_response(response: &Response) -> Result<(), TestCaseError> {
    let mut reader = Reader::from_str(&response.body);
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => return Err(TestCaseError::fail(format!("{error}: {}", response.body))),
        }
    }
    if response.status == 200 {
        prop_assert!(
            response.body.contains("Response xmlns="),
            "{}",
            response.body
        );
        return Ok(());
    }
    prop_assert!((400..600).contains(&response.status));
    // STS has another form of errors than EC2.
    let is_sts = response
        .body
        .contains("<ErrorResponse xmlns=\"https://sts.");
    let (form, id) = if is_sts {
        ("<Error><Type>Sender</Type><Code>", "RequestId")
    } else {
        ("<Response><Errors><Error><Code>", "RequestID")
    };
    prop_assert!(response.body.contains(form), "{}", response.body);
    prop_assert_ne!(response.code(), "InternalError");
    prop_assert_eq!(response.all(id).len(), 1);
    Ok(())
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_parameters(action in action(), parameters in proptest::collection::vec(parameter(), 0..8)) {
        let mut form = format!("Version=2016-11-15&Action={action}");
        for (name, value) in parameters {
            form += &format!("&{}={}", encode(&name), encode(&value));
        }
        let response = request(&EMULATOR, "POST", "/", AUTHORIZATION, form.as_bytes()).unwrap();
        check_response(&response)?;
    }

    #[test]
    fn any_body(action in action(), body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let form = [format!("Version=2016-11-15&Action={action}&").as_bytes(), &body].concat();
        check_response(&request(&EMULATOR, "POST", "/", AUTHORIZATION, &form).unwrap())?;
        check_response(&request(&EMULATOR, "POST", "/", AUTHORIZATION, &body).unwrap())?;
    }

    #[test]
    fn any_authorization(authorization in "[ -~]{0,120}") {
        let authorization = format!("x{authorization}");
        let body = b"Version=2016-11-15&Action=DescribeInstances";
        check_response(&request(&EMULATOR, "POST", "/", &authorization, body).unwrap())?;
    }

    #[test]
    fn any_control(path in "/[a-z]{0,10}", body in proptest::collection::vec(any::<u8>(), 0..60)) {
        let path = format!("/_emulator{path}");
        for method in ["POST", "PATCH", "DELETE", "GET"] {
            let response = request(&EMULATOR, method, &path, "", &body).unwrap();
            prop_assert!(serde_json::from_str::<serde_json::Value>(&response.body).is_ok());
        }
    }

    #[test]
    fn any_bytes_on_the_wire(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        // The server may close a connection without HTTP at any time; other clients must not notice.
        send_raw(EMULATOR.address(), &bytes).unwrap();
        let form = b"Version=2016-11-15&Action=DescribeAvailabilityZones";
        prop_assert_eq!(request(&EMULATOR, "POST", "/", AUTHORIZATION, form).unwrap().status, 200);
    }
}
