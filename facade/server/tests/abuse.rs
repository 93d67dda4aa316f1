//! What a hostile client can try below the operations: strange heads and paths, connections that are held, readers that read nothing, and more records
//! than its quota. Nothing is let in, and the service serves the others afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::io::{Read, Write};

use support::{Client, Files, Running, Tenant};

/// More bytes than the buffers of a connection hold, with the largest that Linux has by default.
const MORE_THAN_BUFFERS: usize = 100_000_000;

/// Sends a head and returns the status of the first response; 0 if the connection was closed without one.
fn status(client: &Client, head: &str) -> u16 {
    match client.raw(head.as_bytes()) {
        Ok(answer) => answer.status,
        Err(_) => 0,
    }
}

#[test]
fn a_strange_path_is_never_another_one() {
    let running = Running::sample();
    let mut client = running.client(&running.token());
    let tenant = Tenant::only(&client);
    let path = format!("/api/v2/networks/{}", tenant.network);
    client.get(&path).expect(200);
    let id = &tenant.network;
    let strange = [
        format!("/{path}"),
        format!("{path}/"),
        format!("{path};x=1"),
        format!("{path}%00"),
        format!("{path}%2f"),
        format!("/api/v2/./networks/{id}"),
        format!("/api/v2/x/../networks/{id}"),
        format!("/api/v2/x/%2e%2e/networks/{id}"),
        format!("/API/v2/networks/{id}"),
        format!("/api/v2/networks%2f{id}"),
        format!("/api/v2/networks/{id}%20"),
        "/api/v2/networks/%ff".to_owned(),
        format!("/healthz/..{path}"),
        format!("/docs/../{path}"),
    ];
    for has_token in [true, false] {
        if !has_token {
            client.token = None;
        }
        for path in &strange {
            let answer = client.get(path);
            let expected: &[u16] = if has_token { &[400, 404] } else { &[401] };
            assert!(expected.contains(&answer.status), "{path}: {answer:?}");
            assert!(!answer.text.contains("10.0.0.0"), "{path}: {answer:?}");
        }
        // The form for proxies is the same path.
        let token = client.token.as_deref().unwrap_or("none");
        let head = format!(
            "GET http://other.example{path} HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        assert_eq!(status(&client, &head), if has_token { 200 } else { 401 });
    }
    assert_eq!(running.terminate(), Some(0));
}

#[test]
fn a_strange_head_lets_nobody_in_and_smuggles_no_request() {
    let running = Running::sample();
    let token = running.token();
    let client = running.client(&token);
    let get = |headers: &str| {
        format!("GET /api/version HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}\r\n")
    };
    assert_eq!(
        status(&client, &get(&format!("authorization: bearer {token}\r\n"))),
        200
    );
    for headers in [
        format!("Authorization: Bearer {token}\r\nAuthorization: Bearer x\r\n"),
        format!("Authorization: Bearer x\r\nAuthorization: Bearer {token}\r\n"),
        format!("Authorization: Bearer {token} x\r\n"),
        format!("Authorization: Bearer\t{token}\r\n"),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: {token}\r\n"),
        format!("Proxy-Authorization: Bearer {token}\r\n"),
        format!("Cookie: authorization=Bearer {token}\r\n"),
        format!(
            "X-Authorization: Bearer {token}\r\nX-Forwarded-User: olga\r\nX-Principal: olga\r\nX-Impersonate: true\r\n"
        ),
    ] {
        assert_eq!(status(&client, &get(&headers)), 401, "{headers}");
    }
    // A method in a header, or in the query, is no method.
    let body = "{}";
    for headers in [
        "X-HTTP-Method-Override: DELETE\r\n",
        "X-Method-Override: DELETE\r\n",
    ] {
        let address = format!("/api/v2/networks/{}", Tenant::only(&client).network);
        let head = format!(
            "GET {address} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        );
        assert_eq!(status(&client, &head), 200, "{headers}");
        client.get(&address).expect(200);
    }
    // Two lengths, a length beside chunks, and broken chunks: one response at most, and it is a refusal.
    let smuggled = "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n";
    for (headers, body) in [
        (
            "Content-Length: 2\r\nContent-Length: 50\r\n",
            format!("{body}{smuggled}"),
        ),
        (
            "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
            format!("0\r\n\r\n{smuggled}"),
        ),
        (
            "Transfer-Encoding: chunked\r\n",
            format!("zz\r\n{smuggled}"),
        ),
        (
            "Transfer-Encoding: xchunked\r\n",
            format!("0\r\n\r\n{smuggled}"),
        ),
        ("Content-Length: -1\r\n", smuggled.to_owned()),
        (
            "Content-Length: 99999999999999999999\r\n",
            smuggled.to_owned(),
        ),
    ] {
        let head = format!(
            "POST /api/v2/organizations HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\n\
            Connection: close\r\n{headers}\r\n{body}"
        );
        let answer = client.raw(head.as_bytes()).unwrap();
        assert!(
            (400..500).contains(&answer.status) || answer.status == 0,
            "{headers}: {answer:?}"
        );
        assert!(
            !answer.text.contains("fleetwright_http_requests_total"),
            "{headers}: {answer:?}"
        );
    }
    for garbage in [
        "\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\u{16}\u{3}\u{1}\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let found = status(&client, garbage);
        assert!(
            found == 0 || (400..506).contains(&found),
            "{garbage:?}: {found}"
        );
    }
    let many: String = (0..500)
        .map(|number| format!("X-{number}: y\r\n"))
        .collect();
    assert!([400, 431].contains(&status(&client, &get(&many))));
    client.get("/api/version").expect(200);
    assert_eq!(running.terminate(), Some(0));
}

#[test]
fn connections_that_are_held_and_readers_that_read_nothing_are_cut_off() {
    let files = Files::new("connections = 1\nheader-time = '1 s'\nwrite-time = '1 s'");
    let token = files.token("olga");
    let running = files.start();
    let client = running.client(&token);
    // The only connection, and no request on it. The next client waits until it is cut off.
    let mut held = client.connect().unwrap();
    client.get("/healthz").expect(204);
    let mut rest = Vec::new();
    let _ = held.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("HTTP/1.1 2"));
    // Many large responses, and nobody who reads them: the buffers of the system are full, then the time is over.
    let length = client.get("/openapi.json").expect(200).text.len();
    let count = MORE_THAN_BUFFERS / length;
    let mut stream = client.connect().unwrap();
    let request = "GET /openapi.json HTTP/1.1\r\nHost: test\r\n\r\n";
    stream.write_all(request.repeat(count).as_bytes()).unwrap();
    client.get("/healthz").expect(204);
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    assert!(all.len() < count * length, "{} bytes were sent", all.len());
    assert_eq!(running.terminate(), Some(0));
}

#[test]
fn invented_methods_add_nothing_to_the_metrics() {
    let files = Files::new("rate = 100000");
    let token = files.token("olga");
    let running = files.start();
    let mut stranger = running.client("");
    stranger.token = None;
    for number in 0..50 {
        let method = format!("M{number}");
        stranger.send(&method, "/api/version", &[], None);
    }
    stranger.send("GET", "/api/version", &[], None).expect(401);
    let metrics = running.client(&token).get("/metrics").expect(200).text;
    assert!(!metrics.contains("\"M1"), "{metrics}");
    for method in ["other", "GET"] {
        let label = format!("method=\"{method}\"");
        assert!(metrics.contains(&label), "{label}: {metrics}");
    }
}

#[test]
fn advice_to_retry_says_that_nothing_was_changed() {
    let files = Files::new("body-time = '60 s'\nrequest-time = '1 s'");
    let token = files.token("olga");
    let running = files.start();
    let client = running.client(&token);
    // A body that never arrives ends the request by its time limit.
    let send = |method: &str| {
        let head = format!(
            "{method} /api/v2/organizations HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
            Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
        );
        client.raw(head.as_bytes()).unwrap()
    };
    let answer = send("POST").expect(503);
    assert_eq!(answer.header("retry-after"), None, "{answer:?}");
    let problem = answer.json();
    assert!(problem.get("retryAfter").is_none(), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("may or may not have been carried out"),
        "{detail}"
    );
}

#[test]
fn mass_creation_ends_at_the_quota_and_harms_nobody_else() {
    let files = Files::new("rate = 100000");
    let [olga, ada, bob] = ["olga", "ada", "bob"].map(|actor| files.token(actor));
    let running = files.start();
    let [olga, ada, bob] = [olga, ada, bob].map(|token| running.client(&token));
    let of_ada = Tenant::create(&olga, "acme", "ada");
    let of_bob = Tenant::create(&olga, "evil", "bob");
    let mut statuses: Vec<u16> = Vec::new();
    std::thread::scope(|scope| {
        let creators: Vec<_> = (0..8)
            .map(|thread| {
                let (bob, of_bob) = (&bob, &of_bob);
                scope.spawn(move || {
                    let names = (0..10).map(|number| format!("i-{thread}-{number}"));
                    let answers =
                        names.map(|name| bob.post("/api/v2/instances", &of_bob.instance(&name)));
                    answers.map(|answer| answer.status).collect::<Vec<_>>()
                })
            })
            .collect();
        for creator in creators {
            statuses.extend(creator.join().unwrap());
        }
    });
    statuses.sort_unstable();
    let quota = format!("/api/v2/organizations/{}/quota", of_bob.organization);
    let lines = olga.get(&quota).expect(200).json()["lines"].clone();
    let servers = lines
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["kind"] == "servers")
        .unwrap()
        .clone();
    let (used, limit) = (
        servers["used"].as_u64().unwrap(),
        servers["limit"].as_u64().unwrap(),
    );
    let created = statuses.iter().filter(|status| **status == 201).count() as u64;
    assert_eq!((created, used), (limit, limit), "{statuses:?}");
    assert!(
        statuses.iter().all(|status| [201, 403].contains(status)),
        "{statuses:?}"
    );
    let listed = bob.get("/api/v2/instances?limit=500").expect(200).json();
    assert_eq!(listed["items"].as_array().unwrap().len() as u64, limit);
    // The other tenant has its whole quota, and is served.
    ada.post("/api/v2/instances", &of_ada.instance("web-1"))
        .expect(201);
    assert_eq!(running.terminate(), Some(0));
}
