//! What tenants must not be able to do: enter without a token, learn of each other, or stop the service.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    sync::Arc,
};

use serde_json::{Value, json};
use support::{Answer, Client, Files, Running, Tenant};

const OTHER: &str = "c0ffee00-0000-4000-8000-000000000001";

/// An operation of the document, with the request of its example.
struct Operation {
    id: String,
    method: String,
    address: String,
    query: Vec<(String, Value)>,
    body: Option<Value>,
    /// The ids of the examples, by the name of the parameter that takes them.
    examples: Arc<BTreeMap<String, String>>,
}

impl Operation {
    /// The request of the example, with every id that `id` knows replaced.
    fn request(&self, id: &dyn Fn(&str) -> Option<String>) -> (String, Option<Value>) {
        let mut target = self.address.clone();
        for (name, example) in self.examples.iter() {
            let place = id(example).unwrap_or_else(|| example.clone());
            target = target.replace(&format!("{{{name}}}"), &place);
        }
        let query: Vec<_> = self
            .query
            .iter()
            .filter_map(|(name, example)| {
                let text = example.as_str().map_or(example.to_string(), |text| {
                    id(text).unwrap_or_else(|| text.to_owned())
                });
                (!example.is_array()).then(|| format!("{name}={text}"))
            })
            .collect();
        if !query.is_empty() {
            target = format!("{target}?{}", query.join("&"));
        }
        (target, self.body.as_ref().map(|body| replace(body, id)))
    }
}

fn replace(value: &Value, id: &dyn Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::String(text) => json!(id(text).unwrap_or_else(|| text.clone())),
        Value::Array(items) => items.iter().map(|item| replace(item, id)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            Value::Object(
                fields
                    .map(|(name, value)| (name.clone(), replace(value, id)))
                    .collect(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// An id of nothing, as long as this one.
fn nobodys(id: &str) -> String {
    match id.len() {
        36 => OTHER.to_owned(),
        length => "z".repeat(length),
    }
}

/// Every operation of the document.
fn operations(client: &Client) -> Vec<Operation> {
    let document = client.get("/openapi.json").expect(200).json();
    let mut all = Vec::new();
    let mut examples = BTreeMap::new();
    for (address, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let mut query = Vec::new();
            for parameter in parameters {
                let name = parameter["name"].as_str().unwrap().to_owned();
                let example = parameter["example"].clone();
                match parameter["in"].as_str() {
                    Some("path") => {
                        examples.insert(name, example.as_str().unwrap().to_owned());
                    }
                    Some("query") if !example.is_null() => query.push((name, example)),
                    Some(_) | None => {}
                }
            }
            let body = operation.pointer("/requestBody/content/application~1json/example");
            all.push(Operation {
                id: operation["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase(),
                address: address.clone(),
                query,
                body: body.cloned(),
                examples: Arc::default(),
            });
        }
    }
    assert!(all.len() > 45, "{}", all.len());
    let examples = Arc::new(examples);
    for operation in &mut all {
        operation.examples = Arc::clone(&examples);
    }
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
    for operation in operations(&client) {
        let (method, address) = (&operation.method, &operation.address);
        if ["readHealth", "readReadiness"].contains(&operation.id.as_str()) {
            continue;
        }
        for token in other_tokens {
            client.token = token.map(ToOwned::to_owned);
            let address = address.replace(['{', '}'], "");
            let answer = client.send(method, &address, &[], None).expect(401);
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

    // For each id of the examples the one of Ada's record, and one of nothing that has as many characters.
    let places = [
        ("instanceId", instance.as_str()),
        ("imageId", &image),
        ("securityGroupId", &group),
        ("sshCertificateAuthorityId", &authority),
        ("roleBindingId", &binding),
        ("networkId", &of_ada.network),
        ("organizationId", &of_ada.organization),
        ("projectId", &of_ada.project),
    ];
    let mut compared = 0;
    for operation in operations(&bob) {
        let [found, missing] = [true, false].map(|is_real| {
            let id = |example: &str| {
                let place = places.iter().find(|(name, _)| {
                    operation
                        .examples
                        .get(*name)
                        .is_some_and(|known| known == example)
                })?;
                Some(if is_real {
                    place.1.to_owned()
                } else {
                    nobodys(place.1)
                })
            };
            operation.request(&id)
        });
        if found == missing {
            continue;
        }
        let send = |(target, body): &(String, Option<Value>)| {
            bob.send(&operation.method, target, &[], body.as_ref())
        };
        let (real, none) = (send(&found), send(&missing));
        let shape = |answer: &Answer| {
            let mut text = answer.text.clone();
            for (_, id) in places {
                text = text.replace(id, "ID").replace(&nobodys(id), "ID");
            }
            let mut body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
            // These are new in each response.
            for field in ["traceId", "watchFrom"] {
                if body.get(field).is_some() {
                    body[field] = Value::Null;
                }
            }
            let mut headers = answer.headers.clone();
            headers.retain(|(name, _)| !["date", "x-trace-id"].contains(&name.as_str()));
            (answer.status, body, headers)
        };
        let what = format!("{} {}", operation.method, found.0);
        assert_eq!(shape(&real), shape(&none), "{what}");
        match real.status {
            403 | 404 => {}
            // A filter that matches nothing.
            200 => assert_eq!(real.json()["items"], json!([]), "{what}"),
            _ => panic!("{what}: {real:?}"),
        }
        compared += 1;
    }
    assert!(compared > 40, "{compared}");

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
fn nothing_is_listed_of_an_organization_that_is_gone() {
    let running = Running::sample();
    let client = running.client(&running.token());
    let created = client.post("/api/v2/organizations", &json!({"name": "gone"}));
    let id = created.expect(201).json()["id"].clone();
    let organization = format!("/api/v2/organizations/{}", id.as_str().unwrap());
    let offers = format!("/api/v1/organizations/{}/regions", id.as_str().unwrap());
    let lists = [
        format!("{organization}/projects"),
        format!("{organization}/quota"),
        offers.clone(),
        format!("{offers}/north/flavors"),
        format!("{offers}/north/images"),
    ];
    for list in &lists {
        client.get(list).expect(200);
    }
    client.delete(&organization).expect(204);
    for list in &lists {
        client.get(list).expect(404);
    }
    let tenant = Tenant::only(&client);
    let project = format!(
        "/api/v2/organizations/{}/projects/{OTHER}/quota",
        tenant.organization
    );
    client.get(&project).expect(404);
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
    // A filter without a value is not a list without the filter.
    for query in [
        "networks?projectId=",
        "networks?regionId",
        "instances?after=",
        "auditlog?until=&record=x",
    ] {
        assert!(detail(client.get(&format!("/api/v2/{query}"))).contains("has no value"));
    }
    let plain = client
        .send("PATCH", "/api/v2/instances", &[], None)
        .expect(405);
    assert_eq!(plain.code(), "method_not_allowed");
    assert_eq!(plain.header("allow"), Some("GET,HEAD,POST"));
    let put = client.send(
        "PUT",
        "/api/v2/instances",
        &[("Idempotency-Key", "k")],
        None,
    );
    assert_eq!(put.expect(405).code(), "method_not_allowed");
    let key = [("Idempotency-Key", "")];
    client
        .send("TRACE", "/api/v2/instances", &key, None)
        .expect(405);
    // What fits the schema and is not possible is another status.
    let network = json!({
        "organizationId": tenant.organization, "projectId": tenant.project, "regionId": "north", "name": "red", "prefix": "127.0.0.0/16",
    });
    let group = |rule: Value| json!({"networkId": tenant.network, "name": "g", "rules": [rule]});
    let mut twice = tenant.instance("web-1");
    let tag = json!({"name": "a", "value": "b"});
    twice["metadata"]["tags"] = json!([tag, tag]);
    for (path, body) in [
        ("networks", network),
        (
            "securitygroups",
            group(json!({"direction": "ingress", "protocol": "icmp", "port": 1})),
        ),
        (
            "securitygroups",
            group(json!({"direction": "ingress", "protocol": "tcp", "port": 9, "portMax": 8})),
        ),
        (
            "sshcertificateauthorities",
            json!({
                "organizationId": tenant.organization, "projectId": tenant.project, "name": "ca", "publicKey": "ssh-ed25519 x",
            }),
        ),
        (
            "rolebindings",
            json!({"actor": "user:ada", "role": "project-user", "scope": {"projectId": tenant.project}}),
        ),
        ("instances", twice),
    ] {
        let refused = client.post(&format!("/api/v2/{path}"), &body).expect(422);
        assert_eq!(refused.code(), "unprocessable_content", "{path}");
    }
    for list in ["organizations", "rolebindings", "auditlog", "networks"] {
        let answer = client.get(&format!("/api/v2/{list}?after=%C2%98%23"));
        assert!([200, 400].contains(&answer.status), "{list}: {answer:?}");
        let control = client.get(&format!("/api/v2/{list}?after=a%1f"));
        assert!(detail(control).contains("after: expected the `next`"));
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
