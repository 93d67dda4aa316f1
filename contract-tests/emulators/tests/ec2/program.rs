//! The program: it says where it listens, and refuses what it should.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use crate::client::{AUTHORIZATION, ask};

/// The program, ended with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(arguments: &[&str]) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetwright-emulators"));
    command.arg("ec2").args(arguments);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Program(command.spawn().unwrap())
}

/// What it says before it gives up.
fn complaint(arguments: &[&str]) -> String {
    let mut program = start(arguments);
    let mut said = String::new();
    let stderr = program.0.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(!program.0.wait().unwrap().success());
    said
}

#[test]
fn it_says_where_it_listens_and_answers_there() {
    let mut program = start(&[
        "--listen",
        "127.0.0.1:0",
        "--access-key",
        "mine",
        "--seed",
        "7",
    ]);
    let mut line = String::new();
    let stdout = program.0.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("ec2 listens at http://").unwrap();
    let address: SocketAddr = address.parse().unwrap();
    assert!(address.ip().is_loopback());
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
    assert!(complaint(&["--listen", "0.0.0.0:0"]).contains("--allow-remote"));
    assert!(complaint(&["--listen", "nowhere"]).contains("invalid value"));
    assert!(complaint(&["--knobs", "no-such-file.json"]).contains("no-such-file.json"));
}
