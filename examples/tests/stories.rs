//! Runs the examples as a user would and checks their output.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::process::{Command, Output};

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

/// Returns the standard output of a program that succeeds with an empty standard error.
fn stdout(program: &str, arguments: &[&str]) -> String {
    let result = run(program, arguments);
    let (out, err) = (
        String::from_utf8_lossy(&result.stdout),
        String::from_utf8_lossy(&result.stderr),
    );
    assert!(result.status.success(), "{out}{err}");
    assert_eq!(err, "", "no progress bar without a terminal");
    out.into_owned()
}

/// Asserts that `lines` appear in `output` in this order, each as a part of some line.
fn assert_lines(output: &str, lines: &[&str]) {
    let mut rest = output.lines();
    for expected in lines {
        assert!(
            rest.any(|line| line.contains(expected)),
            "{expected:?} is missing in:\n{output}"
        );
    }
}

#[test]
fn fleet_example_prints_every_step() {
    let output = stdout(env!("CARGO_BIN_EXE_fleet"), &[]);
    assert_lines(
        &output,
        &[
            "launch: a fleet of 5",
            "ok: 5 launched and running",
            "is terminated by an external actor",
            "was replaced by i-",
            "ok: stopped and started; its address changed from 198.18.",
            "a new manager starts with only the name of the fleet",
            "ok: 5 of 5 found by their tags",
            "no second instance was launched",
            "ok: 5 terminated",
            "nothing left",
        ],
    );
    let change = output
        .lines()
        .find(|line| line.contains("its address changed"))
        .unwrap();
    let addresses: Vec<_> = change
        .split(' ')
        .filter(|word| word.starts_with("198.18."))
        .collect();
    assert_eq!(addresses.len(), 2, "{change}");
    assert_ne!(addresses[0], addresses[1], "{change}");
    assert!(
        output.lines().all(|line| !line.contains('\u{1b}')),
        "plain lines when piped:\n{output}"
    );
}

#[test]
fn fleet_example_accepts_a_size_and_refuses_zero() {
    let output = stdout(
        env!("CARGO_BIN_EXE_fleet"),
        &["--size", "12", "--seed", "3"],
    );
    assert_lines(
        &output,
        &[
            "ok: 12 launched and running",
            "ok: 12 terminated",
            "nothing left",
        ],
    );
    let refused = run(env!("CARGO_BIN_EXE_fleet"), &["--size", "0"]);
    assert!(!refused.status.success());
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        stderr.contains("--size") && stderr.contains("1..=10000"),
        "{stderr}"
    );
}

#[test]
fn direct_example_survives_a_lost_response_with_one_instance() {
    let output = stdout(env!("CARGO_BIN_EXE_direct"), &[]);
    assert_lines(
        &output,
        &[
            "although the response of the launch was lost",
            "boot 1 from task-image-1",
            "nothing left",
        ],
    );
}
