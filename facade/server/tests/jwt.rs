//! Tokens of an identity provider, over a real socket: which enter, with which roles, and which do not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

#[path = "support/issuer.rs"]
mod issuer;
mod support;

use std::time::{Duration, SystemTime};

use base64::{Engine, engine::general_purpose::STANDARD};
use issuer::{AUDIENCE, ISSUER, KeyServer, SigningKey, claims, key_set, message, sign_with_secret};
use serde_json::{Value, json};
use support::{Answer, Client, Files, Running};

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_secs() as i64
}

/// A table `jwt` that ends a configuration.
fn table(keys: &str, more: &str) -> String {
    format!("rate = 100000\n[jwt]\nissuer = '{ISSUER}'\naudience = '{AUDIENCE}'\n{keys}\n{more}\n")
}

/// A service that accepts tokens of these keys, from a file.
fn service(keys: &[&SigningKey], more: &str) -> (Files, Running) {
    let files = Files::new(&table("keys-file = 'keys.json'", more));
    files.token("olga");
    std::fs::write(files.folder.path().join("keys.json"), key_set(keys)).unwrap();
    let running = files.start();
    (files, running)
}

fn status(running: &Running, token: &str) -> u16 {
    running.client(token).get("/api/version").status
}

/// Asks until the condition holds: reading keys is not instant.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let holds = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        condition()
    });
    assert!(holds, "{what}");
}

#[test]
fn every_forged_token_is_refused_with_the_same_body() {
    let (ec, rsa) = (SigningKey::ec("ec"), SigningKey::rsa("rsa"));
    let (stranger, same_id) = (SigningKey::ec("stranger"), SigningKey::ec("ec"));
    let (_files, running) = service(&[&ec, &rsa], "");
    let bait = KeyServer::start(&key_set(&[&stranger]));

    let good = claims("ada", now());
    for key in [&ec, &rsa] {
        assert_eq!(status(&running, &key.token(&good)), 200);
    }
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        ec.token(&claims)
    };
    let header = |name: &str, value: Value| {
        let mut header = ec.header();
        header[name] = value;
        header
    };
    let signed = |name: &str, value: Value| ec.sign(&header(name, value), &good);
    let by_stranger = |name: &str, value: Value| stranger.sign(&header(name, value), &good);
    let mut no_id = ec.header();
    no_id.as_object_mut().unwrap().remove("kid");
    let secret = |id: &str, secret: &str| {
        let header = json!({"alg": "HS256", "typ": "JWT", "kid": id});
        sign_with_secret(&header, &good, secret.as_bytes())
    };
    let x = ec.jwk()["x"].as_str().unwrap().to_owned();
    let whole = ec.token(&good);
    let (unsigned, signature) = whole.rsplit_once('.').unwrap();
    let none = |name: &str| message(&json!({"alg": name, "kid": "ec"}), &good);

    let attacks = [
        ("alg=none", format!("{}.", none("none"))),
        (
            "alg=None with a signature",
            format!("{}.{signature}", none("None")),
        ),
        ("alg=nOnE", format!("{}.", none("nOnE"))),
        (
            "no algorithm",
            format!("{}.{signature}", message(&json!({"kid": "ec"}), &good)),
        ),
        ("no signature", format!("{unsigned}.")),
        ("two parts", unsigned.to_owned()),
        ("five parts", format!("{whole}.a.b")),
        ("the public key as a secret", secret("ec", &ec.public)),
        (
            "the public key of RSA as a secret",
            secret("rsa", &rsa.public),
        ),
        ("a coordinate as a secret", secret("ec", &x)),
        ("an empty secret", secret("ec", "")),
        ("another key of the same id", same_id.token(&good)),
        ("the key of another type", signed("alg", json!("RS256"))),
        ("another curve", signed("alg", json!("ES384"))),
        ("an algorithm that is not permitted", {
            let mut header = rsa.header();
            header["alg"] = json!("PS256");
            rsa.sign(&header, &good)
        }),
        ("an unknown key", stranger.token(&good)),
        ("no key id", ec.sign(&no_id, &good)),
        (
            "a key id that is a path",
            signed("kid", json!("../../keys.json")),
        ),
        ("a key id that is no text", signed("kid", json!(["ec"]))),
        ("crit", signed("crit", json!(["exp"]))),
        ("an empty crit", signed("crit", json!([]))),
        ("jku", by_stranger("jku", json!(bait.url()))),
        (
            "jku with a good signature",
            signed("jku", json!(bait.url())),
        ),
        ("x5u", by_stranger("x5u", json!(bait.url()))),
        ("jwk", by_stranger("jwk", stranger.jwk())),
        (
            "x5c",
            by_stranger("x5c", json!([STANDARD.encode("certificate")])),
        ),
        ("zip", signed("zip", json!("DEF"))),
        (
            "a token for logging out",
            signed("typ", json!("logout+jwt")),
        ),
        (
            "another issuer",
            with("iss", json!("https://evil.example.com")),
        ),
        ("another audience", with("aud", json!("other"))),
        ("expired", with("exp", json!(now() - 60))),
        ("expired long ago", with("exp", json!(0))),
        ("not valid yet", with("nbf", json!(now() + 600))),
        ("no expiry", with("exp", Value::Null)),
        ("no subject", with("sub", Value::Null)),
        ("too long", with("padding", json!("x".repeat(20_000)))),
        ("dots", "..".to_owned()),
        (
            "a token of another file",
            "fleetwright_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        ),
    ];
    let mut client = running.client("");
    client.token = None;
    let expected = shape(&client.get("/api/version").expect(401));
    for (attack, token) in attacks {
        let answer = running.client(&token).get("/api/version");
        assert_eq!(shape(&answer), expected, "{attack}");
    }
    assert_eq!(bait.reads(), 0, "a token chose where keys come from");
    assert_eq!(status(&running, &whole), 200);
}

/// What a caller sees of a refusal, but for what is new in each response.
fn shape(answer: &Answer) -> (u16, Value, Vec<(String, String)>) {
    let mut body = answer.json();
    body["traceId"] = Value::Null;
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| name != "date" && name != "x-trace-id");
    (answer.status, body, headers)
}

#[test]
fn claims_give_roles_for_as_long_as_the_token_is_valid() {
    let key = SigningKey::ec("k1");
    let roles =
        "[[jwt.role]]\nclaim = 'groups'\nvalue = 'operators'\nrole = 'platform-administrator'\n";
    let (files, running) = service(&[&key], roles);
    let client = |name: &str, groups: Value| -> Client {
        let mut claims = claims(name, now());
        claims["groups"] = groups;
        running.client(&key.token(&claims))
    };
    let operator = client("ada", json!(["users", "operators"]));
    let acme = json!({"name": "acme"});
    operator.post("/api/v2/organizations", &acme).expect(201);
    let caller = operator.get("/api/v2/caller").expect(200).json();
    assert_eq!(caller["actor"], "user:jwt:ada", "{caller}");
    // The same person with a token without the group.
    let listed = client("ada", json!(["users"])).get("/api/v2/organizations");
    assert!(
        [200, 403].contains(&listed.status) && !listed.text.contains("acme"),
        "{listed:?}"
    );
    // Nobody becomes an actor of the file of tokens by having the same name.
    let named = client("olga", json!([])).get("/metrics");
    assert_eq!(named.status, 403);
    let olga = running.client(&files.token("olga"));
    eventually("the token of the file", || {
        olga.get("/metrics").status == 200
    });
    // What the audit log says of an operator that no binding names.
    let log = olga.get("/api/v2/auditlog").expect(200).text;
    assert!(log.contains("user:jwt:ada"), "{log}");
}

#[test]
fn keys_that_are_rotated_are_read_when_a_token_names_them() {
    let (one, two) = (SigningKey::ec("one"), SigningKey::ec("two"));
    let server = KeyServer::start(&key_set(&[&one]));
    let keys = format!(
        "keys-url = '{}'\nrefresh = '60 min'\nretry = '100 ms'",
        server.url()
    );
    let files = Files::new(&table(&keys, ""));
    files.token("olga");
    let running = files.start();
    let [first, second] = [&one, &two].map(|key| key.token(&claims("ada", now())));
    assert_eq!(status(&running, &first), 200);
    assert_eq!(status(&running, &second), 401);

    // An address that fails, in every way, takes no key away.
    let large = format!(
        "HTTP/1.1 200 OK\r\n\r\n{{\"keys\": [{}",
        " ".repeat(600_000)
    );
    let elsewhere = KeyServer::start(&key_set(&[&two]));
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
        elsewhere.url()
    );
    for failure in [
        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"keys\": []}",
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
        "HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n{",
        "no HTTP",
        &redirect,
        &large,
    ] {
        server.set_response(failure.as_bytes());
        let before = server.reads();
        eventually("the address is read again", || {
            assert_eq!(status(&running, &second), 401);
            server.reads() > before + 1
        });
        assert_eq!(status(&running, &first), 200, "{failure:.60}");
    }
    assert_eq!(elsewhere.reads(), 0, "a redirection was followed");

    server.set_keys(&key_set(&[&two]));
    eventually("the new key", || status(&running, &second) == 200);
    assert_eq!(status(&running, &first), 401, "a key that was removed");
}

#[test]
fn unknown_keys_do_not_make_the_service_read_the_address_again_and_again() {
    let (known, unknown) = (SigningKey::ec("known"), SigningKey::ec("unknown"));
    let server = KeyServer::start(&key_set(&[&known]));
    let keys = format!(
        "keys-url = '{}'\nretry = '60 min'\nrefresh = '60 min'",
        server.url()
    );
    let files = Files::new(&table(&keys, ""));
    files.token("olga");
    let running = files.start();
    assert_eq!(server.reads(), 1);
    for number in 0..100 {
        let mut header = unknown.header();
        header["kid"] = json!(format!("k{number}"));
        let token = unknown.sign(&header, &claims("ada", now()));
        assert_eq!(status(&running, &token), 401);
    }
    assert_eq!(status(&running, &known.token(&claims("ada", now()))), 200);
    assert_eq!(server.reads(), 1);
}

#[test]
fn keys_in_a_file_are_read_again_when_it_changes() {
    let (one, two) = (SigningKey::ec("one"), SigningKey::ec("two"));
    let (files, running) = service(&[&one], "");
    let [first, second] = [&one, &two].map(|key| key.token(&claims("ada", now())));
    assert_eq!(
        (status(&running, &first), status(&running, &second)),
        (200, 401)
    );
    let file = files.folder.path().join("keys.json");
    std::fs::write(&file, "{\"keys\": [").unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(
        status(&running, &first),
        200,
        "a broken file keeps the keys"
    );
    std::fs::write(&file, key_set(&[&two])).unwrap();
    eventually("the new key", || status(&running, &second) == 200);
    assert_eq!(status(&running, &first), 401);
}

#[test]
fn a_watch_ends_when_its_token_expires() {
    let key = SigningKey::ec("k1");
    let roles = "clock-skew = '1 ms'\n[[jwt.role]]\nclaim = 'sub'\nvalue = 'ada'\nrole = 'platform-administrator'\n";
    let (_files, running) = service(&[&key], roles);
    let mut claims = claims("ada", now());
    claims["exp"] = json!(now() + 10);
    let token = key.token(&claims);
    let mut events = running.client(&token).watch("/api/v2/watch/instances", &[]);
    assert!(events.status.contains("200"), "{}", events.status);
    events.next("synced");
    events.read_to_end();
    assert_eq!(status(&running, &token), 401);
}

#[test]
fn every_mistake_of_the_table_has_its_position() {
    let more = "issue = 'x'\nalgorithms = ['HS256', 'none']\nkeys-url = 'http://login.example.com/keys'\nclock-skew = '10 min'\n\
        [[jwt.role]]\nclaim = []\nvalue = 'x'\nrole = 'project-user'\norganization = 'acme'\n\
        [[jwt.role]]\nclaim = 'groups'\nvalue = 'x'\nrole = 'platform-admin'\n";
    let files = Files::new(&table("", more));
    files.token("olga");
    let found = files.check();
    let text = String::from_utf8(found.stderr).unwrap();
    assert!(!found.status.success());
    for expected in [
        "\"issue\" is unknown",
        "algorithms of jwt: \"HS256\" is unknown: expected one of RS256",
        "keys-url of jwt: expected https, or http on 127.0.0.1",
        "clock-skew of jwt: it is out of range",
        "claim of role 1: it is empty",
        "organization of role 1",
        "role of role 1: project-user is a role in a project",
        "role of role 2: \"platform-admin\" is unknown",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    for line in text.lines().filter(|line| line.contains(" of ")) {
        assert!(line.contains("line ") && line.contains("column "), "{line}");
    }
}
