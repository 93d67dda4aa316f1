//! An ETag names a version of one record to those who may read it, and tells nothing else: not what other tenants write, and not how often.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::collections::BTreeSet;

use serde_json::json;
use support::{Client, Files, Tenant};

/// The ETag of a record, without its quotes.
fn tag(client: &Client, path: &str) -> String {
    let answer = client.get(path).expect(200);
    let tag = answer.header("etag").expect("an ETag");
    let opaque = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    opaque.expect("a strong ETag").to_owned()
}

/// Creates a network and returns its ETag.
fn write(client: &Client, tenant: &Tenant, name: &str) -> String {
    let network = json!({
        "organizationId": tenant.organization, "projectId": tenant.project, "regionId": "north", "name": name, "prefix": "10.0.0.0/16",
    });
    let created = client.post("/api/v2/networks", &network).expect(201);
    created.header("etag").expect("an ETag").replace('"', "")
}

#[test]
fn an_etag_does_not_change_when_another_tenant_writes() {
    let files = Files::new("rate = 100000");
    let [olga, ada, bob] = ["olga", "ada", "bob"].map(|actor| files.token(actor));
    let running = files.start();
    let [olga, ada, bob] = [olga, ada, bob].map(|token| running.client(&token));
    let of_ada = Tenant::create(&olga, "acme", "ada");
    let of_bob = Tenant::create(&olga, "evil", "bob");
    let created = ada.post("/api/v2/instances", &of_ada.instance("web-1"));
    let id = created.expect(201).json()["metadata"]["id"].clone();
    let instance = format!("/api/v2/instances/{}", id.as_str().unwrap());
    let network = format!("/api/v2/networks/{}", of_ada.network);
    ada.get(&format!("{instance}?waitFor=running")).expect(200);
    let paths = [instance.as_str(), network.as_str()];
    let before = paths.map(|path| tag(&ada, path));
    for number in 0..5 {
        write(&bob, &of_bob, &format!("net-{number}"));
        let new = of_bob.instance(&format!("web-{number}"));
        bob.post("/api/v2/instances", &new).expect(201);
    }
    assert_eq!(paths.map(|path| tag(&ada, path)), before);

    // So an update that is based on the read from before is accepted, and its own ETag is another one.
    let change = json!({
        "metadata": {"name": "web-1", "description": "changed"},
        "spec": {"flavorId": "standard-2", "imageId": "debian-13"},
    });
    let condition = format!("\"{}\"", before[0]);
    let headers = [("If-Match", condition.as_str())];
    ada.send("PUT", &instance, &headers, Some(&change))
        .expect(202);
    assert_ne!(tag(&ada, &instance), before[0]);
    // Now it is out of date.
    ada.send("PUT", &instance, &headers, Some(&change))
        .expect(412);
    assert_eq!(running.terminate(), Some(0));
}

#[test]
fn etags_are_no_counters_and_have_no_order() {
    let files = Files::new("rate = 100000");
    let token = files.token("olga");
    let running = files.start();
    let olga = running.client(&token);
    let tenant = Tenant::create(&olga, "acme", "ada");
    let tags: Vec<_> = (0..8)
        .map(|number| write(&olga, &tenant, &format!("net-{number}")))
        .collect();
    // Revisions that follow each other: all tags have one length, none looks like a number, and they are not in the order of the writes.
    assert!(tags.iter().all(|tag| tag.len() == 22), "{tags:?}");
    assert!(
        tags.iter().all(|tag| tag.parse::<f64>().is_err()),
        "{tags:?}"
    );
    let starts: BTreeSet<_> = tags.iter().map(|tag| &tag[..6]).collect();
    let ends: BTreeSet<_> = tags.iter().map(|tag| &tag[tag.len() - 6..]).collect();
    assert_eq!((starts.len(), ends.len()), (8, 8), "{tags:?}");
    assert!(
        !tags.is_sorted() && !tags.iter().rev().is_sorted(),
        "{tags:?}"
    );
    assert_eq!(running.terminate(), Some(0));
}
