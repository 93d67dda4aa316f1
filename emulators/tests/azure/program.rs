//! The program: it prints its address, and refuses invalid arguments.

use crate::{
    client::VERSION,
    shared::{
        http::exchange,
        program::{check_refused_arguments, start_listening},
    },
};

#[test]
fn program_prints_its_address_and_serves() {
    let options = ["--seed", "7", "--token", "mine", "--subscription", "s"];
    let (_program, address) = start_listening("azure", &options);
    for (token, subscription, status) in
        [("mine", "s", 200), ("mine", "t", 404), ("other", "s", 401)]
    {
        let path = format!("/subscriptions/{subscription}/resourceGroups/rg?{VERSION}");
        let headers = format!("Authorization: Bearer {token}\r\n");
        let response = exchange(address, "GET", &path, &headers, b"").unwrap();
        assert_eq!(response.status, status, "{token} {subscription}");
    }
    let knobs = exchange(address, "GET", "/_emulator/knobs", "", b"").unwrap();
    assert!(knobs.body.contains(r#""seed":7"#));
}

#[test]
fn only_loopback_is_allowed_by_default() {
    check_refused_arguments("azure");
}
