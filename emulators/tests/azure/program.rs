//! The program: it says where it listens, and refuses what it should.

use crate::{
    client::VERSION,
    shared::{
        http::exchange,
        program::{complains_as_it_should, listening},
    },
};

#[test]
fn it_says_where_it_listens_and_answers_there() {
    let options = ["--seed", "7", "--token", "mine", "--subscription", "s"];
    let (_program, address) = listening("azure", &options);
    for (token, subscription, status) in
        [("mine", "s", 200), ("mine", "t", 404), ("other", "s", 401)]
    {
        let path = format!("/subscriptions/{subscription}/resourceGroups/rg?{VERSION}");
        let headers = format!("Authorization: Bearer {token}\r\n");
        let reply = exchange(address, "GET", &path, &headers, b"").unwrap();
        assert_eq!(reply.status, status, "{token} {subscription}");
    }
    let knobs = exchange(address, "GET", "/_emulator/knobs", "", b"").unwrap();
    assert!(knobs.body.contains(r#""seed":7"#));
}

#[test]
fn it_listens_on_loopback_unless_told_otherwise() {
    complains_as_it_should("azure");
}
