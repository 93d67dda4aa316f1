//! What tenants must not be able to do: enter without a token, learn of each other, or stop the service.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::io::{Read, Write};

use serde_json::{Value, json};
use support::{Answer, Client, Files, Running, Tenant};

const OTHER: &str = "c0ffee00-0000-4000-8000-000000000001";

/// Every operation of the document: method, address, whether it has a body.
fn operations(client: &Client) -> Vec<(String, String, String)> {
    let document = client.get("/openapi.json").expect(200).json();
    let mut all = Vec::new();
    for (address, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            all.push((method.to_uppercase(), address.clone(), id));
        }
    }
    assert!(all.len() > 45, "{}", all.len());
    all
}

#[test]
fn nothing_but_health_answers_without_a_token() {
    let running = Running::sample();
    let mut client = running.client("");
    client.token = None;
    client.get("/healthz").expect(204);
    let other_tokens = [
        None,
        Some(""),
        Some("fleetwright_x"),
        Some("eyJhbGciOiJub25lIn0.eyJzdWIiOiJvbGdhIn0."),
        Some("a b"),
    ];
    for (method, address, id) in operations(&client) {
        if ["readHealth", "readReadiness"].contains(&id.as_str()) {
            continue;
        }
        for token in other_tokens {
            client.token = token.map(ToOwned::to_owned);
            let address = address.replace(['{', '}'], "");
            let answer = client.send(&method, &address, &[], None).expect(401);
            assert_eq!(answer.code(), "access_denied", "{method} {address}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    client.token = None;
    client.get("/nothing/here").expect(401);
    client.get("/api/v2/instances/../../metrics").expect(401);
}

#[test]
fn another_tenants_record_is_like_one_that_does_not_exist() {
    let files = Files::new("rate = 100000");
    let [olga, ada, bob] = ["olga", "ada", "bob"].map(|actor| files.token(actor));
    let running = files.start();
    let [olga, ada, bob] = [olga, ada, bob].map(|token| running.client(&token));
    let of_ada = Tenant::create(&olga, "acme", "ada");
    let of_bob = Tenant::create(&olga, "evil", "bob");
    let id = |answer: Answer| {
        let body = answer.expect(201).json();
        let id = body.get("id").or_else(|| body["metadata"].get("id"));
        id.and_then(Value::as_str).unwrap().to_owned()
    };
    let instance = id(ada.post("/api/v2/instances", &of_ada.instance("web-1")));
    ada.get(&format!("/api/v2/instances/{instance}?waitFor=running"))
        .expect(200);
    let image = json!({"metadata": {"name": "copy"}});
    let image = id(ada.post(&format!("/api/v2/instances/{instance}/snapshot"), &image));
    let group = json!({"networkId": of_ada.network, "name": "web", "rules": []});
    let group = id(ada.post("/api/v2/securitygroups", &group));
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJRZtZ0m1o3Q1Yz0jIhYw4i0l1vVbB6yP2c9uT0bqk1M ca";
    let authority = json!({"organizationId": of_ada.organization, "projectId": of_ada.project, "name": "ca", "publicKey": key});
    let authority = id(ada.post("/api/v2/sshcertificateauthorities", &authority));
    let scope = format!(
        "organizationId={}&projectId={}",
        of_ada.organization, of_ada.project
    );
    let bindings = olga
        .get(&format!("/api/v2/rolebindings?{scope}"))
        .expect(200)
        .json();
    let binding = bindings["items"][0]["id"].as_str().unwrap().to_owned();

    let ids = [
        ("{instanceId}", instance.as_str()),
        ("{imageId}", &image),
        ("{securityGroupId}", &group),
        ("{sshCertificateAuthorityId}", &authority),
        ("{roleBindingId}", &binding),
        ("{networkId}", &of_ada.network),
        ("{organizationId}", &of_ada.organization),
        ("{projectId}", &of_ada.project),
    ];
    let bodies = |operation: &str| match operation {
        "updateInstance" => Some(
            json!({"metadata": {"name": "web-1"}, "spec": {"flavorId": "standard-2", "imageId": "debian-13"}}),
        ),
        "snapshotInstance" => Some(json!({"metadata": {"name": "copy-2"}})),
        "updateSecurityGroup" => Some(json!({"rules": []})),
        "createProject" => Some(json!({"name": "mine"})),
        "updateOrganizationQuota" | "updateProjectQuota" => {
            Some(json!({"limits": [{"kind": "servers", "limit": 1}]}))
        }
        _ => None,
    };
    let mut compared = 0;
    for (method, address, operation) in operations(&bob) {
        if !ids.iter().any(|(place, _)| address.contains(place)) {
            continue;
        }
        let (mut real, mut other) = (address.clone(), address.clone());
        for (place, id) in ids {
            real = real.replace(place, id);
            let nobody = if place == "{imageId}" {
                "nobodys-image"
            } else {
                OTHER
            };
            other = other.replace(place, nobody);
        }
        let (real, other) = (
            real.replace("{regionId}", "north"),
            other.replace("{regionId}", "north"),
        );
        let body = bodies(&operation);
        let found = bob.send(&method, &real, &[], body.as_ref());
        let missing = bob.send(&method, &other, &[], body.as_ref());
        let shape = |answer: &Answer| {
            let mut text = answer.text.clone();
            for (_, id) in ids {
                text = text.replace(id, "ID");
            }
            text = text.replace(OTHER, "ID").replace("nobodys-image", "ID");
            let mut body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
            body["traceId"] = Value::Null;
            let mut headers = answer.headers.clone();
            headers.retain(|(name, _)| {
                !["date", "x-trace-id", "content-length"].contains(&name.as_str())
            });
            (answer.status, body, headers)
        };
        assert_eq!(shape(&found), shape(&missing), "{method} {address}");
        assert!(
            [403, 404].contains(&found.status),
            "{method} {address}: {found:?}"
        );
        compared += 1;
    }
    assert!(compared > 25, "{compared}");

    // Lists have no row and no count of another tenant.
    let listed = bob.get("/api/v2/instances").expect(200).json();
    assert_eq!(listed["items"], json!([]));
    let listed = bob
        .get(&format!(
            "/api/v2/instances?organizationId={}",
            of_ada.organization
        ))
        .expect(200)
        .json();
    assert_eq!(listed["items"], json!([]));
    let networks = bob.get("/api/v2/networks").expect(200).json();
    assert_eq!(networks["items"].as_array().unwrap().len(), 1);
    // An instance in another tenant's network.
    let mut stolen = of_bob.instance("web-1");
    stolen["spec"]["networkId"] = json!(of_ada.network);
    let mut nowhere = stolen.clone();
    nowhere["spec"]["networkId"] = json!(OTHER);
    let (stolen, nowhere) = (
        bob.post("/api/v2/instances", &stolen),
        bob.post("/api/v2/instances", &nowhere),
    );
    assert_eq!((stolen.status, nowhere.status), (404, 404));
    // Ada's instance is as it was.
    let read = ada
        .get(&format!("/api/v2/instances/{instance}"))
        .expect(200)
        .json();
    assert_eq!(
        (
            &read["status"]["powerState"],
            &read["metadata"]["generation"]
        ),
        (&json!("running"), &json!(1))
    );
}

#[test]
fn what_is_misspelled_is_refused_with_its_name() {
    let running = Running::sample();
    let client = running.client(&running.token());
    let tenant = Tenant::only(&client);
    let mut new = tenant.instance("web-1");
    new["spec"]["flavourId"] = json!("x");
    let detail = |answer: Answer| {
        answer.expect(400).json()["detail"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(detail(client.post("/api/v2/instances", &new)).contains("unknown field `flavourId`"));
    assert!(
        detail(client.get("/api/v2/instances?powerstate=running"))
            .contains("unknown field `powerstate`")
    );
    assert!(detail(client.get("/api/v2/instances/x")).contains("instanceId"));
    assert!(detail(client.get("/api/v2/instances?limit=0")).contains("limit"));
    assert!(detail(client.get("/api/v2/instances?tag=x")).contains("name=value"));
    let plain = client
        .send("PATCH", "/api/v2/instances", &[], None)
        .expect(405);
    assert_eq!(plain.code(), "method_not_allowed");
    assert_eq!(plain.header("allow"), Some("GET,HEAD,POST"));
    let key = [("Idempotency-Key", "")];
    client
        .send("TRACE", "/api/v2/instances", &key, None)
        .expect(405);
    for list in ["organizations", "rolebindings", "auditlog", "networks"] {
        let answer = client.get(&format!("/api/v2/{list}?after=%C2%98%23"));
        assert!([200, 400].contains(&answer.status), "{list}: {answer:?}");
    }
    let text = client
        .send(
            "POST",
            "/api/v2/instances",
            &[("Content-Type", "text/plain")],
            None,
        )
        .expect(415);
    assert_eq!(text.code(), "unsupported_media_type");
}

#[test]
fn what_is_too_much_or_too_slow_is_cut_off() {
    let files = Files::new(
        "body = '2 KiB'\nbody-time = '1 s'\nheader-time = '2 s'\nwatches = 2\nrate = 20",
    );
    let token = files.token("olga");
    let running = files.start();
    let client = running.client(&token);
    let tenant = Tenant::create(&client, "acme", "ada");

    let mut large = tenant.instance("web-1");
    large["metadata"]["description"] = json!("x".repeat(4096));
    assert_eq!(
        client.post("/api/v2/instances", &large).expect(413).code(),
        "request_entity_too_large"
    );

    // A body that never arrives, and headers that never end.
    let head = format!(
        "POST /api/v2/instances HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
        Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    );
    assert_eq!(
        client.raw(head.as_bytes()).unwrap().expect(408).code(),
        "request_timeout"
    );
    let mut stream = client.connect().unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        .unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains(" 204 "));
    let long = format!(
        "GET /healthz HTTP/1.1\r\nHost: test\r\nX-Long: {}\r\n\r\n",
        "x".repeat(100_000)
    );
    assert_eq!(client.raw(long.as_bytes()).unwrap().status, 431);

    // More watches than one caller may open.
    let _open = [
        client.watch("/api/v2/watch/instances", &[]),
        client.watch("/api/v2/watch/instances", &[]),
    ];
    let refused = client.get("/api/v2/watch/instances").expect(429);
    assert!(refused.header("retry-after").is_some());

    // More requests in a second than one caller may send; another caller is not affected.
    let refused = (0..200)
        .map(|_| client.get("/api/version"))
        .find(|answer| answer.status == 429);
    let refused = refused.expect("a refused request");
    assert_eq!(
        (refused.code().as_str(), refused.header("retry-after")),
        ("too_many_requests", Some("1"))
    );
    client.get("/healthz").expect(204);
    let ada = running.client(&files.token("ada"));
    // The file is looked at every two seconds.
    let entered = (0..300).find(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        ada.get("/api/version").status == 200
    });
    assert!(
        entered.is_some(),
        "a token that was added while the service runs"
    );
}
