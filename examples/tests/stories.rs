//! The examples are run as a person would run them, and must tell their whole story.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::process::{Command, Output};

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

/// The standard output of a program that succeeded and complained of nothing.
fn story(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}{err}");
    assert_eq!(err, "", "nothing is drawn where there is no terminal");
    out.into_owned()
}

/// Asserts that `lines` appear in `story` in this order, each as a part of some line.
fn assert_tells(story: &str, lines: &[&str]) {
    let mut rest = story.lines();
    for wanted in lines {
        assert!(
            rest.any(|line| line.contains(wanted)),
            "{wanted:?} is missing in:\n{story}"
        );
    }
}

#[test]
fn the_fleet_example_tells_the_life_of_a_fleet() {
    let told = story(env!("CARGO_BIN_EXE_fleet"), &[]);
    assert_tells(
        &told,
        &[
            "launch: a pool of 5",
            "ok: 5 launched and ready",
            "is taken away from outside",
            "lost and replaced by i-",
            "ok: stopped and started; its address was 198.18.",
            "the manager is dropped",
            "ok: 5 of 5 rediscovered by their tags",
            "none launched twice",
            "ok: 5 terminated",
            "nothing left",
        ],
    );
    let moved = told
        .lines()
        .find(|line| line.contains("its address was"))
        .unwrap();
    let addresses: Vec<_> = moved
        .split(' ')
        .filter(|word| word.starts_with("198.18."))
        .collect();
    assert_eq!(addresses.len(), 2, "{moved}");
    assert_ne!(addresses[0], addresses[1], "{moved}");
    assert!(
        told.lines().all(|line| !line.contains('\u{1b}')),
        "plain lines when piped:\n{told}"
    );
}

#[test]
fn the_fleet_example_takes_another_size_and_refuses_none() {
    let told = story(
        env!("CARGO_BIN_EXE_fleet"),
        &["--size", "12", "--seed", "3"],
    );
    assert_tells(
        &told,
        &[
            "ok: 12 launched and ready",
            "ok: 12 terminated",
            "nothing left",
        ],
    );
    let refused = run(env!("CARGO_BIN_EXE_fleet"), &["--size", "0"]);
    assert!(!refused.status.success());
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        complaint.contains("--size") && complaint.contains("1..=10000"),
        "{complaint}"
    );
}

#[test]
fn the_direct_example_survives_a_lost_reply_with_one_machine() {
    let told = story(env!("CARGO_BIN_EXE_direct"), &[]);
    assert_tells(
        &told,
        &[
            "although the reply of the launch was lost",
            "boot 1 from task-image-1",
            "nothing left",
        ],
    );
}
