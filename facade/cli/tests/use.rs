//! Settings, exit codes, and what a script relies on.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use support::{Service, program, text, write_secret};

/// A token that no output may have.
const SECRET: &str = "fw_this-is-the-secret";

/// A service that answers every request with the same response.
fn answering(status: u16, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 65536];
            let _ = stream.read(&mut bytes);
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    url
}

fn problem(status: u16, code: &str) -> String {
    let body = format!(
        r#"{{"type":"/docs","title":"t","status":{status},"code":"{code}","detail":"what is wrong","traceId":"trace-1"}}"#
    );
    answering(status, body.leak())
}

#[test]
fn every_exit_code_has_its_cause() {
    let expected = [
        (400, "invalid_request", 2),
        (401, "access_denied", 4),
        (403, "forbidden", 4),
        (404, "not_found", 3),
        (409, "conflict", 5),
        (412, "precondition_failed", 5),
        (410, "gone", 3),
        (422, "unprocessable_content", 2),
        (429, "too_many_requests", 6),
        (500, "server_error", 1),
        (501, "not_implemented", 1),
        (503, "unavailable", 6),
    ];
    for (status, code, exit) in expected {
        let output = program(&["caller", "--verbose", "--url", &problem(status, code)])
            .env("FLEETWRIGHT_TOKEN", SECRET)
            .output()
            .unwrap();
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "{status}: {shown}");
        for part in ["error: what is wrong", code, "trace-1", "what to do: "] {
            assert!(shown.contains(part), "{status}: {part} is not in {shown}");
        }
        assert!(
            !shown.contains(SECRET) && output.stdout.is_empty(),
            "{shown}"
        );
    }

    // Nobody is there; something else is there; no time is left.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    let late = nobody.clone();
    let codes = |url: &str| {
        program(&["caller", "--deadline", "1", "--url", url])
            .env("FLEETWRIGHT_TOKEN", SECRET)
            .output()
            .unwrap()
            .status
            .code()
    };
    assert_eq!(codes(&late), Some(6));
    drop(listener);
    assert_eq!(codes(&nobody), Some(6));
    assert_eq!(codes(&answering(200, "<html>")), Some(1));

    let stuck = r#"{"metadata":{"id":"x","name":"web-1","organizationId":"o","projectId":"p","creationTime":"2026-01-01T00:00:00Z","createdBy":"user:ada","generation":1,"provisioningStatus":"error","healthStatus":"error"},
        "spec":{"flavorId":"f","imageId":"i"},"status":{"regionId":"r","networkId":"n","powerState":"failed","desiredPower":"running","observedGeneration":0,
        "conditions":[{"kind":"noCapacity","message":"choose another flavor","since":"2026-01-01T00:00:00Z"}]},"generation":2}"#;
    let id = "0198c0de-0000-7000-8000-000000000001";
    let output = program(&[
        "instances",
        "start",
        id,
        "--wait",
        "--url",
        &answering(200, stuck),
    ])
    .env("FLEETWRIGHT_TOKEN", SECRET)
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(text(&output.stderr).contains("choose another flavor"));
}

#[test]
fn wrong_use_says_what_to_do() {
    let failed = |arguments: &[&str], environment: &[(&str, &str)]| {
        let output = program(arguments)
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        text(&output.stderr)
    };
    let url = ("FLEETWRIGHT_URL", "http://127.0.0.1:1");
    let token = ("FLEETWRIGHT_TOKEN", SECRET);
    assert!(failed(&["caller"], &[token]).contains("FLEETWRIGHT_URL"));
    assert!(failed(&["caller"], &[url]).contains("FLEETWRIGHT_TOKEN_FILE"));
    assert!(
        failed(&["caller", "--token-file", "/does/not/exist"], &[url]).contains("/does/not/exist")
    );
    assert!(failed(&["caller", "--profile", "x"], &[url, token]).contains("profile x"));
    assert!(
        failed(&["instances", "list", "--state", "sleeping"], &[url, token]).contains("`running`")
    );
    assert!(
        failed(&["groups", "create", "x", "--rule", "in"], &[url, token])
            .contains("ingress:tcp:443")
    );
    assert!(
        failed(
            &["instances", "start", "a", "--timeout", "soon"],
            &[url, token]
        )
        .contains("expected seconds")
    );
    assert!(failed(&["caller", "--token", "x"], &[url]).contains("unexpected argument"));
    let plain = failed(&["caller", "--url", "http://192.0.2.1"], &[token]);
    assert!(plain.contains("https"), "{plain}");
    // What is wrong with a token is said without it.
    let wrong = failed(
        &["caller"],
        &[url, ("FLEETWRIGHT_TOKEN", "two words-of-a-secret")],
    );
    assert!(!wrong.contains("secret"), "{wrong}");
}

#[test]
fn settings_come_from_profiles_and_files_that_only_the_owner_can_read() {
    let service = Service::start();
    let folder = service.folder.path();
    let (config, token) = (folder.join("config.toml"), folder.join("the.token"));
    write_secret(&token, &format!("{}\n", service.token));
    let profiles = format!(
        "default-profile = 'work'\n[profile.work]\nurl = '{}'\ntoken-file = 'the.token'\norganization = 'acme'\nproject = 'shop'\n[profile.other]\nurl = 'http://127.0.0.1:1'\ntoken = '{SECRET}'\n",
        service.url
    );
    std::fs::write(&config, profiles).unwrap();
    let run = |arguments: &[&str]| {
        let output = program(arguments)
            .env("FLEETWRIGHT_CONFIG", &config)
            .output()
            .unwrap();
        let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(
            !shown.contains(SECRET) && !shown.contains(&service.token),
            "{shown}"
        );
        (output.status.code(), shown)
    };
    assert_eq!(run(&["caller"]).0, Some(0));
    assert_eq!(run(&["networks", "list"]).0, Some(0));
    // The names of the profile are used.
    assert_eq!(run(&["quota", "show", "--project", "shop"]).0, Some(0));

    // The token of a profile is for its service alone.
    let (code, shown) = run(&["caller", "--url", "http://127.0.0.1:1"]);
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("not sent to http://127.0.0.1:1"), "{shown}");

    // Others may read the file: a config file with a token, and a file of a token.
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (code, shown) = run(&["caller", "--profile", "other"]);
    assert!(code == Some(2) && shown.contains("chmod 600"), "{shown}");
    assert_eq!(
        run(&["caller"]).0,
        Some(0),
        "a config file without the token of this profile is no secret"
    );
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o640)).unwrap();
    let (code, shown) = run(&["caller"]);
    assert!(code == Some(2) && shown.contains("chmod 600"), "{shown}");

    // A mistake in the file is shown with its line, and without the line's text.
    write_secret(
        &config,
        &format!("[profile.work]\nurl = 'http://127.0.0.1:1'\ntokens = '{SECRET}'\n"),
    );
    let (code, shown) = run(&["caller"]);
    assert!(
        code == Some(2) && shown.contains("line 3") && shown.contains("tokens"),
        "{shown}"
    );

    // From standard input.
    let mut child = program(&["caller", "--url", &service.url, "--token-file", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(service.token.as_bytes())
        .unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

/// A service that refuses every request, and the credentials that were sent to it.
fn recording() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 65536];
            let count = stream.read(&mut bytes).unwrap();
            let request = text(&bytes[..count]);
            let tokens = request.lines().filter_map(|line| line.split_once(' '));
            let tokens = tokens.filter(|(name, _)| name.eq_ignore_ascii_case("authorization:"));
            seen.lock()
                .unwrap()
                .extend(tokens.map(|(_, value)| value.to_owned()));
            let response = "HTTP/1.1 403 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            let _ = stream.write_all(response.as_bytes());
        }
    });
    (url, sent)
}

#[test]
fn a_profile_that_an_argument_names_is_stronger_than_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    let ((url_a, sent_a), (url_b, sent_b)) = (recording(), recording());
    let profiles = format!(
        "[profile.b]\nurl = '{url_b}'\ntoken = 'of-b'\n[profile.bare]\nurl = '{url_b}'\n[profile.token]\ntoken = 'of-no-service'\n"
    );
    write_secret(&config, &profiles);
    let environment = [
        ("FLEETWRIGHT_URL", url_a.as_str()),
        ("FLEETWRIGHT_TOKEN", "of-a"),
    ];
    let run = |arguments: &[&str], environment: &[(&str, &str)]| {
        let output = program(&[&["caller"], arguments].concat())
            .env("FLEETWRIGHT_CONFIG", &config)
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        let take = |sent: &Mutex<Vec<String>>| std::mem::take(&mut *sent.lock().unwrap()).join(",");
        (take(&sent_a), take(&sent_b), text(&output.stderr))
    };
    let sent = |arguments: &[&str], environment: &[(&str, &str)]| {
        let (to_a, to_b, _) = run(arguments, environment);
        (to_a, to_b)
    };
    let (to_a, to_b) = (
        ("Bearer of-a".to_owned(), String::new()),
        (String::new(), "Bearer of-b".to_owned()),
    );
    assert_eq!(sent(&["--profile", "b"], &environment), to_b);
    assert_eq!(sent(&["--profile", "b"], &[]), to_b);
    // The same service, named twice.
    assert_eq!(
        sent(&["--profile", "b", "--url", &url_b], &environment),
        to_b
    );
    // A profile of the environment is part of the environment.
    let all = [&environment[..], &[("FLEETWRIGHT_PROFILE", "b")]].concat();
    assert_eq!(sent(&[], &all), to_a);
    assert_eq!(sent(&[], &all[2..]), to_b);
    // Its token is not sent to another address, and a profile without an address has that of the environment.
    assert_eq!(
        sent(&["--profile", "b", "--url", &url_a], &environment),
        to_a
    );
    assert_eq!(sent(&["--profile", "token"], &environment), to_a);

    let nothing = |arguments: &[&str], environment: &[(&str, &str)], expected: &str| {
        let (to_a, to_b, shown) = run(arguments, environment);
        assert_eq!((to_a, to_b), Default::default(), "{shown}");
        assert!(
            shown.contains(expected) && shown.contains("token-file"),
            "{shown}"
        );
        assert!(
            !shown.contains("of-b") && !shown.contains("of-a"),
            "{shown}"
        );
    };
    let refused = "profile bare has no token, and that of the environment is not sent";
    nothing(&["--profile", "bare"], &environment, refused);
    nothing(&["--profile", "bare"], &environment[1..], refused);
    nothing(&["--profile", "b", "--url", &url_a], &[], "is not sent to");
    nothing(&["--profile", "token"], &environment[..1], "is not sent to");
}

#[test]
fn requests_are_shown_without_the_token_and_colours_on_demand() {
    let service = Service::start();
    service.ok(&[
        "instances",
        "create",
        "web-1",
        "--flavor",
        "standard-2",
        "--image",
        "debian-13",
        "--wait",
    ]);
    let output = service.run(&["instances", "list", "--verbose"]);
    let shown = text(&output.stderr);
    assert!(
        shown.contains("listInstances") && shown.contains("status=200"),
        "{shown}"
    );
    assert!(
        service
            .ok(&["instances", "list", "--color", "always"])
            .contains("\u{1b}[")
    );
    let plain = service
        .command(&["instances", "list"])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(!text(&plain.stdout).contains('\u{1b}'));
    // A refused value of the service.
    let refused = service.fails(
        2,
        &[
            "instances",
            "create",
            "web-2",
            "--flavor",
            "none",
            "--image",
            "debian-13",
        ],
    );
    assert!(refused.contains("none"), "{refused}");
    // The name is taken.
    let taken = service.fails(
        5,
        &[
            "instances",
            "create",
            "web-1",
            "--flavor",
            "standard-2",
            "--image",
            "debian-13",
        ],
    );
    assert!(taken.contains("has the name already"), "{taken}");
    // The same key finds the first one.
    let keyed = [
        "instances",
        "create",
        "web-3",
        "--flavor",
        "standard-2",
        "--image",
        "debian-13",
        "--idempotency-key",
        "k-1",
        "-o",
        "json",
    ];
    assert_eq!(service.ok(&keyed), service.ok(&keyed));
}

#[test]
fn a_reader_that_stops_is_no_failure() {
    let service = Service::start();
    let mut child = service
        .command(&["operator", "metrics"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (Some(0), "")
    );
}

#[test]
fn completion_scripts_and_versions_need_no_service() {
    for shell in ["bash", "zsh", "fish"] {
        let output = program(&["completion", shell]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let script = text(&output.stdout);
        assert!(
            script.contains("instances") && script.contains("idempotency-key"),
            "{shell}"
        );
        // bash is always there; the others are checked where they are installed.
        let found = Command::new("which")
            .arg(shell)
            .output()
            .is_ok_and(|found| found.status.success());
        assert!(found || shell != "bash", "bash is not installed");
        if found {
            let mut parser = Command::new(shell)
                .arg("-n")
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            parser
                .stdin
                .take()
                .unwrap()
                .write_all(script.as_bytes())
                .unwrap();
            let parsed = parser.wait_with_output().unwrap();
            assert!(
                parsed.status.success() && parsed.stderr.is_empty(),
                "{parsed:?}"
            );
        }
    }
    let version = program(&["version", "--client"]).output().unwrap();
    assert!(text(&version.stdout).contains(env!("CARGO_PKG_VERSION")));
    let service = Service::start();
    assert!(service.ok(&["version"]).contains("fleetwright-server"));
}
