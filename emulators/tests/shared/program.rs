//! The program, ended with the test.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

/// A running program.
pub(crate) struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(cloud: &str, arguments: &[&str]) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetwright-emulators"));
    command.arg(cloud).args(arguments);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Program(command.spawn().unwrap())
}

/// Starts a cloud on a free port, and reads where it listens.
pub(crate) fn listening(cloud: &str, arguments: &[&str]) -> (Program, SocketAddr) {
    let arguments = [&["--listen", "127.0.0.1:0"], arguments].concat();
    let mut program = start(cloud, &arguments);
    let mut line = String::new();
    let stdout = program.0.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let said = format!("{cloud} listens at http://");
    let address: SocketAddr = line.trim().strip_prefix(&said).unwrap().parse().unwrap();
    assert!(address.ip().is_loopback());
    (program, address)
}

/// What it says before it gives up.
fn complaint(cloud: &str, arguments: &[&str]) -> String {
    let mut program = start(cloud, arguments);
    let mut said = String::new();
    let stderr = program.0.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(!program.0.wait().unwrap().success());
    said
}

/// It refuses to listen where others can reach it, and says what is wrong with its arguments.
pub(crate) fn complains_as_it_should(cloud: &str) {
    assert!(complaint(cloud, &["--listen", "0.0.0.0:0"]).contains("--allow-remote"));
    assert!(complaint(cloud, &["--listen", "nowhere"]).contains("invalid value"));
    assert!(complaint(cloud, &["--knobs", "no-such-file.json"]).contains("no-such-file.json"));
}
