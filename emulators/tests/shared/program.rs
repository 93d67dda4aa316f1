//! Runs the program `fleetwright-emulators`, and kills it with the test.

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

/// Starts a cloud on a free port, and returns the address that the program prints.
pub(crate) fn start_listening(cloud: &str, arguments: &[&str]) -> (Program, SocketAddr) {
    let arguments = [&["--listen", "127.0.0.1:0"], arguments].concat();
    listening(cloud, start(cloud, &arguments))
}

/// Starts EC2 with a limit of descriptors, as [`start_listening`].
#[cfg(unix)]
#[allow(dead_code, reason = "not every cloud's tests use it")]
pub(crate) fn start_with_descriptors(limit: u32) -> (Program, SocketAddr) {
    let program = env!("CARGO_BIN_EXE_fleetwright-emulators");
    let script = format!("ulimit -n {limit} && exec '{program}' ec2 --listen 127.0.0.1:0");
    let mut command = Command::new("sh");
    let command = command.args(["-c", &script]).stdout(Stdio::piped());
    listening("ec2", Program(command.spawn().unwrap()))
}

/// Starts all clouds, and returns the lines that the program prints until it is ready.
#[allow(dead_code, reason = "not every cloud's tests use it")]
pub(crate) fn start_all(arguments: &[&str]) -> (Program, Vec<String>) {
    let mut program = start("all", arguments);
    let lines = BufReader::new(program.0.stdout.take().unwrap()).lines();
    let lines = lines.map(Result::unwrap).take_while(|line| line != "ready");
    (program, lines.collect())
}

/// Returns the address that a program prints.
fn listening(cloud: &str, mut program: Program) -> (Program, SocketAddr) {
    let mut line = String::new();
    let stdout = program.0.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let prefix = format!("{cloud} listens at http://");
    let address: SocketAddr = line.trim().strip_prefix(&prefix).unwrap().parse().unwrap();
    assert!(address.ip().is_loopback());
    (program, address)
}

/// Returns the error output of a program that must fail.
fn error_output(cloud: &str, arguments: &[&str]) -> String {
    let mut program = start(cloud, arguments);
    let mut output = String::new();
    let stderr = program.0.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut output).unwrap();
    assert!(!program.0.wait().unwrap().success());
    output
}

/// Checks that the program refuses a public address and reports what is wrong with its arguments.
pub(crate) fn check_refused_arguments(cloud: &str) {
    assert!(error_output(cloud, &["--listen", "0.0.0.0:0"]).contains("--allow-remote"));
    assert!(error_output(cloud, &["--listen", "nowhere"]).contains("invalid value"));
    assert!(error_output(cloud, &["--knobs", "no-such-file.json"]).contains("no-such-file.json"));
}
