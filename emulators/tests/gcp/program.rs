//! The program: it prints its address, and refuses invalid arguments.

use crate::shared::{
    http::exchange,
    program::{check_refused_arguments, start_listening},
};

#[test]
fn program_prints_its_address_and_serves() {
    let options = ["--seed", "7", "--access-token", "mine", "--project", "p"];
    let (_program, address) = start_listening("gcp", &options);
    for (token, project, status) in [("mine", "p", 200), ("mine", "q", 404), ("other", "p", 401)] {
        let path = format!("/compute/v1/projects/{project}/zones");
        let headers = format!("Authorization: Bearer {token}\r\n");
        let response = exchange(address, "GET", &path, &headers, b"").unwrap();
        assert_eq!(response.status, status, "{token} {project}");
    }
    let knobs = exchange(address, "GET", "/_emulator/knobs", "", b"").unwrap();
    assert!(knobs.body.contains(r#""seed":7"#));
}

#[test]
fn only_loopback_is_allowed_by_default() {
    check_refused_arguments("gcp");
}
