//! Backends that do not speak the protocol: a clear message, and never a hang.

mod command;

use command::{Output, contract_run, python};

/// Runs one clause, which stops an id that does not exist, on a backend that does one thing wrong.
fn run(mode: &str) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/misbehaving.py");
    let arguments = ["--filter", "STOP-07", "--limit", "1", "--jobs", "1", "--"];
    let python = python();
    let command = [python.as_str(), "-S", script, mode];
    contract_run(&[&arguments[..], &command[..]].concat())
}

#[test]
fn well_behaved_backend_passes() {
    let output = run("well");
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        output.stdout,
        "STOP-07: pass\nmisbehaving: conformant: 1 pass\n"
    );
}

#[test]
fn backend_that_cannot_be_started_is_no_verdict() {
    for (mode, message) in [
        (
            "dies-at-once",
            "it ended with exit status: 1; it wrote last: there is no cloud",
        ),
        (
            "greets-loudly",
            "it wrote a line that is no reply (expected value at line 1 column 1): starting up ...",
        ),
        ("never-greets", "it did not answer hello within 1s"),
        (
            "other-version",
            "the backend speaks protocol version 2, and this program 1",
        ),
    ] {
        let output = run(mode);
        assert_eq!(output.code, 2, "{mode}: {output:?}");
        assert!(output.stderr.contains(message), "{mode}: {output:?}");
        assert_eq!(output.stdout, "", "{mode}");
    }
    let output = contract_run(&["--exec", "./there-is-no-such-program"]);
    assert_eq!(output.code, 2);
    assert!(
        output
            .stderr
            .contains("cannot start ./there-is-no-such-program"),
        "{output:?}"
    );
}

#[test]
fn backend_that_breaks_the_protocol_fails_the_clause() {
    for (mode, message) in [
        (
            "garbage",
            "it wrote a line that is no reply (expected value at line 1 column 1): Traceback ...",
        ),
        ("long-line", "it wrote a line of more than 16777216 bytes"),
        (
            "half-line",
            "it ended with exit status: 0, within the line {\"id\"",
        ),
        (
            "dies",
            "it ended with exit status: 3; it wrote last: out of memory",
        ),
        ("answers-twice", "it replied to request 3 twice"),
        (
            "answers-another",
            "it replied to request 1003, which was never sent",
        ),
        (
            "wrong-result",
            "the result of stop_instance is wrong: invalid type: string",
        ),
        ("forgets-the-effect", "missing field `effect`"),
        ("not-utf8", "a line is not UTF-8"),
        ("never-opens", "it did not answer open within 1s"),
        (
            "silent-in-virtual-time",
            "it did not answer stop_instance within 1s; in virtual time",
        ),
        // In real time a call that hangs is no fault of the protocol. The kit itself limits it.
        ("silent", "stop_instance(i-0) did not return within 300ms"),
    ] {
        let output = run(mode);
        assert_eq!(output.code, 1, "{mode}: {output:?}");
        assert!(output.stdout.contains(message), "{mode}: {output:?}");
        let counts = "misbehaving: not conformant: 1 fail\n";
        assert!(output.stdout.ends_with(counts), "{mode}: {output:?}");
    }
}

#[test]
fn what_the_backend_writes_to_its_errors_is_shown() {
    let output = run("dies");
    assert!(
        output.stderr.contains("STOP-07: out of memory"),
        "{output:?}"
    );
}
