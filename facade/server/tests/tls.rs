//! Encrypted connections, with certificates that are replaced while the service runs; and pages of other origins.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::aws_lc_rs,
    pki_types::CertificateDer,
};
use support::{Answer, Client, Files, Running, parse};

/// A certificate for this machine, and its key.
struct Generated {
    certificate: CertificateDer<'static>,
    pem: String,
    key: String,
}

fn generate() -> Generated {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    Generated {
        certificate: made.cert.der().clone(),
        pem: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    }
}

fn write(folder: &Path, made: &Generated) {
    std::fs::write(folder.join("tls.key"), &made.key).unwrap();
    std::fs::write(folder.join("tls.pem"), &made.pem).unwrap();
}

fn files(made: &Generated) -> Files {
    let files = Files::new("header-time = '1 s'\n[tls]\ncertificate = 'tls.pem'\nkey = 'tls.key'");
    files.token("olga");
    write(files.folder.path(), made);
    files
}

/// Reads health over TLS, trusting one certificate alone.
fn get(address: SocketAddr, trusted: &Generated) -> std::io::Result<Answer> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.certificate.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    let mut stream = StreamOwned::new(connection, stream);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    // The service closes after its response.
    match stream.read_to_string(&mut text) {
        Ok(_) => {}
        Err(_) if !text.is_empty() => {}
        Err(error) => return Err(error),
    }
    Ok(parse(&text))
}

#[test]
fn a_certificate_is_replaced_while_the_service_runs() {
    let (first, second) = (generate(), generate());
    let files = files(&first);
    let running = files.start();
    assert!(
        running.greeting.contains("https://"),
        "{}",
        running.greeting
    );
    let address = running.address;
    assert_eq!(get(address, &first).unwrap().status, 204);
    assert!(
        get(address, &second).is_err(),
        "a certificate that is not shown is trusted"
    );

    // A broken file, and a key of another certificate, change nothing.
    let folder = files.folder.path();
    std::fs::write(folder.join("tls.pem"), "-----BEGIN CERTIFICATE-----\nx").unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(get(address, &first).unwrap().status, 204);
    std::fs::write(folder.join("tls.pem"), &second.pem).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(get(address, &first).unwrap().status, 204);

    write(folder, &second);
    let replaced = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        get(address, &second).is_ok_and(|answer| answer.status == 204)
    });
    assert!(replaced, "the new certificate is not shown");
    assert!(get(address, &first).is_err());
    assert_eq!(running.terminate(), Some(0));
}

#[test]
fn what_is_no_tls_or_too_slow_is_closed_without_a_response() {
    let made = generate();
    let files = files(&made);
    let running = files.start();
    for bytes in ["GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", ""] {
        let mut stream = TcpStream::connect(running.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        let mut rest = Vec::new();
        // Closing can be a reset.
        let _ = stream.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains("HTTP/1.1"));
    }
    assert_eq!(get(running.address, &made).unwrap().status, 204);
}

#[test]
fn a_check_finds_a_key_of_another_certificate() {
    let (made, other) = (generate(), generate());
    let files = files(&made);
    assert!(files.check().status.success());
    let key = files.folder.path().join("tls.key");
    for (text, expected) in [
        (other.key.as_str(), "cannot be used together"),
        ("no key", "tls.key cannot be used"),
    ] {
        std::fs::write(&key, text).unwrap();
        let found = files.check();
        let text = String::from_utf8(found.stderr).unwrap();
        assert!(!found.status.success() && text.contains(expected), "{text}");
    }
}

fn preflight(running: &Running, origin: &str) -> Answer {
    let mut client = running.client("");
    client.token = None;
    let headers = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "PUT"),
        ("Access-Control-Request-Headers", "authorization,if-match"),
    ];
    client.send("OPTIONS", "/api/v2/instances", &headers, None)
}

#[test]
fn no_page_of_another_origin_may_call_unless_it_is_named() {
    let closed = Files::new("");
    let token = closed.token("olga");
    let running = closed.start();
    let origin = "https://console.example.com";
    preflight(&running, origin).expect(401);
    let client = running.client(&token);
    let answer = client.send("GET", "/api/version", &[("Origin", origin)], None);
    assert!(
        answer
            .expect(200)
            .headers
            .iter()
            .all(|(name, _)| !name.starts_with("access-control"))
    );

    let open = Files::new(&format!("[cors]\norigins = ['{origin}']"));
    let token = open.token("olga");
    let running = open.start();
    let allowed = preflight(&running, origin).expect(200);
    let header = |name: &str| allowed.header(&format!("access-control-allow-{name}"));
    assert_eq!(header("origin"), Some(origin));
    assert_eq!(header("credentials"), None);
    assert!(header("methods").unwrap().contains("PUT"));
    assert!(header("headers").unwrap().contains("authorization"));
    let client = running.client(&token);
    let answer = client.send("GET", "/api/version", &[("Origin", origin)], None);
    let exposed = answer.expect(200);
    assert_eq!(exposed.header("access-control-allow-origin"), Some(origin));
    assert!(
        exposed
            .header("access-control-expose-headers")
            .unwrap()
            .contains("etag")
    );
    for other in [
        "https://evil.example.com",
        "http://console.example.com",
        "https://console.example.com.evil.example.com",
        "https://console.example.com:444",
        "null",
        "*",
    ] {
        let refused = preflight(&running, other);
        assert_eq!(
            refused.header("access-control-allow-origin"),
            None,
            "{other}"
        );
        let client = running.client(&token);
        let answer = client.send("GET", "/api/version", &[("Origin", other)], None);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            None,
            "{other}"
        );
    }
    // A token is needed all the same.
    let mut client = running.client("");
    client.token = None;
    let refused = client.send("GET", "/api/version", &[("Origin", origin)], None);
    refused.expect(401);
}

#[test]
fn a_named_page_can_read_why_its_request_failed() {
    let origin = "https://console.example.com";
    let files = Files::new(&format!("[cors]\norigins = ['{origin}']"));
    let token = files.token("olga");
    let running = files.start();
    let mut stranger = running.client("");
    stranger.token = None;
    let client = running.client(&token);
    let send = |client: &Client, path: &str, origin: &str| {
        client.send("GET", path, &[("Origin", origin)], None)
    };
    for answer in [
        send(&stranger, "/api/version", origin).expect(401),
        send(&client, "/api/v2/nothing", origin).expect(404),
        client
            .send("DELETE", "/api/v2/instances", &[("Origin", origin)], None)
            .expect(405),
    ] {
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, Some(origin), "{answer:?}");
        let exposed = answer.header("access-control-expose-headers");
        assert!(exposed.unwrap().contains("x-trace-id"), "{answer:?}");
        let vary = answer.header("vary");
        assert!(vary.unwrap().contains("origin"), "{answer:?}");
    }
    let refused = send(&client, "/api/v2/nothing", "https://evil.example.com").expect(404);
    assert_eq!(refused.header("access-control-allow-origin"), None);
}

#[test]
fn every_mistake_of_origins_has_its_position() {
    let origins = "[cors]\norigins = ['*', 'null', 'https://a.example.com/', 'HTTPS://a.example.com', 'https://a.example.com:443', 'ftp:x']";
    let files = Files::new(origins);
    files.token("olga");
    let found = files.check();
    let text = String::from_utf8(found.stderr).unwrap();
    assert!(!found.status.success());
    assert_eq!(text.matches("is no origin").count(), 6, "{text}");
    assert!(text.contains("line 10, column 12"), "{text}");
}
