//! The client has every operation of the OpenAPI document, and calls it as the document says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::{collections::BTreeSet, time::Duration};

use fleetwright_client::{
    AuditFilter, Client, Consent, Goal, InstanceFilter, NetworkContents, OPERATIONS, Reboot,
    RecordFilter, WatchFrom,
    api::{self, PowerState, ProvisioningStatus},
};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use support::{Request, Scripted, problem};

const ID: &str = "0198c0de-0000-7000-8000-000000000001";

/// An operation of the document: id, method and address; the names of its parameters by place; whether it has a body.
struct Described {
    id: String,
    method: String,
    path: String,
    query: BTreeSet<String>,
    has_key: bool,
    has_body: bool,
}

fn document() -> Vec<Described> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/openapi.json");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if method == "parameters" {
                continue;
            }
            let parameters = operation["parameters"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let named = |place: &str| -> BTreeSet<String> {
                let of_place = parameters
                    .iter()
                    .filter(|parameter| parameter["in"] == place);
                of_place
                    .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
                    .collect()
            };
            found.push(Described {
                id: operation["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase(),
                path: path.clone(),
                query: named("query"),
                has_key: named("header").contains("Idempotency-Key"),
                has_body: operation.get("requestBody").is_some(),
            });
        }
    }
    found
}

#[test]
fn the_client_has_every_operation_of_the_document_and_no_other() {
    let described = document();
    let of_document: BTreeSet<_> = described
        .iter()
        .map(|found| {
            (
                found.id.as_str(),
                found.method.as_str(),
                found.path.as_str(),
            )
        })
        .collect();
    let of_client: BTreeSet<_> = OPERATIONS
        .iter()
        .map(|found| (found.id, found.method, found.path))
        .collect();
    let missing: Vec<_> = of_document.difference(&of_client).collect();
    let unknown: Vec<_> = of_client.difference(&of_document).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "missing in the client: {missing:?}; not in the document: {unknown:?}"
    );
    assert_eq!(of_client.len(), OPERATIONS.len());
}

#[tokio::test]
async fn every_method_sends_what_the_document_describes() {
    let server = Scripted::start(|_, _| problem(404, "not_found", None)).await;
    call_all(&server.client()).await;
    let described = document();
    let mut called = BTreeSet::new();
    for request in server.requests() {
        let operation = described.iter().find(|known| fits(known, &request));
        let operation =
            operation.unwrap_or_else(|| panic!("no operation of the document: {request:?}"));
        called.insert(operation.id.clone());
        let query = request
            .target
            .split_once('?')
            .map_or("", |(_, query)| query);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let name = pair.split_once('=').unwrap().0;
            assert!(
                operation.query.contains(name),
                "{}: {name} is no parameter",
                operation.id
            );
        }
        assert_eq!(
            request.header("idempotency-key").is_some(),
            operation.has_key,
            "{request:?}"
        );
        assert_eq!(!request.body.is_empty(), operation.has_body, "{request:?}");
        assert_eq!(
            request.header("authorization"),
            Some(format!("Bearer {}", support::SECRET).as_str())
        );
    }
    let all: BTreeSet<_> = described
        .iter()
        .map(|operation| operation.id.clone())
        .collect();
    assert_eq!(called, all, "every operation was called");
    let listed = server
        .requests()
        .into_iter()
        .find(|request| request.target.starts_with("/api/v2/instances?"));
    let expected = "/api/v2/instances?tag=team%3Dblue+%26+red&organizationId=o&projectId=p&regionId=r&networkId=n&powerState=running&provisioningStatus=error&limit=7&after=a";
    assert_eq!(listed.unwrap().target, expected);
}

fn fits(operation: &Described, request: &Request) -> bool {
    let path = request.target.split('?').next().unwrap();
    let (expected, found): (Vec<_>, Vec<_>) = (
        operation.path.split('/').collect(),
        path.split('/').collect(),
    );
    operation.method == request.method
        && expected.len() == found.len()
        && expected.iter().zip(found).all(|(expected, found)| {
            *expected == found || expected.starts_with('{') && (found == ID || found == "r")
        })
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Calls every method. Each fails with 404.
async fn call_all(client: &Client) {
    macro_rules! refused {
        ($($call:expr),* $(,)?) => { $(assert!($call.await.is_err_and(|error| error.is_not_found()));)* };
    }
    let mut instances = InstanceFilter::default();
    instances.tags.push(("team".into(), "blue & red".into()));
    instances.organizations.push("o".into());
    instances.projects.push("p".into());
    instances.regions.push("r".into());
    instances.networks.push("n".into());
    instances.power_states.push(PowerState::Running);
    instances.provisioning.push(ProvisioningStatus::Error);
    instances.page_size = Some(7);
    let mut records = RecordFilter::default();
    records.organization = Some("o".into());
    records.project = Some("p".into());
    records.region = Some("r".into());
    records.network = Some("n".into());
    records.page_size = Some(7);
    let mut audit = AuditFilter::default();
    audit.organization = Some("o".into());
    audit.project = Some("p".into());
    audit.actor = Some("user:ada".into());
    audit.resource = Some("instances".into());
    audit.record = Some(ID.into());
    audit.from = Some("2026-01-01T00:00:00Z".into());
    audit.until = Some("2026-02-01T00:00:00Z".into());
    audit.page_size = Some(7);
    let after = Some("a");
    let spec = json!({"organizationId": "o", "projectId": "p", "networkId": "n", "flavorId": "f", "imageId": "i"});
    let create: api::InstanceCreate = from(json!({"metadata": {"name": "web"}, "spec": spec}));
    let update: api::InstanceUpdate =
        from(json!({"metadata": {"name": "web"}, "spec": {"flavorId": "f", "imageId": "i"}}));
    let snapshot: api::SnapshotCreate = from(json!({"metadata": {"name": "copy"}}));
    refused!(
        client.list_instances(&instances, after),
        client.create_instance(&create),
        client.read_instance(ID),
        client.read_instance_when(ID, Goal::Stopped, Duration::from_secs(3)),
        client.plan_instance(ID, &update, Some("\"e\"")),
        client.update_instance(ID, &update, Consent::AllowReplace, Some("\"e\"")),
        client.delete_instance(ID),
        client.start_instance(ID),
        client.stop_instance(ID),
        client.reboot_instance(ID, Reboot::Hard),
        client.replace_instance(ID),
        client.list_instance_events(ID),
        client.read_instance_ssh_key(ID),
        client.open_instance_console(ID),
        client.read_instance_console(ID, Some(100)),
        client.snapshot_instance(ID, &snapshot),
    );
    assert!(
        client
            .watch_instances(WatchFrom::Now)
            .next()
            .await
            .unwrap()
            .is_err_and(|error| error.is_not_found())
    );
    let network: api::NetworkCreate = from(
        json!({"organizationId": "o", "projectId": "p", "regionId": "r", "name": "blue", "prefix": "10.0.0.0/16"}),
    );
    let group: api::SecurityGroupCreate = from(json!({"networkId": "n", "name": "web"}));
    let authority: api::SshAuthorityCreate =
        from(json!({"organizationId": "o", "projectId": "p", "name": "ca", "publicKey": "k"}));
    refused!(
        client.list_networks(&records, after),
        client.create_network(&network),
        client.read_network(ID),
        client.delete_network(ID, NetworkContents::Delete),
        client.list_security_groups(&records, after),
        client.create_security_group(&group),
        client.read_security_group(ID),
        client.update_security_group(ID, &api::SecurityGroupUpdate { rules: Vec::new() }),
        client.delete_security_group(ID),
        client.list_ssh_authorities(&records, after),
        client.create_ssh_authority(&authority),
        client.read_ssh_authority(ID),
        client.delete_ssh_authority(ID),
    );
    let scope: api::Scope = from(json!({"organizationId": "o", "projectId": "p"}));
    let binding: api::RoleBindingCreate =
        from(json!({"actor": "user:ada", "role": "r", "scope": scope}));
    let quota = api::QuotaUpdate { limits: Vec::new() };
    refused!(
        client.list_organizations(after),
        client.create_organization(&api::OrganizationCreate {
            name: "acme".into()
        }),
        client.read_organization(ID),
        client.delete_organization(ID),
        client.list_projects(ID, after),
        client.create_project(
            ID,
            &api::ProjectCreate {
                name: "shop".into()
            }
        ),
        client.read_project(ID, ID),
        client.delete_project(ID, ID),
        client.read_organization_quota(ID),
        client.update_organization_quota(ID, &quota),
        client.read_project_quota(ID, ID),
        client.update_project_quota(ID, ID, &quota),
        client.list_role_bindings(&scope, after),
        client.create_role_binding(&binding),
        client.read_role_binding(ID),
        client.delete_role_binding(ID),
        client.list_roles(),
        client.read_caller(),
        client.list_audit_log(&audit, after),
    );
    let accept = api::AccountAccept {
        expected: "a".into(),
        account: "b".into(),
    };
    refused!(
        client.list_regions(ID),
        client.list_flavors(ID, "r"),
        client.list_images(ID, "r"),
        client.read_image(ID),
        client.delete_image(ID),
        client.share_image(ID),
        client.read_version(),
        client.read_health(),
        client.read_readiness(),
        client.read_metrics(),
        client.inspect_instance(ID),
        client.list_region_reports(),
        client.accept_region_account("r", &accept),
        client.resolve_leaked_launch("r", &api::LeakResolve { token: "t".into() }),
    );
}
