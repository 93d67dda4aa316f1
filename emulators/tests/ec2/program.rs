//! The program: it says where it listens, and refuses what it should.

use crate::{
    client::{AUTHORIZATION, ask},
    shared::program::{complains_as_it_should, listening},
};

#[test]
fn it_says_where_it_listens_and_answers_there() {
    let (_program, address) = listening("ec2", &["--access-key", "mine", "--seed", "7"]);
    let form = b"Version=2016-11-15&Action=DescribeInstances";
    for key in ["test", "mine"] {
        let authorization = AUTHORIZATION.replace("=test/", &format!("={key}/"));
        let reply = ask(address, "POST", "/", &authorization, form).unwrap();
        assert_eq!(reply.status, 200);
    }
    let knobs = ask(address, "GET", "/_emulator/knobs", "", b"").unwrap();
    assert!(knobs.body.contains(r#""seed":7"#));
}

#[test]
fn it_listens_on_loopback_unless_told_otherwise() {
    complains_as_it_should("ec2");
}
