//! Runs the example as a user would and checks its output.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::process::Command;

#[test]
fn layers_example_prints_every_scenario() {
    let output = Command::new(env!("CARGO_BIN_EXE_layers")).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{stderr}");
    let mut rest = stdout.lines();
    for expected in [
        "ok: native calls for 60 concurrent describes: 1",
        "ok: 20 launched with",
        "15 of 15 launches failed",
        "effect unknown, retry with the same token, code InternalError",
        "ok: the cloud has 15 instances for 15 launches",
        "is \"spot in zone b\", in zone mem-b",
        "calls for two launches: the second one skipped the offering without capacity",
        "memory launch_instance OK attempt=2 token_hash=",
        "memory launch_instance ERROR",
        "metrics: http://127.0.0.1:",
        "fleetwright_calls_total",
        "fleetwright_retries_total         throttled",
        "nothing left",
    ] {
        assert!(
            rest.any(|line| line.contains(expected)),
            "{expected:?} is missing in:\n{stdout}"
        );
    }
    for metric in [
        "fleetwright_calls_total",
        "fleetwright_retries_denied_total",
        "fleetwright_fallbacks_total",
    ] {
        let line = stdout.lines().find(|line| line.contains(metric)).unwrap();
        let value: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(value > 0.0, "{line}");
    }
}

#[test]
fn address_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_layers"))
        .args(["--listen", &address])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        stderr.contains("choose another --listen address"),
        "{stderr}"
    );
}
