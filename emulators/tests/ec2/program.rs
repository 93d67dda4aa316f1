//! The program: it prints its address, and refuses invalid arguments.

use std::io::Write as _;

use crate::{
    client::{AUTHORIZATION, open, send},
    shared::program::{
        check_refused_arguments, start_all, start_listening, start_with_descriptors,
    },
};

#[test]
fn program_prints_its_address_and_serves() {
    let (_program, address) = start_listening("ec2", &["--seed", "7"]);
    let form = b"Version=2016-11-15&Action=DescribeInstances";
    for credential in ["test/20260101/us-east-1", "anybody/20260101/eu-west-1"] {
        let authorization = AUTHORIZATION.replace("test/20260101/us-east-1", credential);
        let response = send(address, "POST", "/", &authorization, form).unwrap();
        assert_eq!(response.status, 200);
    }
    let knobs = send(address, "GET", "/_emulator/knobs", "", b"").unwrap();
    assert!(knobs.body.contains(r#""seed":7"#));
}

#[test]
fn only_loopback_is_allowed_by_default() {
    check_refused_arguments("ec2");
}

#[test]
fn program_accepts_only_the_named_keys_and_region() {
    let options = ["--access-key", "mine", "--region", "eu-west-1"];
    let (_program, address) = start_listening("ec2", &options);
    let form = b"Version=2016-11-15&Action=DescribeAvailabilityZones";
    for (credential, status) in [
        ("mine/20260101/eu-west-1", 200),
        ("test/20260101/eu-west-1", 401),
        ("mine/20260101/us-east-1", 401),
    ] {
        let authorization = AUTHORIZATION.replace("test/20260101/us-east-1", credential);
        let response = send(address, "POST", "/", &authorization, form).unwrap();
        assert_eq!(response.status, status, "{credential}");
        assert_eq!(response.body.contains("eu-west-1a"), status == 200);
    }
}

/// With 64 descriptors the program serves new requests, although 200 clients keep connections without sending a request.
#[cfg(unix)]
#[test]
fn few_descriptors_are_enough_for_new_requests() {
    let (_program, address) = start_with_descriptors(64);
    let idle: Vec<_> = (0..200)
        .map(|number| {
            let mut stream = open(address).unwrap();
            if number % 2 == 0 {
                stream.write_all(b"POST / HTTP/1.1\r\n").unwrap();
            }
            stream
        })
        .collect();
    let form = b"Version=2016-11-15&Action=DescribeInstances";
    for _ in 0..20 {
        let response = send(address, "POST", "/", AUTHORIZATION, form).unwrap();
        assert_eq!(response.status, 200);
    }
    drop(idle);
}

#[cfg(all(feature = "azure", feature = "gcp"))]
#[test]
fn one_program_serves_all_clouds() {
    let free = ["--ec2-port", "0", "--gcp-port", "0", "--azure-port", "0"];
    let (_program, lines) = start_all(&free);
    let clouds: Vec<_> = lines
        .iter()
        .filter_map(|line| line.split_once(" listens at http://"))
        .collect();
    let names: Vec<_> = clouds.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["ec2", "gcp", "azure"]);
    for (name, address) in clouds {
        let response = send(address.parse().unwrap(), "GET", "/_emulator", "", b"").unwrap();
        assert!(
            response.body.contains(&format!(r#""cloud":"{name}""#)),
            "{}",
            response.body
        );
    }
}
