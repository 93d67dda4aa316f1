//! The program: it says where it listens, and refuses what it should.

use crate::shared::{
    http::exchange,
    program::{complains_as_it_should, listening},
};

#[test]
fn it_says_where_it_listens_and_answers_there() {
    let options = ["--seed", "7", "--access-token", "mine", "--project", "p"];
    let (_program, address) = listening("gcp", &options);
    for (token, project, status) in [("mine", "p", 200), ("mine", "q", 404), ("other", "p", 401)] {
        let path = format!("/compute/v1/projects/{project}/zones");
        let headers = format!("Authorization: Bearer {token}\r\n");
        let reply = exchange(address, "GET", &path, &headers, b"").unwrap();
        assert_eq!(reply.status, status, "{token} {project}");
    }
    let knobs = exchange(address, "GET", "/_emulator/knobs", "", b"").unwrap();
    assert!(knobs.body.contains(r#""seed":7"#));
}

#[test]
fn it_listens_on_loopback_unless_told_otherwise() {
    complains_as_it_should("gcp");
}
