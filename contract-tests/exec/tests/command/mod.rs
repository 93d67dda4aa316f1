//! Runs the command as a user does.
#![allow(clippy::expect_used, clippy::panic, reason = "test helpers may panic")]

use std::process::Command;

/// What the command printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `contract-run`.
pub(crate) fn contract_run(arguments: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_contract-run"), arguments)
}

/// Returns the interpreter itself. What is called `python3` may be a script that finds it, and slower than what is tested.
pub(crate) fn python() -> String {
    let output = run("python3", &["-c", "import sys; print(sys.executable)"]);
    assert_eq!(output.code, 0, "python3 is needed: {output:?}");
    output.stdout.trim().to_owned()
}

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    Output {
        code: output.status.code().expect("an exit code"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}
