//! The pages that browsers open: what they may load, how they are cached, and that they name no other host.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::path::Path;

use support::{Answer, Client, Running};

/// What a page may load and do, and nothing else.
const POLICY: [&str; 9] = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
];

fn anonymous(running: &Running) -> Client {
    let mut client = running.client("");
    client.token = None;
    client
}

/// The files of the page, as they are in the sources.
fn sources() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/page");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let named = files.map(|file| {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(file).unwrap())
    });
    let found: Vec<_> = named.collect();
    assert!(found.len() > 20, "{found:?}");
    found
}

fn address(name: &str) -> String {
    match name {
        "index.html" => "/console".to_owned(),
        name => format!("/console/{name}"),
    }
}

fn check_headers(path: &str, answer: &Answer) {
    let policy = answer.header("content-security-policy").unwrap();
    let parts: Vec<_> = policy.split(';').map(str::trim).collect();
    assert_eq!(parts, POLICY, "{path}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{path}: {name}");
    }
}

#[test]
fn every_file_of_the_console_is_served_with_a_strict_policy() {
    let running = Running::sample();
    let client = anonymous(&running);
    for (name, text) in sources() {
        let path = address(&name);
        let served = client.get(&path).expect(200);
        assert_eq!(served.text, text, "{path}");
        check_headers(&path, &served);
        let kind = match name.rsplit_once('.').unwrap().1 {
            "html" => "text/html; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("{other}"),
        };
        assert_eq!(served.header("content-type"), Some(kind), "{path}");
    }
    for path in ["/docs", "/docs.css", "/openapi.json"] {
        check_headers(path, &client.get(path).expect(200));
    }
    client.get("/console/missing.js").expect(401);
}

#[test]
fn a_browser_that_has_a_file_is_told_so() {
    let running = Running::sample();
    let client = anonymous(&running);
    for path in ["/console", "/console/app.js", "/docs"] {
        let first = client.get(path).expect(200);
        let etag = first.header("etag").unwrap().to_owned();
        let weak = format!("\"other\", W/{etag}");
        for known in [&etag, &weak] {
            let again = client
                .send("GET", path, &[("If-None-Match", known)], None)
                .expect(304);
            assert_eq!(again.text, "");
            assert_eq!(again.header("etag"), Some(etag.as_str()));
            check_headers(path, &again);
        }
        let other = client.send("GET", path, &[("If-None-Match", "\"other\"")], None);
        assert_eq!(other.expect(200).text, first.text);
    }
    let page = client.get("/console").expect(200);
    let script = client.get("/console/app.js").expect(200);
    assert_ne!(page.header("etag"), script.header("etag"));
}

#[test]
fn the_console_can_be_found() {
    let running = Running::sample();
    let client = anonymous(&running);
    for path in ["/", "/console/"] {
        let moved = client.get(path).expect(303);
        assert_eq!(moved.header("location"), Some("/console"));
    }
    let docs = client.get("/docs").expect(200).text;
    assert!(docs.contains("href=\"/console\""), "{docs}");
    let link = format!("http://{}/console", running.address);
    assert!(running.greeting.contains(&link), "{}", running.greeting);
}

#[test]
fn no_file_names_another_host_or_has_an_inline_script_or_style() {
    let running = Running::sample();
    let client = anonymous(&running);
    let mut files = sources();
    for path in ["/docs", "/docs.css"] {
        files.push((path.to_owned(), client.get(path).expect(200).text));
    }
    for (name, text) in files {
        // The name of a namespace is not loaded.
        let text = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for host in [
            "http://", "https://", "ws://", "wss://", "\"//", "'//", "(//", "`//", "@import",
        ] {
            assert!(!text.contains(host), "{name} contains {host}");
        }
        if !name.ends_with(".js") && !name.ends_with(".css") {
            let scripts = text.matches("<script").count();
            let loaded = text
                .matches("<script type=\"module\" src=\"/console/")
                .count();
            assert_eq!(scripts, loaded, "{name} has an inline script");
            for inline in ["<style", " style=", " onclick=", " onload=", "javascript:"] {
                assert!(!text.contains(inline), "{name} contains {inline}");
            }
        }
    }
}

#[test]
fn no_script_turns_text_into_elements_or_code() {
    for (name, text) in sources() {
        if !name.ends_with(".js") {
            continue;
        }
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "createContextualFragment",
            "srcdoc",
            "eval(",
            "new Function",
            "localStorage",
            "document.cookie",
        ];
        for forbidden in forbidden {
            assert!(!text.contains(forbidden), "{name} contains {forbidden}");
        }
    }
}
