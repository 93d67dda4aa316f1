//! The example is run as a person would run it, and must tell its whole story.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::process::Command;

#[test]
fn the_layers_show_what_they_do() {
    let output = Command::new(env!("CARGO_BIN_EXE_layers")).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{complaints}");
    let mut rest = told.lines();
    for wanted in [
        "ok: 60 describes at once were 2 calls on the wire",
        "ok: 20 launched with",
        "15 of 15 launches failed",
        "effect unknown, retry with the same token, code InternalError",
        "ok: the cloud has 15 instances for 15 launches",
        "is \"spot in zone b\", in zone mem-b",
        "calls for two launches: the second did not ask for what was lacking",
        "memory launch_instance OK attempt=2 token_hash=",
        "memory launch_instance ERROR",
        "metrics: http://127.0.0.1:",
        "fleetwright_calls_total",
        "fleetwright_retries_total         throttled",
        "nothing left",
    ] {
        assert!(
            rest.any(|line| line.contains(wanted)),
            "{wanted:?} is missing in:\n{told}"
        );
    }
    for metric in [
        "fleetwright_calls_total",
        "fleetwright_retries_denied_total",
        "fleetwright_fallbacks_total",
    ] {
        let line = told.lines().find(|line| line.contains(metric)).unwrap();
        let value: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(value > 0.0, "{line}");
    }
}

#[test]
fn an_address_that_cannot_be_had_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_layers"))
        .args(["--listen", &address])
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(complaints.contains("give another --listen"), "{complaints}");
}
