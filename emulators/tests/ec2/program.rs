//! The program: it prints its address, and refuses invalid arguments.

use crate::{
    client::{AUTHORIZATION, send},
    shared::program::{check_refused_arguments, start_listening},
};

#[test]
fn program_prints_its_address_and_serves() {
    let (_program, address) = start_listening("ec2", &["--access-key", "mine", "--seed", "7"]);
    let form = b"Version=2016-11-15&Action=DescribeInstances";
    for key in ["test", "mine"] {
        let authorization = AUTHORIZATION.replace("=test/", &format!("={key}/"));
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
