//! Runs the example as a person would, and checks every line of its output.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{
    fs,
    process::{Command, Output},
};

fn compute(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_compute"))
        .args(arguments)
        .output()
        .unwrap()
}

fn streams(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Where the fleet process is killed, the possible states of the old machine, and the state of the new one if it exists.
const KILLS: [(&str, &[&str], Option<&str>); 5] = [
    (
        "the termination of its machine is sent and not received",
        &["m5.large, running"],
        None,
    ),
    (
        "its machine is terminating and the response is lost",
        &["m5.large, shutting-down", "m5.large, terminated"],
        None,
    ),
    (
        "the launch of its new machine is recorded, sent and not received",
        &["m5.large, terminated"],
        None,
    ),
    (
        "its new machine is launched and the response is lost",
        &["m5.large, terminated"],
        Some("(m6g.large, "),
    ),
    (
        "its new machine is recorded and boots",
        &["m5.large, terminated"],
        Some("(m6g.large, pending)"),
    ),
];

#[test]
fn killed_fleet_process_loses_nothing() {
    let output = compute(&[]);
    let (stdout, stderr) = streams(&output);
    assert!(output.status.success(), "{stdout}{stderr}");
    let mut lines = stdout.lines();
    let mut next = |what: &str, wanted: &[&str]| {
        let line = lines.next().unwrap_or_default().to_owned();
        let has = |part: &&str| line.contains(*part);
        let is_match = line.starts_with(what) && wanted.iter().all(has);
        assert!(
            is_match,
            "{what} {wanted:?} is not in {line:?} of:\n{stdout}"
        );
        line
    };
    next("cloud: ", &["http://127.0.0.1:"]);
    next(
        "catalog: ",
        &["flavor arm-2 was added", "image debian-13 was added"],
    );
    next("fleet: process ", &["fleet.db"]);
    next("tenants: olga made ada a project-user", &["acme"]);
    next("create: 5 instances", &["run on 5 machines"]);
    next("quota: one more is refused: ", &["servers"]);
    next(
        "misfit: web-1: image debian-13 does not boot on flavor arm-2",
        &["aarch64"],
    );
    for (number, (moment, old, successor)) in (1..).zip(KILLS) {
        let name = format!("web-{number}");
        let prefix = format!("{name}: ");
        next(
            &format!("plan: {name} "),
            &["flavor by resize", "image by replace"],
        );
        next(
            "refused: ",
            &[
                &prefix,
                "the data on its root disk and its addresses are lost",
            ],
        );
        next("agreed: ", &[&name]);
        let killed = next("killed: ", &[&prefix, "process ", "signal: 9", moment]);
        assert!(old.iter().any(|state| killed.contains(state)), "{killed}");
        match successor {
            Some(state) => assert!(killed.contains(state), "{killed}"),
            None => assert!(!killed.contains("m6g.large"), "{killed}"),
        }
        let restarted = next(
            "restarted: ",
            &[&prefix, "(m5.large, terminated)", "(m6g.large, running)"],
        );
        assert_eq!(restarted.matches("m6g.large").count(), 1, "{restarted}");
    }
    // Five instances and their network.
    next("ledger: 5 servers", &["the sum of 6 allocations"]);
    next(
        "delete: 5 instances are gone",
        &["network", "exit status: 0"],
    );
    // Two for the network, and for each instance its creation, its update and its deletion.
    next(
        "audit: the organization is gone, and 23 entries stay",
        &["17 about ada"],
    );
    next(
        "compute: instances=5 machines=5 killed=5 launched=10 charged=5 leftovers=0",
        &[],
    );
    assert_eq!(lines.next(), None);
}

#[test]
fn catalog_with_a_mistake_is_reported_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let catalog = include_str!("../catalog.toml").replace("\"20 GiB\"", "20");
    fs::write(folder.path().join("catalog.toml"), catalog).unwrap();
    let output = compute(&["--folder", path]);
    let (stdout, stderr) = streams(&output);
    assert!(!output.status.success());
    assert!(stderr.contains("20 has no unit"), "{stderr}");
    assert!(!stdout.contains("fleet:"), "{stdout}");
}

#[test]
fn folder_with_a_database_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("fleet.db");
    fs::write(&database, "mine").unwrap();
    let output = compute(&["--folder", folder.path().to_str().unwrap()]);
    let (_, stderr) = streams(&output);
    assert!(!output.status.success());
    assert!(stderr.contains("give another folder"), "{stderr}");
    assert_eq!(fs::read(&database).unwrap(), b"mine");
}

#[test]
fn help_shows_the_usage() {
    let output = compute(&["--help"]);
    let (stdout, _) = streams(&output);
    assert!(output.status.success());
    for wanted in ["--folder", "fleet", "emulated EC2"] {
        assert!(stdout.contains(wanted), "{stdout}");
    }
    assert!(!compute(&["--surprise"]).status.success());
}
